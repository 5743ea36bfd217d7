"""The subcommands of ``retinue`` that say who is stronger: tournament, compare, calibrate."""

from pathlib import Path
from typing import Annotated, Any

import typer

from retinue.cli_common import (
    INTERRUPTED,
    choose_ruleset,
    choose_rulesets,
    complain,
    show,
)
from retinue.cli_measure import AgentsOrAll, BothModes, FirstDice, Threads, TimeLimit
from retinue.evaluation.text import printable


def tournament(
    agents: AgentsOrAll = None,
    mode: BothModes = None,
    blocks: Annotated[
        int, typer.Option(min=1, help="Of four matches with the same dice, in each mode.")
    ] = 1000,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="For results and report; goes on with those there.")
    ] = Path("runs/tournament"),
    seed: FirstDice = 0,
    threads: Threads = None,
    time_limit: TimeLimit = 10.0,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Renew its part in this page, its plots beside it."),
    ] = None,
) -> None:
    """Rate agents by a tournament, and say where their points come from."""
    from retinue.agents.registry import split_specs
    from retinue.evaluation.cross_table import DEFAULT_AGENTS
    from retinue.evaluation.progress import progress_bar
    from retinue.evaluation.report import fault_lines
    from retinue.evaluation.standings import luck_among_the_best, summarise, time_agents
    from retinue.evaluation.tournament import open_tournament, play_tournament
    from retinue.evaluation.tournament_report import as_rich, check_page, renew_page, write_all

    rulesets = choose_rulesets(mode)
    if markdown is not None:
        check_page(markdown)
    specs = DEFAULT_AGENTS if agents is None else split_specs(agents)
    opened = [
        open_tournament(
            out / ruleset.mode,
            ruleset,
            specs,
            seed,
            blocks=blocks,
            threads=threads,
            time_limit=time_limit,
        )
        for ruleset in rulesets
    ]
    interrupted = False
    summaries: list[Any] = []
    for each in opened:
        try:
            with progress_bar("blocks") as on_progress:
                play_tournament(each, blocks, threads=threads, on_progress=on_progress)
            with progress_bar("agents timed") as on_progress:
                speeds = time_agents(each, on_progress)
            with progress_bar("matches for luck") as on_progress:
                luck = luck_among_the_best(each, threads=threads, on_progress=on_progress)
        except KeyboardInterrupt:
            interrupted, speeds, luck = True, {}, None
        for line in fault_lines(each.agents):
            complain(line)
        if each.blocks:
            summaries.append(summarise(each, speeds, luck))
            show(as_rich(summaries[-1]))
            written = write_all(summaries[-1], each.folder)
            print(printable(f"The report is {written}"), end="\n\n", flush=True)
        if interrupted:
            complain(f"interrupted after {len(each.blocks):,} blocks; the same command goes on")
            raise typer.Exit(INTERRUPTED)
    if markdown is not None:
        renew_page(markdown, summaries)


def compare(
    one: Annotated[str, typer.Argument(metavar="A", help="An agent (see `retinue agents`).")],
    other: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    mode: Annotated[
        str | None, typer.Option(metavar="MODE", help="journey (the default) or brawl.")
    ] = None,
    margin: Annotated[
        float, typer.Option(help="Shares of first places so close to one half are equal.")
    ] = 0.05,
    error: Annotated[
        float, typer.Option(help="How likely a wrong answer of each kind may be.")
    ] = 0.05,
    blocks: Annotated[
        int, typer.Option(min=1, help="Of four matches; after so many it stays undecided.")
    ] = 10_000,
    seed: FirstDice = 0,
    threads: Threads = None,
    time_limit: TimeLimit = 10.0,
    rules: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A rule file in place of the mode's own.")
    ] = None,
) -> None:
    """Say which of two agents is stronger, with as few matches as that takes."""
    from retinue.agents.registry import make_agent
    from retinue.evaluation.compare import compare as play_comparison
    from retinue.evaluation.progress import progress_bar
    from retinue.evaluation.report import fault_lines
    from retinue.evaluation.sequential import SequentialTest

    ruleset = choose_ruleset(mode, rules)
    try:
        test = SequentialTest(margin=margin, error=error)
    except ValueError as refused:
        raise typer.BadParameter(str(refused)) from refused
    pair = [make_agent(spec, ruleset, time_limit=time_limit) for spec in (one, other)]
    with progress_bar("blocks, at most") as on_progress:
        found = play_comparison(
            pair[0],
            pair[1],
            ruleset,
            test,
            most_blocks=blocks,
            seed=seed,
            threads=threads,
            on_progress=on_progress,
        )
    print(printable(f"{ruleset.mode.capitalize()}: {found.in_words()}."))
    for line in fault_lines(pair):
        complain(line)
    if found.interrupted:
        complain("interrupted; the same command starts anew")
        raise typer.Exit(INTERRUPTED)


def calibrate(
    comparisons: Annotated[
        int, typer.Option(min=1, help="Simulated, with each true difference.")
    ] = 1000,
    tournaments: Annotated[int, typer.Option(min=1, help="Simulated, of four equals.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulations.")] = 0,
) -> None:
    """Check by simulation that intervals and the sequential test keep what they promise."""
    from retinue.evaluation.calibration import (
        calibration_lines,
        simulate_comparisons,
        simulate_copies,
    )
    from retinue.evaluation.progress import progress_bar

    with progress_bar("comparisons") as on_progress:
        tests = simulate_comparisons(comparisons, seed=seed, on_progress=on_progress)
    with progress_bar("tournaments") as on_progress:
        copies = simulate_copies(tournaments, seed=seed, on_progress=on_progress)
    print(*calibration_lines(tests, copies), sep="\n")
