"""The subcommands of ``retinue`` that serve other frontends."""

from pathlib import Path
from typing import Annotated

import typer

from retinue.cli_common import BAD_INPUT, choose_ruleset, complain
from retinue.evaluation.text import printable


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; by default only this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8765,
    matches: Annotated[
        Path, typer.Option(metavar="DIR", help="For the records of hosted matches.")
    ] = Path("runs/hosted"),
    agent: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=AGENT", help="Let requests ask for an agent of yours as NAME."),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Let pages from there ask, e.g. https://game.example."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Among which policies share their work; by default all cores."),
    ] = None,
    most: Annotated[
        int, typer.Option("--most-matches", min=1, help="Hosted and not over, at once.")
    ] = 2000,
    idle: Annotated[
        float, typer.Option(min=0.01, metavar="HOURS", help="After which a match expires.")
    ] = 24.0,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="For a turn of an agent of your own.")
    ] = 10.0,
) -> None:
    """Serve opponents, a referee and hosted matches over HTTP, and a page to play on."""
    try:
        from retinue.agents.server.run import serve as serve_at
        from retinue.agents.server.settings import HOUR, Settings
        from retinue.envs.parallel import MAX_THREADS
    except ImportError as error:
        complain(f"serving needs libraries that are not installed ({error.name}): {_INSTALL}")
        raise typer.Exit(BAD_INPUT) from error
    if threads is not None and threads > MAX_THREADS:
        complain(f"--threads must be 1 to {MAX_THREADS} here, not {threads}")
        raise typer.Exit(BAD_INPUT)
    settings = Settings(
        matches,
        agents=_named(agent or []),
        time_limit=time_limit,
        threads=threads or MAX_THREADS,
        origins=tuple(origin or []),
        matches=most,
        idle_seconds=idle * HOUR,
    )
    serve_at(settings, host, port, lambda address: _say(f"{address} serves; Ctrl-C ends it"))
    _say("ended; all matches are on disk")


def bench_serve(
    url: Annotated[str, typer.Argument(metavar="URL", help="Of a service that runs.")],
    agent: Annotated[str, typer.Option(metavar="AGENT", help="Who decides.")] = "policy:hard",
    mode: Annotated[str, typer.Option(metavar="MODE", help="journey or brawl.")] = "journey",
    clients: Annotated[int, typer.Option(min=1, max=256, help="That ask at once.")] = 32,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="How long.")] = 10.0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures there too.")
    ] = None,
) -> None:
    """Measure a service: decisions a second, and how long each takes."""
    import json

    from retinue.envs.game.files import check_writable, write_atomically
    from retinue.evaluation.benchmark import machine
    from retinue.evaluation.service_load import LoadError, measure_load

    ruleset = choose_ruleset(mode)
    if json_file is not None:
        check_writable(json_file)
    try:
        load = measure_load(url, agent, ruleset, clients, seconds)
    except LoadError as error:
        complain(str(error))
        raise typer.Exit(BAD_INPUT) from error
    print(printable(str(load)))
    if json_file is not None:
        figures = {"machine": machine(), **load.to_json()}
        write_atomically(json_file, json.dumps(figures, indent=2) + "\n")


_INSTALL = "pip install retinue[serve]"


def _named(pairs: list[str]) -> dict[str, str]:
    """Return specifications by name.

    Raises:
        typer.BadParameter: one has no name, or another's.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, spec = pair.partition("=")
        if not equals or not spec:
            raise typer.BadParameter(f"--agent {pair}: give NAME=AGENT, e.g. mine=policy:mine.onnx")
        if name in found:
            raise typer.BadParameter(f"--agent {pair}: {name} is given twice")
        found[name] = spec
    return found


def _say(text: str) -> None:
    print(printable(f"retinue: {text}"), flush=True)
