"""Files of trained policies that are not loaded, each for its reason."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from exporting import (
    by_hand,
    encoding_of,
    put,
)
from positions import BRAWL, JOURNEY, changed
from retinue.agents.artifact import load_artifact
from retinue.agents.policy import (
    PolicyError,
)
from retinue.agents.registry import AgentError, make_agent
from retinue.envs.actions import Encoding
from retinue.envs.game.ruleset import Ruleset

TURN = encoding_of("turn")
CANDIDATES = encoding_of("candidates")


def refusal(path: Path, ruleset: Ruleset = JOURNEY) -> str:
    """Return why a file is not loaded; as an agent it is refused in the same words."""
    with pytest.raises(PolicyError) as caught:
        load_artifact(path, ruleset)
    with pytest.raises(AgentError) as told:
        make_agent(f"policy:{path}", ruleset)
    assert str(told.value) == str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "retinue-policy"}, "a.json: format: Input should be 'retinue-artifact', not"),
        ({"version": 2}, "a.json: version: Input should be 1, not 2"),
        ({"mode": "chess"}, "a.json: mode: Input should be 'journey' or 'brawl', not 'chess'"),
        (
            {"mode": "brawl"},
            f"was trained for brawl with rules {JOURNEY.digest}, these are journey",
        ),
        (
            {"rules_digest": "0123"},
            f"with rules 0123, these are journey with rules {JOURNEY.digest}",
        ),
        ({"encoding": "moves"}, "encoding: Input should be 'steps', 'turn' or 'candidates', not"),
        (
            {"encoding": "steps"},
            "a.json: observation_size: must be 295 for the encoding steps, not",
        ),
        ({"encoding": "candidates"}, "observation_size: must be 1049 for the encoding candidates"),
        (
            {"observation_version": 7},
            "a.onnx: was trained on observation version 7, this is version",
        ),
        ({"observation_size": 12}, "observation_size: must be 293 for the encoding turn, not 12"),
        ({"mask_size": 12}, "a.json: mask_size: must be 75 for the encoding turn, not 12"),
        ({"candidates": 1}, "candidates: Input should be greater than or equal to 2, not 1"),
        ({"hidden": []}, "a.json: hidden: Tuple should have at least 1 item"),
        ({"decisions": -1}, "decisions: Input should be greater than or equal to 0, not -1"),
        ({"licence": "unknown"}, "a.json: licence: Input should be 'MIT', not 'unknown'"),
        ({"sha256": "x"}, "a.json: sha256: String should match pattern"),
        ({"sha256": "0" * 64}, "a.onnx: is damaged or another's: its SHA-256 is "),
        ({"maker": "me"}, "a.json: maker: unknown key"),
        ({"lookahead": {}}, "a.json: lookahead: must be null with the encoding turn; only"),
        ({"lookahead": {"top": 0}}, "lookahead.top: Input should be greater than or equal to 1"),
        ({"lookahead": {"depth": 2}}, "a.json: lookahead.depth: unknown key"),
        ({"strength": [{}]}, "a.json: strength[0].against: is missing"),
        (
            {"rating": {"value": 5, "low": 6, "high": 7, "against": "all"}},
            "a.json: rating: value 5.0 must be from low 6.0 to high 7.0",
        ),
    ],
)
def test_a_manifest_that_is_wrong(tmp_path: Path, changes: Any, message: str) -> None:
    path = put(tmp_path / "a.onnx", TURN)
    manifest = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps(manifest | changes))
    assert message in refusal(path)


@pytest.mark.parametrize(
    ("key", "value"), [("low", 0.6), ("high", 0.4), ("share", 1.5), ("matches", 0), ("share", None)]
)
def test_a_strength_that_cannot_be(tmp_path: Path, key: str, value: Any) -> None:
    right = {"against": "racer", "share": 0.5, "low": 0.4, "high": 0.6, "matches": 8, "command": ""}
    path = put(tmp_path / "a.onnx", TURN, strength=[right])
    assert load_artifact(path, JOURNEY).encoding == TURN
    manifest = json.loads(path.with_suffix(".json").read_text())
    manifest["strength"][0][key] = value if value != 0.6 else 0.55
    path.with_suffix(".json").write_text(json.dumps(manifest))
    assert "a.json: strength[0]" in refusal(path)


def test_other_rules(tmp_path: Path) -> None:
    path = put(tmp_path / "a.onnx", TURN)
    house = changed(JOURNEY, max_credits=3)
    assert f"these are journey with rules {house.digest}" in refusal(path, house)
    assert f"these are brawl with rules {BRAWL.digest}" in refusal(path, BRAWL)


def test_files_that_are_not_there_or_damaged(tmp_path: Path) -> None:
    path = put(tmp_path / "a.onnx", TURN)
    content, beside = path.read_bytes(), path.with_suffix(".json")
    for damaged in (content[:-1], content[:5000] + b"?" + content[5001:], b""):
        path.write_bytes(damaged)
        assert "a.onnx: is damaged or another's: its SHA-256 is" in refusal(path)
    path.unlink()
    assert refusal(path).endswith("a.onnx: No such file or directory; expected an ONNX file")
    path.mkdir()
    assert refusal(path).endswith("a.onnx: Is a directory; expected an ONNX file")
    path.rmdir()
    path.write_bytes(content)
    beside.write_text("{")
    assert "a.json: Invalid JSON" in refusal(path)
    beside.write_bytes(b"\xff")
    assert refusal(path).endswith("a.json: is not UTF-8 text; expected the manifest of a.onnx")
    beside.unlink()
    assert "a.json: No such file or directory; expected the manifest of a.onnx" in refusal(path)
    with pytest.raises(PolicyError, match=r"a\.json: must end in \.onnx"):
        load_artifact(beside, JOURNEY)


def external() -> onnx.ModelProto:
    """Return a network whose weights would be read from the password file."""
    model = by_hand(TURN)
    (weights,) = (each for each in model.graph.initializer if each.name == "weights")
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="/etc/passwd")
    return model


def hidden_external() -> onnx.ModelProto:
    """Return a network with such weights in a branch of a branch."""
    model = by_hand(TURN)
    inner = onnx.helper.make_graph([], "inner", [], [], [external().graph.initializer[0]])
    node = onnx.helper.make_node("If", ["axis"], ["found"], then_branch=inner, else_branch=inner)
    outer = onnx.helper.make_graph([node], "outer", [], [])
    model.graph.node.append(
        onnx.helper.make_node("If", ["axis"], ["seen"], then_branch=outer, else_branch=outer)
    )
    return model


def unknown_operator() -> onnx.ModelProto:
    model = by_hand(TURN)
    model.graph.node[0].op_type, model.graph.node[0].domain = "Run", "elsewhere"
    return model


def of_other_shape() -> onnx.ModelProto:
    """Return a network whose logits are fewer than it declares, as only their number shows."""
    model = by_hand(TURN)
    (multiply,) = model.graph.node
    multiply.output[0] = "all"
    chosen = np.arange(75) > 0
    model.graph.initializer.append(numpy_helper.from_array(chosen, "chosen"))
    model.graph.node.append(
        onnx.helper.make_node("Compress", ["all", "chosen"], ["logits"], axis=1)
    )
    return model


def that_fails() -> onnx.ModelProto:
    """Return a network that cannot be evaluated: it takes what is not there."""
    model = by_hand(TURN)
    (multiply,) = model.graph.node
    multiply.output[0] = "all"
    model.graph.initializer.append(numpy_helper.from_array(np.arange(1, 76), "taken"))
    model.graph.node.append(onnx.helper.make_node("Gather", ["all", "taken"], ["logits"], axis=1))
    return model


RIGHT = "right would be tensor(float) of shape"


@pytest.mark.parametrize(
    ("encoding", "model", "message"),
    [
        (TURN, b"", "the network cannot be used: "),
        (TURN, b"no network at all", "is no ONNX file"),
        (TURN, external(), "the weights 'weights' are in another file; all must be in this one"),
        (TURN, hidden_external(), "the weights 'weights' are in another file; all must be in"),
        (TURN, unknown_operator(), "the network cannot be used: "),
        (TURN, that_fails(), "the network cannot be evaluated: "),
        (TURN, of_other_shape(), "of 2 observations its logits have shape (2, 74); right would be"),
        (TURN, by_hand(TURN, input="x"), "its inputs are x; right would be observations"),
        (TURN, by_hand(TURN, logits="x"), "its outputs are x; right would be logits"),
        (TURN, by_hand(TURN, extra=True), "outputs are logits, values; right would be logits"),
        (
            CANDIDATES,
            by_hand(CANDIDATES, extra=False),
            "its outputs are logits; right would be logits, values",
        ),
        (
            TURN,
            by_hand(TURN, type=onnx.TensorProto.DOUBLE),
            f"its input observations is tensor(double) of shape ['n', 293]; {RIGHT} [n, 293]",
        ),
        (TURN, by_hand(TURN, size=7), f"observations is tensor(float) of shape ['n', 7]; {RIGHT}"),
        (TURN, by_hand(TURN, batch=2), f"shape [2, 293]; {RIGHT} [n, 293] for any n"),
        (
            TURN,
            by_hand(TURN, mask=7),
            f"its output logits is tensor(float) of shape ['n', 7]; {RIGHT}",
        ),
        (TURN, by_hand(TURN, declared=[]), "its output logits is tensor(float) of shape []; right"),
        (
            CANDIDATES,
            by_hand(CANDIDATES, size=1049),
            f"observations is tensor(float) of shape ['n', 1049]; {RIGHT} [n, size] for any n",
        ),
        (
            CANDIDATES,
            by_hand(CANDIDATES, mask=16),
            f"its output logits is tensor(float) of shape ['n', 16]; {RIGHT} [n, k] for any n",
        ),
    ],
)
def test_a_network_that_does_not_fit(
    tmp_path: Path,
    encoding: Encoding,
    model: Any,
    message: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    content = model if isinstance(model, bytes) else model.SerializeToString()
    told = refusal(put(tmp_path / "a.onnx", encoding, content))
    assert f"a.onnx: {message}" in told or message in told
    assert "\n" not in told
    assert tuple(capfd.readouterr()) == ("", "")


@pytest.mark.parametrize("encoding", [TURN, CANDIDATES])
def test_a_network_made_by_hand_that_fits(tmp_path: Path, encoding: Encoding) -> None:
    path = put(tmp_path / "a.onnx", encoding, by_hand(encoding).SerializeToString())
    logits, values = load_artifact(path, JOURNEY).model.evaluate(
        np.zeros((5, encoding.layout().size), np.float32)
    )
    assert logits.shape == (5, encoding.mask_size)
    assert (values is None) == (encoding is TURN)
