"""Policies in ONNX files: they play what was trained, and whatever does not fit is refused."""

import copy
import pickle
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from exporting import (
    RULES,
    by_hand,
    content_of,
    encoding_of,
    manifest_for,
    network_of,
    put,
    torch_agent,
)
from positions import JOURNEY
from retinue.agents.artifact import LARGEST, OnnxModel, load_artifact, read_artifact, write_artifact
from retinue.agents.network import network_for
from retinue.agents.onnx_export import check_same, played_positions, to_onnx
from retinue.agents.policy import (
    EVEN,
    PolicyAgent,
    PolicyError,
    even_within,
    load_policy,
    masked_choice,
)
from retinue.agents.registry import make_agent
from retinue.envs.actions import Encoding
from retinue.envs.batch import Batch
from retinue.envs.game import jit

TURN = encoding_of("turn")
CANDIDATES = encoding_of("candidates")
ENCODINGS = ("candidates", "turn", "steps")
BOTH_MODES = pytest.mark.parametrize("mode", RULES)

compiled_only = pytest.mark.skipif(not jit.ENABLED, reason="too much for plain Python")


def loaded(encoding: Encoding) -> OnnxModel:
    return OnnxModel(content_of(encoding), encoding)


# --- The same as what was trained


@compiled_only
@pytest.mark.parametrize(
    ("name", "count"), [("candidates", 10_000), ("turn", 1_000), ("steps", 1_000)]
)
@BOTH_MODES
def test_it_computes_and_chooses_what_the_network_does(mode: str, name: str, count: int) -> None:
    encoding = encoding_of(name, RULES[mode])
    network, model = torch_agent(encoding).model, loaded(encoding)
    positions = observations, masks = played_positions(model, encoding, count)
    assert observations.shape == (count, encoding.layout().size)
    assert len(np.unique(observations, axis=0)) > 0.9 * count
    check_same(model, network, encoding.nvec, positions)
    found, right = (each.evaluate(observations) for each in (model, network))
    np.testing.assert_allclose(found[0], right[0], rtol=0, atol=1e-4)
    assert (found[1] is None, right[1] is None) == (not encoding.is_candidates,) * 2
    chosen = [masked_choice(logits, masks, encoding.nvec) for logits, _ in (found, right)]
    assert len(np.unique(chosen[0], axis=0)) > 3
    differs = (chosen[0] != chosen[1]).any(axis=1)
    if not encoding.is_candidates:
        assert not differs.any()
    # Where one is just as much better than the other as may still be even, rounding decides.
    assert differs.mean() < 0.001
    rounding = np.abs(found[0] - right[0])[differs].max(axis=1, initial=0)
    for logits in (found[0][differs], right[0][differs]):
        one, other = (np.take_along_axis(logits, each[differs], 1) for each in chosen)
        margin = np.abs(one - other) - even_within(logits)
        assert (np.abs(margin[:, 0]) <= 2 * rounding).all()


@compiled_only
@pytest.mark.parametrize("name", ENCODINGS)
@BOTH_MODES
def test_it_plays_the_turns_that_the_network_plays(tmp_path: Path, mode: str, name: str) -> None:
    encoding = encoding_of(name, RULES[mode])
    agent = load_artifact(put(tmp_path / "a.onnx", encoding), encoding.ruleset)
    batches = [
        Batch(
            encoding.ruleset, 3, seats="none", opponents=[each, "racer"], keep_turns=True, threads=1
        )
        for each in (agent, torch_agent(encoding))
    ]
    for batch in batches:
        batch.play_out([1, 2, 3], [[0, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0]])
    assert batches[0].terminated.all()
    assert (batches[0].trace == batches[1].trace).all()
    assert (batches[0].final_totals == batches[1].final_totals).all()
    guards = batches[0].trace["rolls"].any(axis=(2, 3))
    assert guards.mean() > 0.1


@compiled_only
def test_a_choice_does_not_depend_on_what_is_looked_at_beside_it() -> None:
    """Logits do, by rounding, and what candidates lead to is often the same to the last fact."""
    encoding = encoding_of("candidates", JOURNEY, 32)
    model = torch_agent(encoding, (64, 32)).model
    observations, masks = played_positions(model, encoding, 2_000)
    together, _ = model.evaluate(observations)
    alone = np.concatenate([model.evaluate(each[None])[0] for each in observations])
    chosen = [masked_choice(logits, masks, encoding.nvec) for logits in (together, alone)]
    assert (chosen[0] == chosen[1]).all()


class Fixed:
    """Computes the same for every position."""

    def __init__(self, logits: Any, values: Any = None) -> None:
        numbers = [None if each is None else np.array([each], "f4") for each in (logits, values)]
        self._found = tuple(numbers)

    def evaluate(self, observations: Any) -> Any:
        return self._found


@pytest.mark.parametrize(
    ("found", "right", "message"),
    [
        (([0, 1, 3.5], 2), ([0, 1, 3], 2), "the logits of the ONNX file differ by 0.5"),
        (([0, np.nan, 3], 2), ([0, 1, 3], 2), "the logits of the ONNX file differ by nan"),
        (([0, 1, 3], 2.5), ([0, 1, 3], 2), "the values of the ONNX file differ by 0.5"),
        (([0, 1, 3],), ([0, 1, 3], 2), "only one of the network and its ONNX file has values"),
        (([0, 1, 3], 2), ([0, 1, 3],), "only one of the network and its ONNX file has values"),
        (([6e-5, 7e-5, 3],), ([0, 1.2e-4, 3],), "worse to the network in 1 of 1 positions"),
        (([6e-5, 7e-5, 3],), ([0, 1.05e-4, 3],), None),  # even, but for rounding
        (([0, 1.00009, 3.00009], 2.00009), ([0, 1, 3], 2), None),
        (([2000.001, 2000, 0], 2), ([2000, 2000.001, 0], 2), None),  # as far as float32 tells
        (([2000.003, 2000, 0], 2), ([2000, 2000, 0], 2), "the logits .* at most 0.002 is allowed"),
    ],
)
def test_what_the_check_notices(found: Any, right: Any, message: str | None) -> None:
    positions = np.zeros((1, 5), np.float32), np.array([[True, True, False]])
    expected: Any = pytest.raises(PolicyError, match=message) if message else nullcontext()
    with expected:
        check_same(Fixed(*found), Fixed(*right), (3,), positions)


def test_even_choices_are_the_first_wherever_a_position_stands() -> None:
    """Rounding differs with the number of positions; it must not decide."""
    less, more = EVEN / 2, 2 * EVEN
    logits = np.array([[1, 3, 3 + less, 2], [5, 3, 3 - less, 2], [1, 3, 3 + more, 2]], "f4")
    masks = np.array([[True] * 4, [False, True, True, True], [True] * 4])
    assert masked_choice(logits, masks, (4,)).tolist() == [[1], [1], [2]]
    assert masked_choice(logits, masks, (2, 2)).tolist() == [[1, 0], [1, 0], [1, 0]]
    nothing = np.full((1, 3), np.nan, np.float32)
    assert masked_choice(nothing, np.array([[False, True, True]]), (3,)).tolist() == [[1]]


# --- One file


@pytest.mark.parametrize("name", ENCODINGS)
def test_it_is_one_small_file_that_tells_nothing_of_this_machine(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    encoding = encoding_of(name)
    content = to_onnx(network_of(encoding), encoding)
    assert content == content_of(encoding)
    assert tuple(capfd.readouterr()) == ("", "")
    weights = sum(each.numel() for each in network_of(encoding).parameters())
    assert 4 * weights < len(content) < 4 * weights + 20_000
    for part in (Path(__file__).parents[1], Path(torch.__file__).parents[1], Path.home()):
        assert str(part).encode() not in content
    assert b".py" not in content


def test_the_widest_network_of_the_recipes_is_small_enough() -> None:
    encoding = encoding_of("candidates", JOURNEY, 64)
    network = network_for(encoding, (256, 256), (128, 128)).eval()
    assert len(to_onnx(network, encoding)) < LARGEST


def test_it_plays_without_torch(tmp_path: Path) -> None:
    path = put(tmp_path / "a.onnx", TURN)
    program = f"""
import sys
import numpy as np
from retinue.agents.registry import make_agent
from retinue.envs.batch import Batch
from retinue.envs.game.ruleset import load_ruleset
rules = load_ruleset("journey")
make_agent("racer", rules)
print(sorted({{"onnx", "onnxruntime", "torch"}} & set(sys.modules)))
agent = make_agent({f"policy:{path}"!r}, rules)
agent.model.evaluate(np.zeros((3, agent.encoding.layout().size), np.float32))
print(sorted({{"onnx", "onnxruntime", "torch"}} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-2:] == ["[]", "['onnx', 'onnxruntime']"]


def test_it_takes_one_thread_unless_told_otherwise(tmp_path: Path) -> None:
    path = put(tmp_path / "a.onnx", TURN)
    for agent, threads in (
        (load_artifact(path, JOURNEY), 1),
        (load_artifact(path, JOURNEY, threads=2), 2),
    ):
        model: Any = agent.model
        options = model._session.get_session_options()
        assert options.intra_op_num_threads == threads
        assert options.inter_op_num_threads == 1


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_of_matches_go_on_with_it(copier: Any) -> None:
    agent = PolicyAgent(loaded(TURN), TURN, "policy")
    batch = Batch(JOURNEY, 2, seats=1, opponents=[agent], threads=1)
    batch.reset(3)
    twin = copier(batch)
    for _ in range(20):
        for each in (batch, twin):
            each.step(each.masks.argmax(axis=1))
    assert batch.opponents[0] is not twin.opponents[0]
    assert (batch.games == twin.games).all()


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "a.onnx", TURN)
    assert make_agent("policy:a.onnx", JOURNEY).name == "policy:a.onnx"
    assert load_policy(Path("a.onnx"), JOURNEY).name == "policy:a.onnx"
    assert load_artifact("a.onnx", JOURNEY).name == "policy:a.onnx"
    assert load_artifact("a.onnx", JOURNEY, name="other").name == "other"


# --- Written whole or not at all


def there(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_both_files_are_written(tmp_path: Path) -> None:
    seen: list[PolicyAgent] = []
    content = content_of(TURN)
    write_artifact(tmp_path / "a.onnx", content, manifest_for(TURN, content), JOURNEY, seen.append)
    assert set(there(tmp_path)) == {"a.onnx", "a.json"}
    assert (tmp_path / "a.onnx").read_bytes() == content
    assert read_artifact(tmp_path / "a.onnx") == manifest_for(TURN, content)
    assert [each.encoding for each in seen] == [TURN]
    assert load_artifact(tmp_path / "a.onnx", JOURNEY).encoding == TURN


def test_nothing_is_written_if_the_check_fails(tmp_path: Path) -> None:
    path, content = put(tmp_path / "a.onnx", TURN), by_hand(TURN).SerializeToString()
    before = there(tmp_path)

    def refuse(agent: PolicyAgent) -> None:
        assert len(there(tmp_path)) == 4
        raise PolicyError("plays otherwise")

    def stop(agent: PolicyAgent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(PolicyError, match=r"a\.onnx: was not written: plays otherwise"):
        write_artifact(path, content, manifest_for(TURN, content), JOURNEY, refuse)
    with pytest.raises(KeyboardInterrupt):
        write_artifact(path, content, manifest_for(TURN, content), JOURNEY, stop)
    with pytest.raises(PolicyError, match=r"was not written: .* is damaged or another's"):
        write_artifact(path, content, manifest_for(TURN, b"other"), JOURNEY, print)
    large = by_hand(TURN, mask=75).SerializeToString() + b"\0" * LARGEST
    with pytest.raises(PolicyError, match=r"at most 2,000,000 are allowed, so train with narrower"):
        write_artifact(path, large, manifest_for(TURN, large), JOURNEY, print)
    assert there(tmp_path) == before
