"""The Gymnasium environment: one match at a time, one or several seats in the caller's hands.

``gymnasium.make("retinue/Journey-v0")`` and ``"retinue/Brawl-v0"``; ``docs/environment.md`` has the
spaces, the index of the observation and examples.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from retinue.envs.batch import ANY, Batch
from retinue.envs.game.board import SEATS
from retinue.envs.game.dice import SEED_BITS
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.game.state import Record
from retinue.envs.kernels import CALLER
from retinue.envs.opponents import Opponent
from retinue.envs.render import BoardPicture, Window, render_text
from retinue.envs.rewards import Reward

ALL_SEATS = tuple(range(SEATS))
OBSERVATIONS = ("flat", "dict")


def _ruleset(mode: str, rules: Ruleset | str | Path | None) -> Ruleset:
    if rules is None:
        return load_ruleset(mode)
    if not isinstance(rules, Ruleset | str | Path):
        raise TypeError(f"rules must be a Ruleset or a file's path, not {type(rules).__name__}")
    ruleset = rules if isinstance(rules, Ruleset) else load_ruleset(rules)
    if ruleset.mode != mode:
        raise ValueError(f"these are the rules of {ruleset.mode}, but the environment is {mode}")
    return ruleset


class RetinueEnv(gymnasium.Env[Any, Any]):
    """A match of Retinue.

    Without ``opponents`` the caller plays all four seats in turn: a learner for one seat, such as
    PPO, needs opponents.

    Each observation is that of the seat to act, named in ``info["seat"]``. ``info`` also holds
    ``action_mask`` (int8, in the form that ``action_space.sample(mask=...)`` takes), ``rewards``
    (float64 ``(4,)``: what this step gives to each of the caller's seats; ``reward`` is the acting
    seat's entry) and ``illegal_action``. At the end of a match ``rewards`` holds what is still due
    to each of the caller's seats, ``reward`` is that of the seat that decided last, and ``info``
    adds ``totals`` and ``places`` (int ``(4,)``).

    A seat's reward is everything that happened to its value since its own previous decision,
    others' turns included; over a match a seat's rewards sum to its final value. The clock running
    out is ``terminated``; ``truncated`` is always False.

    Args:
        mode: ``"journey"`` or ``"brawl"``.
        rules: a ruleset or a YAML rule file instead of the mode's own.
        encoding: of actions, ``"steps"`` or ``"turn"``.
        observation: ``"flat"`` for one vector, ``"dict"`` for its named parts, each a vector as
            other libraries expect; ``layout.split`` gives the parts of a flat one in shape.
        seats: the caller's: a seat, several, or ``"any"`` for one drawn anew for each match. By
            default all four, or ``"any"`` when ``opponents`` are given.
        opponents: who plays the other seats: agents, or their names once ``retinue.agents`` is
            imported; in seat order after the caller's first, repeated as needed.
        draw: ``"in order"``, or ``"each match"`` to draw each seat's agent from ``opponents``.
        reward: ``"score"``, ``"margin"`` or ``"place"`` (see ``retinue.envs.rewards``).
        reward_scale: by what rewards are divided; 100 by default, 1 for ``"place"``.
        render_mode: ``"ansi"``, ``"rgb_array"`` or ``"human"``.

    Raises:
        ValueError: an argument is out of its range.
    """

    metadata = {  # noqa: RUF012 - Gymnasium declares it as an instance's
        "render_modes": ["ansi", "rgb_array", "human"],
        "render_fps": 4,
    }

    def __init__(
        self,
        mode: str = "journey",
        *,
        rules: Ruleset | str | Path | None = None,
        encoding: str = "steps",
        observation: str = "flat",
        seats: int | Sequence[int] | str | None = None,
        opponents: Sequence[Opponent | str] | Opponent | str | None = None,
        draw: str = "in order",
        reward: str = "margin",
        reward_scale: float | None = None,
        render_mode: str | None = None,
    ) -> None:
        if observation not in OBSERVATIONS:
            raise ValueError(
                f"unknown observation {observation!r}: use {' or '.join(OBSERVATIONS)}"
            )
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            known = ", ".join(self.metadata["render_modes"])
            raise ValueError(f"unknown render_mode {render_mode!r}: use {known}")
        self.ruleset = _ruleset(mode, rules)
        given: list[Any] = [opponents]
        if opponents is None or isinstance(opponents, list | tuple):
            given = list(opponents or ())
        self.batch = Batch(
            self.ruleset,
            1,
            encoding=encoding,
            seats=(ANY if given else ALL_SEATS) if seats is None else seats,
            opponents=given,
            draw=draw,
            reward=Reward(reward, reward_scale),
            threads=1,
        )
        if not self.batch.seats_played:
            raise ValueError("an environment needs a seat for its caller")
        self.layout = self.batch.layout
        self.render_mode = render_mode
        self.action_space = self.batch.encoding.action_space()
        self._is_flat = observation == "flat"
        self._parts = np.cumsum(self.batch.encoding.nvec)[:-1]
        self.observation_space = self._observation_space()
        self._picture: BoardPicture | Window | None = None
        self._is_seeded = False

    def _observation_space(self) -> spaces.Space[Any]:
        if self._is_flat:
            return self.layout.flat_space()
        return spaces.Dict(
            [
                (each.name, spaces.Box(each.low, each.high, (each.size,), np.float32))
                for each in self.layout.sections
            ]
        )

    @property
    def game(self) -> Record:
        """The ``GAME`` record; reading it is free, changing it is not."""
        return self.batch.games[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a match: with a ``seed`` the one of those dice, without one another each time."""
        super().reset(seed=seed)
        if seed is not None:
            self.batch.reset(seed)
        elif not self._is_seeded:
            self.batch.reset(int(self.np_random.integers(1 << SEED_BITS)))
        else:
            self.batch.start_next(np.zeros(1, np.int64))
        self._is_seeded = True
        self._show()
        return self._observation(), self._info(0.0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action for the seat to act; let the opponents play until a choice is due again.

        An action that the mask forbids means the most passive legal one (``retinue.envs.actions``).

        Raises:
            RuntimeError: the match is over; call ``reset`` first.
        """
        ended = self.batch.step(np.asarray(action).reshape(1, -1))
        reward = float(self.batch.rewards[0])
        info = self._info(reward)
        if ended:
            info["rewards"] = self.batch.final_rewards[0].copy()
            info["totals"] = self.batch.final_totals[0].astype(np.int64)
            info["places"] = self.batch.final_places[0].astype(np.int64)
        self._show()
        return self._observation(), reward, bool(ended), False, info

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return the legal actions, bool ``(mask_size,)``; the parts of a ``turn`` joined."""
        masks: np.ndarray[Any, np.dtype[np.bool_]] = self.batch.masks[0].copy()
        return masks

    def _observation(self) -> Any:
        flat = self.batch.observations[0].copy()
        if self._is_flat:
            return flat
        return {each.name: flat[each.slice] for each in self.layout.sections}

    def _info(self, reward: float) -> dict[str, Any]:
        seat = int(self.batch.seats[0])
        rewards = np.zeros(SEATS)
        rewards[seat] = reward
        mask = self.batch.masks[0].astype(np.int8)
        return {
            "seat": seat,
            "action_mask": tuple(np.split(mask, self._parts)) if len(self._parts) else mask,
            "rewards": rewards,
            "illegal_action": bool(self.batch.illegal[0]),
        }

    @property
    def seats(self) -> tuple[int, ...]:
        """The caller's seats in this match."""
        return tuple(int(seat) for seat in np.flatnonzero(self.batch.control[0] == CALLER))

    def render(self) -> Any:
        """Return the board as text or picture, uint8 ``(height, width, 3)``; None for a window."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                "render() was called without a render_mode: pass render_mode to gymnasium.make()"
            )
            return None
        if self.render_mode == "ansi":
            return render_text(self.game, self.ruleset, self.batch.turns[0])
        if self._picture is None:
            make: Callable[[Ruleset], BoardPicture | Window] = (
                Window if self.render_mode == "human" else BoardPicture
            )
            self._picture = make(self.ruleset)
        return self._picture.draw(self.game, self.batch.turns[0])

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        if isinstance(self._picture, Window):
            self._picture.close()
        self._picture = None
