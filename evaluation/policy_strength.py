"""How strong a policy in a file is: measured, or as a tournament says; noted in its manifest."""

from collections.abc import Callable, Iterable
from pathlib import Path

from retinue.agents.artifact import (
    ArtifactManifest,
    Rating,
    Strength,
    as_text,
    manifest_path,
    read_artifact,
)
from retinue.agents.policy import PolicyError
from retinue.agents.registry import make_known_agent
from retinue.agents.zoo import as_path
from retinue.envs.game.board import SEATS
from retinue.envs.game.files import check_writable, write_atomically
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import from_json
from retinue.evaluation.arena import rotated
from retinue.evaluation.policy_report import card_path, write_card
from retinue.evaluation.statistics import block_means, estimate_share
from retinue.evaluation.summary import TournamentSummary


def measure_strength(
    path: Path,
    against: str,
    ruleset: Ruleset,
    blocks: int,
    seed: int,
    command: str,
    *,
    threads: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Strength:
    """Play a policy against three of another agent and note its first places in its manifest.

    What the manifest said against the same agent is replaced, and the card is made again.

    Args:
        path: of the ONNX file.
        against: the specification of an agent.
        ruleset: that the policy plays under.
        blocks: of ``SEATS`` matches with the same dice, the policy once in each seat.
        seed: of the first block's dice.
        command: what measures it again, for the manifest.
        threads: of the matches; by default all cores.
        on_progress: is told how many matches have been played, of how many.

    Raises:
        PolicyError: the file, or its manifest, cannot be used.
        AgentError: the other agent cannot.
        OSError: manifest or card cannot be written.
    """
    for each in (manifest_path(path), card_path(path)):
        check_writable(each)
    agents = [
        make_known_agent(f"policy:{as_path(path)}", ruleset),
        *[make_known_agent(against, ruleset)] * (SEATS - 1),
    ]
    matches = rotated(agents, ruleset, blocks, seed, threads=threads, on_progress=on_progress)
    firsts = matches.by_agent(matches.first_shares)[:, 0]
    share = estimate_share(block_means(firsts, SEATS))
    strength = Strength(
        against=f"three {against}",
        share=share.value,
        low=share.low,
        high=share.high,
        matches=blocks * SEATS,
        command=command,
    )
    _note(path, strength)
    return strength


def note_rating(path: Path, summary: Path, name: str) -> Rating:
    """Note in a policy's manifest what a tournament says of it, and make the card again.

    Args:
        path: of the ONNX file.
        summary: ``summary.json`` of the tournament.
        name: under which the policy took part.

    Returns:
        The rating.

    Raises:
        PolicyError: the tournament had no such agent, or other rules.
        SchemaError: the summary is damaged.
        OSError: a file cannot be read or written.
    """
    found = from_json(TournamentSummary, summary.read_text(encoding="utf-8"))
    manifest = read_artifact(path)
    if (found.mode, found.rules) != (manifest.mode, manifest.rules_digest):
        raise PolicyError(
            f"{summary}: a tournament of {found.mode} with rules {found.rules}, {path} plays "
            f"{manifest.mode} with rules {manifest.rules_digest}"
        )
    agents = {each.name: each for each in found.agents}
    if name not in agents:
        raise PolicyError(f"{summary}: no agent {name!r} took part; {', '.join(agents)} did")
    rating = agents[name].rating
    noted = Rating(
        value=rating.value, low=rating.low, high=rating.high, against=_field_of(found, agents)
    )
    _write(path, manifest.model_copy(update={"rating": noted}))
    return noted


def _field_of(found: TournamentSummary, agents: Iterable[str]) -> str:
    """Say who took part in a tournament, and whose rating is 0."""
    zero = "the mean of all" if found.pinned is None else found.pinned
    return (
        f"tournament of {found.blocks:,} blocks, seed {found.seed}, among {', '.join(agents)}; "
        f"{zero} is 0"
    )


def _note(path: Path, strength: Strength) -> None:
    """Put a measurement into a manifest, in the place of an older one against the same."""
    manifest = read_artifact(path)
    known = {each.against: each for each in manifest.strength}
    known[strength.against] = strength
    _write(path, manifest.model_copy(update={"strength": tuple(known.values())}))


def _write(path: Path, manifest: ArtifactManifest) -> None:
    write_atomically(manifest_path(path), as_text(manifest))
    write_card(path)
