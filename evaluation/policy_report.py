"""What the manifest of a trained policy says, for people: its card, and the zoo as a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from retinue.agents.artifact import ArtifactManifest, Strength, read_artifact
from retinue.agents.policy import Lookahead
from retinue.agents.zoo import Resident
from retinue.envs.game.files import write_atomically
from retinue.evaluation.report import percent
from retinue.evaluation.statistics import Estimate
from retinue.evaluation.text import printable

_CARD: Final = """\
# {name}

<!-- Made from {name}.json by `retinue model-card`; change it there. -->

A policy for {title} that learned by playing, with masked PPO.

| | |
|---|---|
| plays | {title}, under the rules `{rules}` only |
| sees | {size} numbers, observation version {observation} |
| chooses | {choices} |
| looks ahead | {lookahead} |
| hidden layers | {widths} |
| file | `{name}.onnx`, SHA-256 `{sha256}` |
| licence | {licence} |

## Strength

{strength}

## Training

{decisions} decisions, with

```console
{command}
```

and this configuration:

```yaml
{configuration}
```

Versions: {versions}.

## Use and limits

It is meant as an opponent, as a yardstick for other agents, and to learn from:

```console
$ retinue play --mode {mode} --agents policy:{name}.onnx,racer,racer,racer
```

- Under rules other than those above it is refused.
- Nothing about it is secret: who has the file and a decision's key can foretell its turn.
- Its strength is known against the opponents in the table alone; others may find it weaker.
- It learned what the configuration's reward pays, from the opponents named there.

## Licence

{licence}, as Retinue itself.
"""


def card_path(path: Path) -> Path:
    """Return where the card of an ONNX file is."""
    return path.with_suffix(".md")


def write_card(path: Path) -> Path:
    """Write the card of an ONNX file beside it, from its manifest, and return where it is.

    Raises:
        PolicyError: there is no manifest, or it is damaged.
        OSError: the card cannot be written.
    """
    card = card_path(path)
    write_atomically(card, model_card(path.stem, read_artifact(path)))
    return card


def model_card(name: str, manifest: ArtifactManifest) -> str:
    """Return the card of a policy as Markdown.

    Args:
        name: of its file, without the suffix.
        manifest: of it.
    """
    choices = f"one of {manifest.mask_size} proposed turns"
    widths = _widths(manifest.hidden)
    if manifest.encoding == "candidates":
        widths += f"; of the value {_widths(manifest.value_hidden)}"
    else:
        choices = f"actions of `{manifest.encoding}`, {manifest.mask_size} choices in all"
    return _CARD.format(
        name=name,
        mode=manifest.mode,
        title=manifest.mode.capitalize(),
        rules=manifest.rules_digest,
        observation=manifest.observation_version,
        size=manifest.observation_size,
        choices=choices,
        lookahead=_lookahead(manifest.lookahead),
        widths=widths,
        sha256=manifest.sha256,
        licence=manifest.licence,
        strength="\n".join(_strength(manifest)),
        decisions=f"{manifest.decisions:,}",
        command="\n".join(f"$ {line}" for line in manifest.command),
        configuration=yaml.safe_dump(manifest.configuration, sort_keys=False).rstrip(),
        versions=", ".join(f"{key} {value}" for key, value in manifest.versions.items()),
    )


def zoo_table(residents: Sequence[Resident]) -> Table:
    """Return the zoo as a table: who is there, and how strong."""
    table = Table(box=SIMPLE, show_edge=False, padding=(0, 1, 0, 0), title_justify="left")
    table.title = "The zoo: trained policies, and their first places (par 25%)"
    table.add_column("agent", no_wrap=True)
    table.add_column("mode", no_wrap=True)
    table.add_column("rating (95%)", justify="right")
    table.add_column("against")
    table.add_column("first (95%)", justify="right", no_wrap=True)
    for each in residents:
        rating = each.manifest.rating
        rated = f"{rating.value:.0f} ({rating.low:.0f} to {rating.high:.0f})" if rating else ""
        head = (f"policy:{each.level}", each.mode, rated)
        if not each.manifest.strength:
            table.add_row(*head, "not measured", "")
        for found in each.manifest.strength:
            table.add_row(*head, Text(printable(found.against)), percent(_estimate(found)))
            head = ("", "", "")
    return table


def _lookahead(settings: Lookahead | None) -> str:
    if settings is None:
        return "no: it plays as its network says"
    return (
        f"tries its {settings.top} favourites, {settings.rollouts} rollout(s) of each until its "
        f"next decision, {settings.candidates} candidates within, the others taken for "
        f"`{settings.opponents}`"
    )


def _strength(manifest: ArtifactManifest) -> list[str]:
    lines = []
    if (rating := manifest.rating) is not None:
        interval = f"95% interval {rating.low:.0f} to {rating.high:.0f}"
        lines += [f"Rating {rating.value:.0f}, {interval}: {rating.against}.", ""]
    if not manifest.strength:
        return [*lines, "First places are not measured."]
    lines += [
        "Share of first places against three others; par is 25%.",
        "",
        "| against | first places | 95% interval | matches | measured by |",
        "|---|---|---|---|---|",
    ]
    for found in manifest.strength:
        interval = f"{found.low:.1%} to {found.high:.1%}"
        cells = (_code(found.against), f"{found.share:.1%}", interval, f"{found.matches:,}")
        lines.append(f"| {' | '.join(cells)} | {_code(found.command)} |")
    return lines


def _estimate(found: Strength) -> Estimate:
    return Estimate(found.share, found.low, found.high, found.matches)


def _code(text: str) -> str:
    """Return text as code in a Markdown table."""
    escaped = " ".join(text.split()).replace("|", "\\|")
    return f"`{escaped}`"


def _widths(widths: tuple[int, ...]) -> str:
    return " and ".join(map(str, widths))
