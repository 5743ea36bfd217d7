"""Test vectors that need agents: recorded matches, and what policies in ONNX files make of them.

:func:`write_vectors` writes all files of ``docs/vectors``; ``docs/frontends.md`` explains them.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from retinue.agents.artifact import ArtifactManifest, digest_of, write_artifact
from retinue.agents.policy import Model, PolicyAgent, Returns, manifest_of, masked_choice
from retinue.agents.registry import make_agent
from retinue.envs import vectors
from retinue.envs.actions import Encoding
from retinue.envs.game import dice
from retinue.envs.game.files import write_atomically
from retinue.envs.game.record import Recorder
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.game.schema import build
from retinue.envs.game.state import GAME, OVER
from retinue.envs.opponents import View
from retinue.envs.vectors import Content, Position, bits, considered, numbers

COMMAND: Final = "retinue vectors --out docs/vectors"

# Agents of a few lines each, which nobody tunes: the matches stay the same. One ends with all
# seats finished, the other by the clock.
_MATCHES: Final = {
    "journey": (("racer", "spread", "spread", "racer"), 1),
    "brawl": (("racer", "spread", "racer", "random"), 1),
}
_FROM_A_MATCH: Final = 12
"""About how many positions are taken from each match, spread over it."""
_POLICIES: Final = (("journey", "turn"), ("journey", "steps"), ("brawl", "turn"))
_EVERY: Final = 2
"""A policy is shown every second position."""
_HIDDEN: Final = (24,)
_VALUE_HIDDEN: Final = (8,)
_SPREAD: Final = 0.3
"""Standard deviation of weights: so large that an untrained policy's choices differ."""
_RETURNS: Final = Returns(mode="margin", scale=300.0, place_bonus=2.0, discount=0.98)


class _Case(NamedTuple):
    """Logits to choose from, with what it is about."""

    what: str
    nvec: tuple[int, ...]
    logits: tuple[float, ...]
    mask: str


_CHOICES: Final = (
    _Case("the largest", (4,), (0.5, -1.0, 2.0, 1.0), "1111"),
    _Case("the largest legal one", (4,), (0.5, -1.0, 2.0, 1.0), "1101"),
    _Case("the only legal one", (4,), (0.5, -1.0, 2.0, 1.0), "0100"),
    _Case("the first of equal ones", (4,), (-1.0, 2.0, 2.0, 2.0), "1011"),
    _Case("even: they differ by less than 0.0001", (2,), (1.0, 1.00005), "11"),
    _Case("not even: they differ by more", (2,), (1.0, 1.0003), "11"),
    _Case("even to the best, not to one another", (3,), (1.0, 1.00008, 1.00016), "111"),
    _Case("even: a millionth of the largest", (2,), (300.0, 300.0002), "11"),
    _Case("of the largest in size, even if illegal", (3,), (0.0, 0.004, 9000.0), "110"),
    _Case("and even if negative", (3,), (0.0, 0.004, -9000.0), "110"),
    _Case("each part by itself", (2, 3), (0.0, 0.004, 9000.0, 1.0, 2.0), "11011"),
    _Case("each part's own mask", (2, 3), (0.0, 1.0, 3.0, 2.0, 1.0), "10011"),
)


def write_vectors(folder: Path) -> list[Path]:
    """Write all test vectors to a folder, which is made if there is none.

    Args:
        folder: where; files of the same names are replaced.

    Returns:
        the files, by name.

    Raises:
        OSError: it cannot be written.
        PolicyError: an exported policy does not play as it should.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder}: is a file; give a folder")
    records = {mode: _record(load_ruleset(mode)) for mode in _MATCHES}
    positions = {mode: _positions(record) for mode, record in records.items()}
    texts = {
        f"match-{mode}.jsonl": "".join(f"{line}\n" for line in record.lines)
        for mode, record in records.items()
    }
    contents = {
        "rules": vectors.rules_vectors(),
        "dice": vectors.dice_vectors(),
        "board": vectors.board_vectors(),
        "turns": vectors.turn_vectors(),
        **{
            f"positions-{mode}": vectors.position_vectors(positions[mode], load_ruleset(mode))
            for mode in _MATCHES
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    policies = [
        _policy(folder, Encoding(name, load_ruleset(mode)), positions[mode])
        for mode, name in _POLICIES
    ]
    contents["policies"] = {"choices": [_choice(case) for case in _CHOICES], "policies": policies}
    texts |= {f"{name}.json": vectors.to_text(content) for name, content in contents.items()}
    for name, text in texts.items():
        write_atomically(folder / name, text)
    names = [*texts, *(each["file"] for each in policies), *(each["manifest"] for each in policies)]
    return [folder / name for name in sorted(names)]


def _record(ruleset: Ruleset) -> Recorder:
    """Play a match and return its record."""
    names, seed = _MATCHES[ruleset.mode]
    recorder = Recorder(ruleset, names, seed)
    agents = [make_agent(name, ruleset) for name in names]
    rng = np.random.default_rng(seed)
    while recorder.game["phase"] != OVER:
        recorder.roll()
        game = recorder.game
        key = dice.derive(np.uint64(seed), int(game["turn"]))
        view = View(np.array([game], GAME), np.array([key], np.uint64), ruleset)
        recorder.play(agents[int(game["seat"])].choose(view, rng)[0])
    return recorder


def _positions(record: Recorder) -> list[Position]:
    """Return positions of a match, from its first turn to its last, and some of no match."""
    start, *turns = [json.loads(line) for line in record.lines[:-1]]
    every = len(turns) // _FROM_A_MATCH
    chosen = sorted({*range(0, len(turns), every), 1, 2, 3, len(turns) - 1})
    found = [
        Position(
            f"turn {index} of match-{record.ruleset.mode}.jsonl",
            turns[index - 1]["after"] if index else start["start"],
            turns[index]["rolled"],
            record.ruleset,
        )
        for index in chosen
    ]
    return [*found, *vectors.crowded_positions(record.ruleset)]


def _policy(folder: Path, encoding: Encoding, positions: Sequence[Position]) -> Content:
    """Write an untrained policy as an ONNX file, and return what it chooses in positions."""
    import torch

    from retinue.agents.network import network_for
    from retinue.agents.onnx_export import check_same, to_onnx
    from retinue.agents.policy import TorchModel

    network = network_for(encoding, _HIDDEN, _VALUE_HIDDEN).eval()
    chance = torch.Generator().manual_seed(1)
    for weights in network.parameters():
        torch.nn.init.normal_(weights, std=_SPREAD, generator=chance)
    content = to_onnx(network, encoding)
    model = TorchModel(network)
    steps = [step for each in positions for step in _chosen(each, encoding, model)[1]]
    seen = np.array([step.observation for step in steps])
    masks = np.array([step.mask for step in steps])
    path = folder / f"policy-{encoding.ruleset.mode}-{encoding.name}.onnx"
    playing: list[PolicyAgent] = []

    def check(agent: PolicyAgent) -> None:
        check_same(agent.model, model, encoding.nvec, (seen, masks))
        playing.append(agent)

    write_artifact(path, content, _manifest(encoding, content), encoding.ruleset, check)
    return {
        "file": path.name,
        "manifest": path.with_suffix(".json").name,
        "mode": encoding.ruleset.mode,
        "encoding": encoding.name,
        "decisions": list(_decisions(positions, encoding, playing[0].model)),
    }


def _manifest(encoding: Encoding, content: bytes) -> ArtifactManifest:
    """Return the manifest of a policy that nothing was trained for."""
    policy = manifest_of(encoding, _HIDDEN, _VALUE_HIDDEN, 0, _RETURNS)
    return build(
        ArtifactManifest,
        {
            **policy.model_dump(mode="json"),
            "format": "retinue-artifact",
            "version": 1,
            "observation_size": encoding.layout().size,
            "mask_size": encoding.mask_size,
            "command": [COMMAND],
            "configuration": {},
            "versions": {},
            "licence": "MIT",
            "strength": [],
            "sha256": digest_of(content),
        },
        "the manifest of a test vector",
    )


def _chosen(
    position: Position, encoding: Encoding, model: Model
) -> tuple[Content, list[vectors.Step]]:
    """Return the turn that a policy plays in a position, and its steps."""

    def choose(observation: Any, mask: Any) -> Any:
        logits, _ = model.evaluate(observation[np.newaxis])
        action = masked_choice(logits, mask[np.newaxis], encoding.nvec)[0]
        return action if len(encoding.nvec) > 1 else action[0]

    return considered(position, encoding, choose)


def _decisions(
    positions: Sequence[Position], encoding: Encoding, model: Model
) -> Iterator[Content]:
    for index in range(0, len(positions), _EVERY):
        turn, steps = _chosen(positions[index], encoding, model)
        yield {
            "position": index,
            "steps": [
                {
                    "logits": numbers(model.evaluate(step.observation[np.newaxis])[0]),
                    "action": step.action.tolist(),
                }
                for step in steps
            ],
            "turn": turn,
        }


def _choice(case: _Case) -> Content:
    """Return what is chosen of logits."""
    logits = np.array([case.logits], np.float32)
    mask = np.array([[each == "1" for each in case.mask]])
    return {
        "what": case.what,
        "nvec": list(case.nvec),
        "logits": numbers(logits),
        "mask": bits(mask[0]),
        "action": masked_choice(logits, mask, case.nvec)[0].tolist(),
    }
