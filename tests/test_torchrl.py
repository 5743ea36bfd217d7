"""Both environments under TorchRL, where it is installed: whole matches, masks applied."""

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import retinue.agents  # noqa: F401 - opponents by name
from aec_tables import AGENTS, short
from retinue.envs.actions import ENCODINGS
from retinue.envs.aec_env import env
from retinue.envs.game.ruleset import MODES

pytest.importorskip("torchrl")

from torchrl.data import Binary, Composite
from torchrl.envs import ActionMask, GymWrapper, TransformedEnv
from torchrl.envs.gym_like import default_info_dict_reader
from torchrl.envs.libs.pettingzoo import PettingZooWrapper
from torchrl.envs.utils import check_env_specs

pytestmark = [
    pytest.mark.filterwarnings("ignore:PettingZoo in TorchRL is tested using version"),
    pytest.mark.parametrize("mode", MODES),
    pytest.mark.parametrize("encoding", ENCODINGS),
]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)  # two are many times slower while others use the machine


class JoinedMask(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Joins the parts of a mask of ``turn``, as TorchRL wants them, and counts illegal actions."""

    illegal = 0

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**arguments)
        return observation, self._joined(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        *rest, info = self.env.step(action)
        self.illegal += info["illegal_action"]
        observation, reward, terminated, truncated = rest
        return observation, reward, terminated, truncated, self._joined(info)

    def _joined(self, info: dict[str, Any]) -> dict[str, Any]:
        return info | {"action_mask": self.get_wrapper_attr("action_masks")()}


def test_the_gymnasium_environment(mode: str, encoding: str) -> None:
    made = gymnasium.make(
        f"retinue/{mode.capitalize()}-v0",
        rules=short(mode, 300),
        encoding=encoding,
        opponents=["racer"],
    )
    table = JoinedMask(made)
    wrapped = GymWrapper(table, categorical_action_encoding=True)
    size = table.get_wrapper_attr("batch").encoding.mask_size
    masks = Composite(action_mask=Binary(size, dtype=torch.bool))
    wrapped.set_info_dict_reader(default_info_dict_reader(["action_mask"], spec=masks))
    masked = TransformedEnv(wrapped, ActionMask())
    for _ in range(3):
        match = masked.rollout(1000)
        assert match["next", "terminated"].squeeze().tolist() == [False] * (len(match) - 1) + [True]
        assert match["action_mask"].any(dim=-1).all()
        value = match["next", "reward"].sum().item()
        game, seat = table.get_wrapper_attr("game"), table.get_wrapper_attr("seats")[0]
        totals = game["progression"].sum(axis=1) + game["combat"] + game["bonus"]
        margin = totals[seat] - (totals.sum() - totals[seat]) / 3
        assert value == pytest.approx(margin / 100, abs=1e-4)
    assert table.illegal == 0


def joined_masks(table: Any) -> Any:
    """Return a table whose masks of ``turn`` are joined, as TorchRL wants them."""
    supersuit = pytest.importorskip("supersuit")

    def join(seen: dict[str, Any], _: Any) -> dict[str, Any]:
        return seen | {"action_mask": np.concatenate(seen["action_mask"])}

    def space(inner: Any) -> Any:
        size = sum(part.shape[0] for part in inner["action_mask"])
        mask = gymnasium.spaces.Box(0, 1, (size,), np.int8)
        return gymnasium.spaces.Dict({"observation": inner["observation"], "action_mask": mask})

    return supersuit.observation_lambda_v0(table, join, space)


def test_the_pettingzoo_environment(mode: str, encoding: str) -> None:
    table = env(mode, rules=short(mode, 200), encoding=encoding)
    made = table if encoding != "turn" else joined_masks(table)
    wrapped = PettingZooWrapper(made, use_mask=True)
    check_env_specs(wrapped, seed=1)
    match = wrapped.rollout(1000)
    assert match["next", "terminated"].squeeze().tolist() == [False] * (len(match) - 1) + [True]
    acting = torch.stack([match[agent, "mask"].squeeze() for agent in AGENTS])
    assert (acting.sum(dim=0) == 1).all(), "one agent acts at a time"
    end = match["next"][-1]
    totals = torch.stack([end[agent, "info", "total"].squeeze() for agent in AGENTS])
    margins = (4 * totals - totals.sum()) / 3
    for agent, margin in zip(AGENTS, margins.tolist(), strict=True):
        assert not match["next", agent, "info", "illegal_action"].any()
        paid = match["next", agent, "reward"].sum().item()
        assert paid == pytest.approx(margin / 100, abs=1e-4)
