"""The subcommand of ``retinue`` that writes test vectors for frontends in other languages."""

from pathlib import Path
from typing import Annotated

import typer

from retinue.evaluation.text import printable


def vectors(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for them; files there are replaced.")
    ],
) -> None:
    """Write test vectors: dice, rules, observations, masks, actions and policies, with answers."""
    from retinue.agents.vectors import write_vectors

    files = write_vectors(out)
    size = sum(path.stat().st_size for path in files)
    print(printable(f"{out}: {len(files)} files, {size:,} bytes; docs/frontends.md explains them"))
