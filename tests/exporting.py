"""Policies in ONNX files for the tests: networks of random weights, and files made by hand."""

import functools
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from positions import BRAWL, JOURNEY
from retinue.agents.artifact import ArtifactManifest, digest_of, manifest_path
from retinue.agents.network import Network, network_for
from retinue.agents.onnx_export import to_onnx
from retinue.agents.policy import PolicyAgent, Returns, TorchModel, manifest_of
from retinue.envs.actions import Encoding
from retinue.envs.facts import FACT_COUNT
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.observation import EXTRA_AT

RULES: Final = {"journey": JOURNEY, "brawl": BRAWL}
HIDDEN: Final = (32, 16)
VALUE_HIDDEN: Final = (16,)
RETURNS: Final = Returns(mode="margin", scale=300.0, place_bonus=2.0, discount=0.98)


def encoding_of(name: str, ruleset: Ruleset = JOURNEY, candidates: int = 16) -> Encoding:
    return Encoding(name, ruleset, candidates)


@functools.cache
def network_of(encoding: Encoding, hidden: tuple[int, ...] = HIDDEN) -> Network:
    """Return a network whose choices differ from position to position."""
    network = network_for(encoding, hidden, VALUE_HIDDEN)
    chance = torch.Generator().manual_seed(1)
    for weights in network.parameters():
        torch.nn.init.normal_(weights, std=0.3, generator=chance)
    return network.eval()


@functools.cache
def content_of(encoding: Encoding) -> bytes:
    return to_onnx(network_of(encoding), encoding)


def torch_agent(encoding: Encoding, hidden: tuple[int, ...] = HIDDEN) -> PolicyAgent:
    return PolicyAgent(TorchModel(network_of(encoding, hidden)), encoding, "torch")


def manifest_for(encoding: Encoding, content: bytes, **changes: Any) -> ArtifactManifest:
    """Return a manifest that fits a file, with some entries changed."""
    fit = manifest_of(encoding, HIDDEN, VALUE_HIDDEN, 1234, RETURNS).model_dump(mode="json")
    own = {
        "format": "retinue-artifact",
        "version": 1,
        "observation_size": encoding.layout().size,
        "mask_size": encoding.mask_size,
        "command": ["retinue train quick", "retinue train --resume runs/quick"],
        "configuration": {"mode": encoding.ruleset.mode, "seed": 0, "network": list(HIDDEN)},
        "versions": {"retinue": "1", "torch": "2"},
        "licence": "MIT",
        "strength": [],
        "sha256": digest_of(content),
    }
    return ArtifactManifest.model_validate_json(json.dumps(fit | own | changes))


def put(path: Path, encoding: Encoding, content: bytes | None = None, **changes: Any) -> Path:
    """Write a file and a manifest, whether they are right or not, and return the file's path."""
    content = content_of(encoding) if content is None else content
    path.write_bytes(content)
    manifest_path(path).write_text(manifest_for(encoding, content, **changes).model_dump_json())
    return path


def by_hand(encoding: Encoding, **changes: Any) -> onnx.ModelProto:
    """Return the smallest network that fits an encoding, or does not.

    Args:
        encoding: of it.
        changes: ``input``, ``logits`` and ``type`` in place of the right names and type, ``batch``
            in place of any number, ``size`` and ``mask`` in place of the right sizes, ``declared``
            in place of the shape of the logits, and ``extra`` for one more output.
    """
    given, logits = changes.get("input", "observations"), changes.get("logits", "logits")
    kind = changes.get("type", TensorProto.FLOAT)
    batch = changes.get("batch", "n")
    size = changes.get("size", "size" if encoding.is_candidates else encoding.layout().size)
    mask = changes.get("mask", "k" if encoding.is_candidates else encoding.mask_size)
    outputs = [helper.make_tensor_value_info(logits, kind, changes.get("declared", [batch, mask]))]
    if encoding.is_candidates:  # as many logits as there are rows of facts
        weights = np.zeros(FACT_COUNT, np.float32)
        nodes = [
            helper.make_node("Slice", [given, "from", "to", "axis"], ["facts"]),
            helper.make_node("Reshape", ["facts", "rows"], ["table"]),
            helper.make_node("MatMul", ["table", "weights"], [logits]),
        ]
    else:
        weights = np.zeros((size, mask), helper.tensor_dtype_to_np_dtype(kind))
        nodes = [helper.make_node("MatMul", [given, "weights"], [logits])]
    if encoding.is_candidates or changes.get("extra"):
        nodes.append(helper.make_node("ReduceSum", [logits, "axis"], ["values"], keepdims=0))
    if changes.get("extra", encoding.is_candidates):
        outputs.append(helper.make_tensor_value_info("values", kind, [batch]))
    graph = helper.make_graph(
        nodes,
        "by hand",
        [helper.make_tensor_value_info(given, kind, [batch, size])],
        outputs,
        [
            numpy_helper.from_array(weights, "weights"),
            numpy_helper.from_array(np.array([1]), "axis"),
            numpy_helper.from_array(np.array([EXTRA_AT]), "from"),
            numpy_helper.from_array(np.array([1 << 30]), "to"),
            numpy_helper.from_array(np.array([0, -1, FACT_COUNT]), "rows"),
        ],
    )
    opset = [helper.make_opsetid("", 20), helper.make_opsetid("elsewhere", 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=opset)
