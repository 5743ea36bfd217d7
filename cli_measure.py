"""The subcommands of ``retinue`` that measure: speed, the generator, agents against each other."""

from pathlib import Path
from typing import Annotated

import typer

from retinue.cli_common import (
    INTERRUPTED,
    LARGEST_SEED,
    choose_ruleset,
    choose_rulesets,
    complain,
    show,
)

BothModes = Annotated[
    str | None, typer.Option("--mode", metavar="MODE", help="journey or brawl; by default both.")
]
Threads = Annotated[int | None, typer.Option(min=1, help="By default all cores.")]
AgentsOrAll = Annotated[
    str | None,
    typer.Option(
        "--agents",
        metavar="A,B,...",
        help="Two or more; by default all shipped ones that need no search.",
    ),
]
FirstDice = Annotated[
    int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="Of the first dice.")
]
TimeLimit = Annotated[
    float, typer.Option(metavar="SECONDS", help="For a turn of an agent of your own.")
]


def bench(
    mode: Annotated[str, typer.Option(metavar="MODE", help="journey or brawl.")] = "journey",
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures there too.")
    ] = None,
    training: Annotated[
        bool, typer.Option("--training/--no-training", help="Time training too (minutes).")
    ] = True,
    quick: Annotated[
        bool, typer.Option("--quick", help="A fraction of the work: to try it, not to quote.")
    ] = False,
) -> None:
    """Measure the speed of engine, environments and training on this machine."""
    from retinue.envs.game.files import check_writable, write_atomically
    from retinue.evaluation.benchmark import benchmark_engine, machine, to_json

    choose_ruleset(mode)
    if json_file is not None:
        check_writable(json_file)
    about = machine()
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    rows = []
    for row in benchmark_engine(mode, quick=quick):
        rows.append(row)
        print(row, flush=True)
    if training:
        from retinue.training.benchmark import benchmark_training

        for row in benchmark_training(mode, quick=quick):
            rows.append(row)
            print(row, flush=True)
    if json_file is not None:
        import json

        write_atomically(json_file, json.dumps(to_json(rows, about), indent=2) + "\n")


def bench_generator(
    mode: BothModes = None,
    positions: Annotated[int, typer.Option(min=1, help="How many, of each mode.")] = 500,
    blocks: Annotated[
        int, typer.Option(min=0, help="Of four matches, for the strength in play; 0 plays none.")
    ] = 500,
    seed: FirstDice = 0,
    threads: Threads = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures there too.")
    ] = None,
) -> None:
    """Measure the generator of candidate turns against all legal turns, and in play."""
    import json

    from retinue.envs.game.files import check_writable, write_atomically
    from retinue.evaluation.benchmark import machine
    from retinue.evaluation.generator import (
        measure_regret,
        measure_strength,
        regret_table,
        strength_line,
        to_json,
    )
    from retinue.evaluation.pairs import check_threads
    from retinue.evaluation.progress import progress_bar

    rulesets = choose_rulesets(mode)
    check_threads(threads)
    if json_file is not None:
        check_writable(json_file)
    figures = {"machine": machine(), "modes": {}}
    for ruleset in rulesets:
        with progress_bar("positions") as on_progress:
            regret = measure_regret(ruleset, positions, seed, on_progress)
        show(regret_table(regret))
        strength = None
        if blocks:
            with progress_bar("matches") as on_progress:
                strength = measure_strength(
                    ruleset, blocks, seed, threads=threads, on_progress=on_progress
                )
            print(strength_line(strength), flush=True)
        figures["modes"][ruleset.mode] = to_json(regret, strength)
        if json_file is not None:  # after each mode, so that Ctrl-C costs one at most
            write_atomically(json_file, json.dumps(figures, indent=2) + "\n")


def cross_table(
    agents: AgentsOrAll = None,
    mode: BothModes = None,
    matches: Annotated[
        int, typer.Option(min=4, help="Of each pair and mode; a multiple of 4.")
    ] = 1000,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="For the results; goes on with what is there.")
    ] = Path("runs/cross-table"),
    seed: FirstDice = 0,
    threads: Threads = None,
    time_limit: TimeLimit = 10.0,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Renew the table in this page, e.g. docs/strategies.md."),
    ] = None,
) -> None:
    """Let every agent play against three of every other one, and show who beats whom."""
    from retinue.agents.registry import split_specs
    from retinue.evaluation.cross_table import DEFAULT_AGENTS, open_tables, play_pairs, time_agents
    from retinue.evaluation.cross_table_report import as_rich, check_page, in_words, renew_page
    from retinue.evaluation.progress import progress_bar
    from retinue.evaluation.report import fault_lines

    rulesets = choose_rulesets(mode)
    if markdown is not None:
        check_page(markdown)
    specs = DEFAULT_AGENTS if agents is None else split_specs(agents)
    opened = open_tables(
        out, rulesets, specs, matches, seed, threads=threads, time_limit=time_limit
    )
    interrupted = False
    try:
        with progress_bar("agents timed") as on_progress:
            time_agents(opened, on_progress)
        with progress_bar("seconds of work") as on_progress:
            play_pairs(opened, threads=threads, on_progress=on_progress)
    except KeyboardInterrupt:
        interrupted = True
    for table in opened:
        show(as_rich(table))
        print(in_words(table))
        for line in fault_lines(table.agents):
            complain(line)
    if interrupted:
        done = sum(len(table.cells) for table in opened)
        of = sum(table.size for table in opened)
        complain(f"interrupted after {done:,} of {of:,} pairs; the same command goes on")
        raise typer.Exit(INTERRUPTED)
    if markdown is not None:
        renew_page(markdown, opened)
