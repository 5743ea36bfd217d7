"""The PettingZoo environment: one match at a time, its four seats four agents that act in turn.

``env("journey")`` makes it in the wrapper that checks the order of calls, ``raw_env`` without;
``docs/environment.md`` has the spaces, the index of the observation and an example.
"""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from retinue.envs.actions import Encoding
from retinue.envs.checks import checked_seed
from retinue.envs.common import (
    OPTIONS,
    Display,
    MaskForm,
    ObservationForm,
    make_batch,
    start_match,
)
from retinue.envs.game.board import SEAT_NAMES
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.render import FPS


class RetinueAECEnv(AECEnv[str, Any, Any]):  # type: ignore[misc] # PettingZoo ships no types
    """A match of Retinue between the agents ``green``, ``red``, ``blue`` and ``yellow``.

    An agent observes ``{"observation": ..., "action_mask": ...}``: what the Gymnasium environment
    shows that seat, and its legal actions (int8, in the form that ``action_space(agent).sample``
    takes). The mask is all zeros unless the agent is to act: off its turn and after the end.
    ``observe`` answers for every agent at any time and returns arrays of its own.

    An action that the mask forbids means the most passive legal one (``retinue.envs.actions``).

    An agent is paid when its next decision is due: everything that happened to its value since its
    previous one; the others get 0 at that moment. At the end all four are paid what they are still
    owed. So the reward that ``last`` returns is the Gymnasium environment's for that seat, and over
    a match an agent's rewards sum to its final value.

    An agent whose pieces are all Home acts no more but stays in ``agents``, since its margin and
    its place can still change. All four are terminated together when the match is over; then
    follow the steps with ``None``, first that of the agent that acted last. The clock running out
    is a termination; nothing is ever truncated.

    ``infos[agent]`` holds ``illegal_action``, whether the agent's latest action was illegal, and
    its ``total`` and ``place``, which are 0 until the match is over.

    There is no parallel version: seats act in turn, and it would ignore three actions of four.

    Args:
        mode: ``"journey"`` or ``"brawl"``.
        rules: a ruleset or a YAML rule file instead of the mode's own.
        encoding: of actions, ``"steps"``, ``"turn"`` or ``"candidates"``.
        candidates: how many turns are proposed (``"candidates"`` only).
        observation: ``"flat"`` for one vector, ``"dict"`` for its named parts.
        reward: ``"score"``, ``"margin"`` or ``"place"`` (see ``retinue.envs.rewards``).
        reward_scale: by what rewards are divided; 100 by default, 1 for ``"place"``.
        render_mode: ``"ansi"``, ``"rgb_array"`` or ``"human"``.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        mode: str = "journey",
        *,
        rules: Ruleset | str | Path | None = None,
        encoding: str = "steps",
        candidates: int = 64,
        observation: str = "flat",
        reward: str = "margin",
        reward_scale: float | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        self.batch = make_batch(
            mode,
            1,
            rules=rules,
            encoding=encoding,
            candidates=candidates,
            seats=None,
            opponents=None,
            reward=reward,
            reward_scale=reward_scale,
            threads=1,
            remember=render_mode is not None,
        )
        self.ruleset = self.batch.ruleset
        self.layout = self.batch.layout
        self.metadata: dict[str, Any] = {
            "name": f"retinue_{mode}_v0",
            "render_modes": ["ansi", "rgb_array", "human"],
            "render_fps": FPS,
            "is_parallelizable": False,
        }
        self.render_mode = render_mode
        modes = self.metadata["render_modes"]
        self._display = Display(self.ruleset, render_mode, modes, "env()")
        self.possible_agents = list(SEAT_NAMES)
        self.agents: list[str] = []
        self.action_spaces = {
            agent: self.batch.encoding.action_space() for agent in self.possible_agents
        }
        self._observed = ObservationForm(self.layout, observation)
        self._masked = MaskForm(self.batch.encoding)
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": self._observed.space(),
                    "action_mask": _mask_space(self.batch.encoding),
                }
            )
            for agent in self.possible_agents
        }

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return an agent's space, always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return an agent's space, always the same object."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a match: with a ``seed`` the one of those dice, without one another each time.

        Args:
            seed: of the dice.
            options: there are none: unknown ones are ignored with a warning, as PettingZoo's
                checker passes some.

        Raises:
            ValueError: the seed is no integer or negative, or ``seats`` or ``opponents`` are given,
                options of the other environments; nothing starts.
        """
        _check(options)
        seed = None if seed is None else checked_seed(seed)
        start_match(self.batch, seed, np.random.default_rng())
        self.agents = list(self.possible_agents)
        self.agent_selection = self.agents[self.batch.seats[0]]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: _info(is_illegal=False) for agent in self.agents}
        self._display.show(self.batch)

    def step(self, action: Any) -> None:
        """Take an action for the selected agent; None once the match is over.

        Raises:
            RuntimeError: no match is being played: call ``reset`` first.
            ValueError: the action is not in its space, or not None; nothing is changed.
        """
        if not self.agents:
            raise RuntimeError("no match is being played: call reset first")
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        if not self.action_spaces[agent].contains(action):
            raise ValueError(f"{agent}'s action must be in {self.action_spaces[agent]}: {action!r}")
        ended = self.batch.step(np.asarray(action).reshape(1, -1))
        self._cumulative_rewards[agent] = 0.0
        self.infos[agent] = _info(is_illegal=bool(self.batch.illegal[0]))
        self.agent_selection = self.agents[self.batch.seats[0]]
        self.rewards = dict(zip(self.agents, self.batch.seat_rewards[0].tolist()))
        self._accumulate_rewards()
        if ended:
            self._end()
        self._display.show(self.batch)

    def _end(self) -> None:
        """Terminate all agents and tell each its result."""
        self.terminations = dict.fromkeys(self.agents, True)
        totals, places = self.batch.final_totals[0].tolist(), self.batch.final_places[0].tolist()
        for agent, total, place in zip(self.agents, totals, places):
            self.infos[agent] = {**self.infos[agent], "total": total, "place": place}

    def observe(self, agent: str) -> dict[str, Any]:
        """Return what an agent sees, whoever is to act, as arrays that nothing overwrites."""
        batch, seat = self.batch, self.possible_agents.index(agent)
        is_last = batch.seats[0] == seat
        flat = batch.observations[0].copy() if is_last else batch.look(0, seat)
        may_act = is_last and not batch.terminated[0]
        mask = batch.masks[0] if may_act else np.zeros(batch.encoding.mask_size, np.bool_)
        return {"observation": self._observed(flat), "action_mask": self._masked(mask)}

    def render(self) -> Any:
        """Return the board as text or picture, uint8 ``(height, width, 3)``; None for a window."""
        return self._display.draw(self.batch)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._display.close()


raw_env = RetinueAECEnv


class _OrderEnforcing(OrderEnforcingWrapper):  # type: ignore[misc] # PettingZoo ships no types
    """PettingZoo's wrapper with a ``last`` that does not fetch each part through it: 10 µs less."""

    def last(self, observe: bool = True) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        last = self.env.last if self._has_reset else super().last
        return last(observe)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return str(self.env)


def env(mode: str = "journey", **arguments: Any) -> AECEnv[str, Any, Any]:
    """Return a :class:`RetinueAECEnv` that checks the order of calls, as PettingZoo's games do.

    Their other wrappers have nothing to do here: the environment itself refuses actions outside
    their space, and illegal ones end no match.

    Args:
        mode: ``"journey"`` or ``"brawl"``.
        arguments: those of :class:`RetinueAECEnv`.
    """
    return _OrderEnforcing(raw_env(mode, **arguments))


def _mask_space(encoding: Encoding) -> spaces.Space[Any]:
    """Return the space of masks: int8 ``(mask_size,)``, or for ``turn`` one array for each part."""
    masks = [spaces.Box(0, 1, (choices,), np.int8) for choices in encoding.nvec]
    return spaces.Tuple(masks) if masks[1:] else masks[0]


def _info(*, is_illegal: bool) -> dict[str, Any]:
    # Always the same keys: TorchRL learns them from the first ones.
    return {"illegal_action": is_illegal, "total": 0, "place": 0}


def _check(options: dict[str, Any] | None) -> None:
    for name in options or {}:
        if name in OPTIONS:
            raise ValueError(f"reset takes no {name}: agents act for all four seats")
        gymnasium.logger.warn(f"unknown option {name!r} is ignored: reset takes none")
