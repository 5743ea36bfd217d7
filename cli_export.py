"""The subcommands of ``retinue`` that hand on a trained policy."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from retinue.cli_common import choose_ruleset
from retinue.evaluation.text import printable


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A training run's folder.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The ONNX file to write (.onnx).")],
    decisions: Annotated[
        int | None,
        typer.Option(min=1, help="Of a policy in the run's history; by default the last one."),
    ] = None,
    lookahead: Annotated[
        str | None,
        typer.Option(
            metavar="OPTIONS",
            help="Let it try turns before it chooses where it plays, e.g. top=4,rollouts=1.",
        ),
    ] = None,
) -> None:
    """Write a trained policy as one ONNX file, checked against it, with a manifest and a card."""
    from retinue.agents.onnx_export import CHECKED
    from retinue.training.export import export_run

    manifest = export_run(run, out, decisions, lookahead)
    agent = shlex.quote(f"policy:{out}")
    print(
        printable(
            f"{out}: {out.stat().st_size:,} bytes; plays as the policy does in {CHECKED:,} "
            f"positions. Let it play: --mode {manifest.mode} --agents {agent},..."
        )
    )


def measure(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The ONNX file of a policy.")],
    against: Annotated[str, typer.Option(metavar="AGENT", help="Who has the other three seats.")],
    matches: Annotated[
        int, typer.Option(min=8, help="How many, in blocks of four with the same dice.")
    ] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Of the first block's dice.")] = 0,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The rules it plays under, if not its mode's own."),
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="By default all cores.")] = None,
) -> None:
    """Measure a policy in a file against three of an agent, and note it in manifest and card."""
    from retinue.agents.artifact import read_artifact
    from retinue.envs.game.board import SEATS
    from retinue.evaluation.policy_strength import measure_strength
    from retinue.evaluation.progress import progress_bar

    ruleset = choose_ruleset(read_artifact(file).mode, rules)
    blocks = matches // SEATS
    words = ["retinue", "measure", str(file), "--against", against]
    words += ["--matches", str(blocks * SEATS), "--seed", str(seed)]
    words += [] if rules is None else ["--rules", str(rules)]
    with progress_bar("matches") as on_progress:
        found = measure_strength(
            file,
            against,
            ruleset,
            blocks,
            seed,
            shlex.join(words),
            threads=threads,
            on_progress=on_progress,
        )
    print(
        printable(
            f"{file}: first in {found.share:.1%} ({found.low:.1%} to {found.high:.1%}) of "
            f"{found.matches:,} matches against {found.against}; par is 25%"
        )
    )


def rate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The ONNX file of a policy.")],
    tournament: Annotated[
        Path, typer.Option(metavar="DIR", help="A tournament's folder of the policy's mode.")
    ],
    agent: Annotated[
        str, typer.Option(metavar="AGENT", help="Under which name the policy took part in it.")
    ],
) -> None:
    """Note the rating that a tournament gave a policy in its manifest and card."""
    from retinue.evaluation.policy_strength import note_rating

    noted = note_rating(file, tournament / "summary.json", agent)
    print(
        printable(
            f"{file}: rated {noted.value:,.0f} ({noted.low:,.0f} to {noted.high:,.0f}), "
            f"{noted.against}"
        )
    )


def model_card(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The ONNX file of a policy.")],
) -> None:
    """Write a policy's card again, from its manifest: after a measurement was added there, say."""
    from retinue.evaluation.policy_report import write_card

    print(printable(f"{write_card(file)}: written"))


def curves(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Training runs' folders.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The picture to write (.svg).")],
) -> None:
    """Draw how strong the learner was after how many decisions, for one run or several."""
    from retinue.training.curves import save_curves

    save_curves(runs, out)
    print(printable(f"{out}: written"))
