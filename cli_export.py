"""The subcommands of ``retinue`` that hand on a trained policy."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from retinue.evaluation.text import printable


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A training run's folder.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The ONNX file to write (.onnx).")],
    decisions: Annotated[
        int | None,
        typer.Option(min=1, help="Of a policy in the run's history; by default the last one."),
    ] = None,
) -> None:
    """Write a trained policy as one ONNX file, checked against it, with a manifest and a card."""
    from retinue.agents.onnx_export import CHECKED
    from retinue.training.export import export_run

    manifest = export_run(run, out, decisions)
    agent = shlex.quote(f"policy:{out}")
    print(
        printable(
            f"{out}: {out.stat().st_size:,} bytes; plays as the policy does in {CHECKED:,} "
            f"positions. Let it play: --mode {manifest.mode} --agents {agent},..."
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
