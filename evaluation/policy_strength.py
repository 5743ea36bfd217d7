"""How strong a policy in a file is: measured from the file, and written into its manifest."""

from collections.abc import Callable
from pathlib import Path

from retinue.agents.artifact import Strength, as_text, manifest_path, read_artifact
from retinue.agents.registry import make_known_agent
from retinue.agents.zoo import as_path
from retinue.envs.game.board import SEATS
from retinue.envs.game.files import check_writable, write_atomically
from retinue.envs.game.ruleset import Ruleset
from retinue.evaluation.arena import rotated
from retinue.evaluation.policy_report import card_path, write_card
from retinue.evaluation.statistics import block_means, estimate_share


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


def _note(path: Path, strength: Strength) -> None:
    """Put a measurement into a manifest, in the place of an older one against the same."""
    manifest = read_artifact(path)
    known = {each.against: each for each in manifest.strength}
    known[strength.against] = strength
    changed = manifest.model_copy(update={"strength": tuple(known.values())})
    write_atomically(manifest_path(path), as_text(changed))
    write_card(path)
