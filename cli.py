"""The command ``retinue``: thin, each subcommand calls what does the work.

Whatever is heavy is imported by the subcommand that needs it, so that ``retinue --help`` is quick.

Exit codes: 0 done; 1 a record does not fit; 2 bad input, in one line on standard error; 130
interrupted (Ctrl-C). A traceback is a bug.
"""

import io
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from retinue import __version__
from retinue.cli_common import (
    BAD_INPUT,
    DOES_NOT_FIT,
    DONE,
    INTERRUPTED,
    LARGEST_SEED,
    choose_ruleset,
    complain,
    show,
)
from retinue.cli_export import curves, export, measure, model_card, rate
from retinue.cli_measure import bench, bench_generator, cross_table
from retinue.cli_serve import bench_serve, serve
from retinue.cli_tournament import calibrate, compare, tournament
from retinue.cli_tune import tune
from retinue.cli_vectors import vectors
from retinue.evaluation.text import printable


class _Commands(typer.core.TyperGroup):
    """Answers Ctrl-C, which typer would turn into a bare exit code, with a word."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="retinue",
    cls=_Commands,
    add_completion=False,
    help="Train, compare and supply bots for a four-seat race-and-capture board game.",
    epilog="Example: retinue play --agents racer,random,random,random --matches 1000",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"retinue {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


# --- Subcommands, in the order in which the help lists them


@app.command(
    epilog="Example: retinue play --mode brawl --agents racer,spread,random,random --matches 2000"
)
def play(
    agents: Annotated[
        str, typer.Option(metavar="A,B,C,D", help="Four agents, by seat (see `retinue agents`).")
    ],
    matches: Annotated[int, typer.Option(min=1, help="How many matches.")] = 1000,
    mode: Annotated[
        str | None, typer.Option(metavar="MODE", help="journey (the default) or brawl.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=LARGEST_SEED, help="Of the first match's dice; the next has the next."
        ),
    ] = 0,
    rotate: Annotated[
        bool, typer.Option("--rotate", help="Play each dice four times, agents changing seats.")
    ] = False,
    records: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Record every match in this folder.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="By default all cores.")] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="For a turn of an agent of your own.")
    ] = 10.0,
    rules: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A rule file in place of the mode's own.")
    ] = None,
) -> None:
    """Play matches between agents and show who wins."""
    from retinue.agents.registry import make_agent, split_specs
    from retinue.evaluation.progress import progress_bar
    from retinue.evaluation.report import fault_lines, standings_table
    from retinue.evaluation.session import play_session

    ruleset = choose_ruleset(mode, rules)
    specs = split_specs(agents)
    line_up = [make_agent(spec, ruleset, time_limit=time_limit) for spec in specs]
    with progress_bar("matches") as on_progress:
        session = play_session(
            line_up,
            ruleset,
            matches,
            seed,
            rotate=rotate,
            records=records,
            threads=threads,
            on_progress=on_progress,
        )
    if session.matches is not None:
        show(standings_table(session.matches, ruleset, rotated=rotate))
    for line in fault_lines(line_up):
        complain(line)
    if session.interrupted:
        done = 0 if session.matches is None else len(session.matches)
        complain(f"interrupted after {done:,} of {matches:,} matches")
        raise typer.Exit(INTERRUPTED)


@app.command(
    epilog="Examples: retinue replay --verify games/   |   retinue replay FILE --video match.gif"
)
def replay(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Records (.jsonl), or folders of them.")
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Only check that the records fit the rules.")
    ] = False,
    board: Annotated[
        bool, typer.Option("--board/--no-board", help="Show the board after every turn.")
    ] = True,
    video: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Make a video: .gif or .mp4.")
    ] = None,
    frame: Annotated[
        tuple[int, Path] | None,
        typer.Option(metavar="N OUT", help="Draw the position after N turns: .png."),
    ] = None,
    fps: Annotated[
        float | None, typer.Option(help="Turns a second in a video, 0.1 to 50; by default 3.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Width in pixels, 360 to 2160; by default 720.")
    ] = None,
) -> None:
    """Show a recorded match turn by turn or draw it, or verify many."""
    from retinue.envs.game.record import MatchReplay, RecordError
    from retinue.evaluation.progress import progress_bar
    from retinue.evaluation.records import find_records, tell, verify_records
    from retinue.evaluation.video import VideoError, write_frame, write_video

    if verify + (video is not None) + (frame is not None) > 1:
        raise typer.BadParameter("give one of --verify, --video and --frame")
    if (fps is not None and not video) or (size is not None and not (video or frame)):
        raise typer.BadParameter("--fps goes with --video, --size with --video or --frame")
    found = find_records(files)
    if verify:
        with progress_bar("records") as on_progress:
            verdict = verify_records(found, on_progress)
        print(printable(str(verdict)))
        if verdict.refused:
            complain(str(verdict.refused[0]))
            raise typer.Exit(DOES_NOT_FIT)
        return
    if len(found) > 1:
        raise typer.BadParameter(f"{len(found)} records; one is shown at a time, or --verify them")
    try:
        match, width = MatchReplay(found[0]), 720 if size is None else size
        if frame is not None:
            write_frame(match, *frame, width)
        elif video is not None:
            with progress_bar("turns") as on_progress:
                write_video(match, video, 3.0 if fps is None else fps, width, on_progress)
        else:
            for text in tell(match, with_board=board):
                print(text)
    except (RecordError, VideoError) as error:
        complain(str(error))
        raise typer.Exit(DOES_NOT_FIT if isinstance(error, RecordError) else BAD_INPUT) from error


@app.command(epilog="Example: retinue stats games/ --format csv")
def stats(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Records (.jsonl), or folders of them.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="For the tables.")] = Path("tables"),
    form: Annotated[str, typer.Option("--format", help="parquet or csv.")] = "parquet",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace earlier tables.")] = False,
) -> None:
    """Make tables of recorded matches, a row a match and a row a turn, for pandas or polars."""
    from retinue.envs.game.record import RecordError
    from retinue.evaluation.progress import progress_bar
    from retinue.evaluation.records import find_records
    from retinue.evaluation.tables import FORMATS, write_tables

    if form not in FORMATS:
        raise typer.BadParameter(f"unknown format {form!r}: use {' or '.join(FORMATS)}")
    found = find_records(files)
    try:
        with progress_bar("records") as on_progress:
            tables = write_tables(found, out, form, on_progress, overwrite=overwrite)
    except RecordError as error:
        complain(f"{error} (no table was written)")
        raise typer.Exit(DOES_NOT_FIT) from error
    print(*map(printable, tables.in_words()), sep="\n")


@app.command(epilog="Example: retinue rules brawl")
def rules(
    source: Annotated[str, typer.Argument(metavar="MODE|FILE", help="journey, brawl or a file.")],
) -> None:
    """Show every number of the rules and where it comes from."""
    from retinue.envs.game.ruleset import load_ruleset
    from retinue.evaluation.report import rules_table

    show(rules_table(load_ruleset(source)))


@app.command(epilog="Example: retinue agents")
def agents() -> None:
    """List the agents that can be given a seat."""
    from retinue.agents.registry import agent_options, known_agents
    from retinue.agents.zoo import residents
    from retinue.evaluation.policy_report import zoo_table
    from retinue.evaluation.report import agents_table

    show(agents_table(known_agents(), agent_options()))
    if found := residents():
        print()
        show(zoo_table(found))


@app.command(
    epilog="Examples: retinue train configs/train/quick.yaml --set seed=2   |   "
    "retinue train --resume runs/quick"
)
def train(
    config: Annotated[
        Path | None,
        typer.Argument(
            metavar="CONFIG", help="A configuration (YAML), or the name of a shipped one."
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change one value, e.g. ppo.epochs=4."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The run's folder; by default a new one in runs/."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Go on with the run in this folder.")
    ] = None,
) -> None:
    """Train a policy with PPO, measure it, and keep everything in a run folder."""
    from retinue.agents.zoo import as_path
    from retinue.training.config import load_config
    from retinue.training.measure import table_of
    from retinue.training.ppo import check_names
    from retinue.training.ppo import train as train_policy
    from retinue.training.run_folder import RunFolder, free_folder

    if resume is not None:
        if config is not None or assignments or out is not None:
            raise typer.BadParameter("a resumed run keeps its configuration and folder")
        run, chosen = RunFolder.open(resume)
    elif config is not None:
        _refuse_unknown_name(config)
        chosen = load_config(config, assignments or [])
        check_names(chosen)
        run = RunFolder.create(out or free_folder(Path("runs") / config.stem), chosen)
    else:
        raise typer.BadParameter("give a CONFIG to start a run, or --resume DIR to go on with one")
    result = train_policy(chosen, run, resume=resume is not None)
    if result is None:
        again = shlex.join(["retinue", "train", "--resume", str(run.path)])
        complain(f"interrupted; go on with: {again}")
        raise typer.Exit(INTERRUPTED)
    show(table_of(result))
    agent = f"policy:{as_path(run.path)}"
    print(printable(f"The policy is in {run.policy}; let it play: --agents {agent},..."))


app.command(epilog="Example: retinue export runs/quick --out quick.onnx")(export)
app.command(epilog="Example: retinue curves runs/quick --out quick.svg")(curves)
app.command(epilog="Example: retinue measure quick.onnx --against tactician")(measure)
app.command(
    epilog="Example: retinue rate quick.onnx --tournament runs/cup --agent policy:quick.onnx"
)(rate)
app.command(name="model-card", epilog="Example: retinue model-card quick.onnx")(model_card)
app.command(
    epilog="Examples: retinue tune --mode brawl --out mine.yaml   |   "
    "retinue tune --rules my.yaml --start tactician --out mine.yaml"
)(tune)
app.command(
    epilog="Examples: retinue serve   |   retinue serve --port 9000 --agent mine=policy:mine.onnx"
)(serve)
app.command(epilog="Example: retinue bench --json bench.json")(bench)
app.command(epilog="Example: retinue bench-generator --mode brawl --blocks 100")(bench_generator)
app.command(epilog="Example: retinue bench-serve http://127.0.0.1:8765 --agent tactician")(
    bench_serve
)
app.command(
    epilog="Examples: retinue cross-table --agents tactician,greedy,racer --out runs/small   |   "
    "retinue cross-table --agents bots/bot.py:MyBot,tactician,hunter --mode brawl"
)(cross_table)
app.command(
    epilog="Example: retinue tournament --mode brawl --agents greedy,hunter,bot.py:MyBot,racer"
)(tournament)
app.command(epilog="Example: retinue compare tactician greedy --mode brawl --margin 0.1")(compare)
app.command(epilog="Example: retinue calibrate --comparisons 500")(calibrate)
app.command(epilog="Example: retinue vectors --out docs/vectors")(vectors)


# --- The command itself


def _refuse_unknown_name(config: Path) -> None:
    """Refuse a bare name that is no shipped configuration's; a path is for the loader to judge."""
    from retinue.envs.game.schema import SchemaError
    from retinue.training.config import SHIPPED

    if config.suffix or len(config.parts) > 1:
        return
    names = sorted(
        Path(each.name).stem for each in SHIPPED.iterdir() if each.name.endswith(".yaml")
    )
    if str(config) not in names:
        raise SchemaError(
            f"unknown configuration {str(config)!r}: use a .yaml file or one of: {', '.join(names)}"
        )


def _input_errors() -> tuple[type[Exception], ...]:
    """Return what bad input raises; anything else is a bug and keeps its traceback."""
    from retinue.agents.policy import PolicyError
    from retinue.agents.registry import AgentError
    from retinue.envs.game.record import RecordError
    from retinue.envs.game.schema import SchemaError
    from retinue.envs.strategy_file import StrategyError
    from retinue.evaluation.arena import ArenaError

    # Training is only loaded by `train`, `curves`, `export` and `tune`.
    training = sys.modules.get("retinue.training.run_folder")
    tuning = sys.modules.get("retinue.training.tune_config")
    run_errors = (training.RunError,) if training else ()
    tune_errors = (tuning.TuneError,) if tuning else ()
    known = (AgentError, ArenaError, PolicyError, RecordError, SchemaError, StrategyError)
    return (*known, OSError, *run_errors, *tune_errors)


_UsageError: Any = typer.BadParameter.__bases__[0]  # wherever this typer keeps click's


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; without arguments it shows the help."""
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if sys.stdout is None:  # it was closed
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for names that it cannot show
    command = typer.main.get_command(app)
    try:
        code = command.main(words, prog_name="retinue", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):  # before or after a subcommand's own work
        complain("interrupted")
        code = INTERRUPTED
    except _UsageError as error:
        path = error.ctx.command_path if error.ctx else "retinue"
        complain(f"{error.format_message().rstrip('.')} (see `{path} --help`)")
        return BAD_INPUT
    except (BrokenPipeError, SystemExit):  # the reader has seen enough; typer answers by exiting
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if not isinstance(error, _input_errors()):
            raise
        complain(str(error))
        return BAD_INPUT
    return code if isinstance(code, int) else DONE


if __name__ == "__main__":
    sys.exit(main())
