"""The subcommand of ``retinue`` that tunes a strategy's weights."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from retinue.cli_common import INTERRUPTED, choose_ruleset, complain


def tune(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The strategy file to write (YAML).")],
    mode: Annotated[
        str | None, typer.Option(metavar="MODE", help="journey (the default) or brawl.")
    ] = None,
    start: Annotated[
        str, typer.Option(metavar="NAME", help="A shipped strategy, or a strategy file.")
    ] = "greedy",
    generations: Annotated[int, typer.Option(min=1, help="How many.")] = 100,
    candidates: Annotated[int, typer.Option(min=2, help="Turns that strategies look at.")] = 32,
    population: Annotated[int, typer.Option(min=4, help="Strategies in a generation.")] = 24,
    blocks: Annotated[int, typer.Option(min=1, help="Of four matches, for each of them.")] = 16,
    seed: Annotated[int, typer.Option(min=0, help="Of dice and chance.")] = 0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="By default all cores; they change no result.")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A rule file in place of the mode's own.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where FILE's checkpoint was left.")
    ] = False,
) -> None:
    """Tune a strategy's weights by play (CMA-ES) and write it to a file."""
    from retinue.envs.game.files import check_writable, write_atomically
    from retinue.evaluation.pairs import check_threads
    from retinue.evaluation.progress import progress_bar
    from retinue.training.tune import tune_weights
    from retinue.training.tune_config import TuneConfig
    from retinue.training.tune_files import check_new, checkpoint_of, percent, strategy_text

    ruleset = choose_ruleset(mode, rules)
    config = TuneConfig(
        generations=generations,
        candidates=candidates,
        population=population,
        blocks=blocks,
        seed=seed,
    )
    check_threads(threads)
    weights = _weights_of(start, ruleset)
    check_writable(out)
    checkpoint = checkpoint_of(out)
    if not resume:
        check_new(out)
    numbers = {"generations": generations, "candidates": candidates, "population": population}
    asked: dict[str, Any] = {"start": start, **numbers, "blocks": blocks, "seed": seed, "out": out}
    if rules is not None:
        asked["rules"] = rules
    words = [word for name, value in asked.items() for word in (f"--{name}", str(value))]
    command = shlex.join(["retinue", "tune", "--mode", ruleset.mode, *words])
    try:
        with progress_bar("matches") as on_progress:
            tuned = tune_weights(
                ruleset,
                weights,
                config,
                threads=threads,
                checkpoint=checkpoint,
                resume=resume,
                on_generation=lambda each: print(each, flush=True),
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        again = f"go on with: {command} --resume" if checkpoint.exists() else "nothing is done yet"
        complain(f"interrupted; {again}")
        raise typer.Exit(INTERRUPTED) from None
    write_atomically(out, strategy_text(tuned, ruleset, command, start))
    print(
        f"{out}: {percent(tuned.against_start)} first places against three of {start} (par 25%); "
        f"let it play: --agents strategy:file={out},..."
    )


def _weights_of(start: str, ruleset: Any) -> Any:
    """Return the weights of a shipped strategy or of a file, whatever rules they were tuned for.

    Raises:
        StrategyError: there is no such strategy, or none for the mode.
    """
    from retinue.envs.strategy_file import (
        StrategyError,
        read_strategy,
        shipped_files,
        shipped_strategy,
    )

    names = shipped_files()
    if start not in names and not Path(start).suffix:
        raise StrategyError(
            f"unknown strategy {start!r}: use a .yaml file or one of: {', '.join(names)}"
        )
    found = shipped_strategy(start) if start in names else read_strategy(start)
    weights = getattr(found, ruleset.mode)
    if weights is None:
        raise StrategyError(f"{start} has no weights for {ruleset.mode} to start from")
    return weights
