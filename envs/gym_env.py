"""The Gymnasium environment: one match at a time, one or several seats in the caller's hands.

``gymnasium.make("retinue/Journey-v0")`` and ``"retinue/Brawl-v0"``; ``docs/environment.md`` has the
spaces, the index of the observation and examples.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from retinue.envs.checks import checked_seed
from retinue.envs.common import (
    ONLY,
    Display,
    MaskForm,
    ObservationForm,
    Opponents,
    checked_options,
    make_batch,
    start_match,
)
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import Record
from retinue.envs.kernels import CALLER
from retinue.envs.render import FPS


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
        encoding: of actions, ``"steps"``, ``"turn"`` or ``"candidates"``.
        candidates: how many turns are proposed (``"candidates"`` only).
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
        "render_fps": FPS,
    }

    def __init__(
        self,
        mode: str = "journey",
        *,
        rules: Ruleset | str | Path | None = None,
        encoding: str = "steps",
        candidates: int = 64,
        observation: str = "flat",
        seats: int | Sequence[int] | str | None = None,
        opponents: Opponents = None,
        draw: str = "in order",
        reward: str = "margin",
        reward_scale: float | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.batch = make_batch(
            mode,
            1,
            rules=rules,
            encoding=encoding,
            candidates=candidates,
            seats=seats,
            opponents=opponents,
            draw=draw,
            reward=reward,
            reward_scale=reward_scale,
            threads=1,
            remember=render_mode is not None,
        )
        self.ruleset = self.batch.ruleset
        self.layout = self.batch.layout
        self.render_mode = render_mode
        self.action_space = self.batch.encoding.action_space()
        self._observed = ObservationForm(self.layout, observation)
        self._masked = MaskForm(self.batch.encoding)
        self.observation_space = self._observed.space()
        modes = self.metadata["render_modes"]
        self._display = Display(self.ruleset, render_mode, modes, "gymnasium.make()")

    @property
    def game(self) -> Record:
        """The ``GAME`` record; reading it is free, changing it is not."""
        return self.batch.games[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a match: with a ``seed`` the one of those dice, without one another each time.

        Args:
            seed: of the dice.
            options: ``seats`` (as the constructor takes them) and ``opponents`` (one or more of the
                constructor's) say who plays from now on, later matches included.

        Raises:
            ValueError: the seed is no integer or negative, or an option is unknown or does not fit;
                nothing starts.
            IllegalTurn: an opponent chose an illegal turn; the message names it.
        """
        given = checked_options(options)
        seed = None if seed is None else checked_seed(seed)
        self.batch.arrange(ONLY, **{name: [value] for name, value in given.items()})
        super().reset(seed=seed)
        start_match(self.batch, seed, self.np_random)
        self._display.show(self.batch)
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action for the seat to act; let the opponents play until a choice is due again.

        An action that the mask forbids means the most passive legal one (``retinue.envs.actions``).

        Raises:
            RuntimeError: the match is over, an opponent failed before, or ``reset`` was never
                called; nothing is played.
            IllegalTurn: an opponent chose an illegal turn; the message names it.
        """
        ended = self.batch.step(np.asarray(action).reshape(1, -1))
        reward = float(self.batch.rewards[0])
        info = self._info()
        if ended:
            info["totals"] = self.batch.final_totals[0].astype(np.int64)
            info["places"] = self.batch.final_places[0].astype(np.int64)
        self._display.show(self.batch)
        return self._observation(), reward, bool(ended), False, info

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return the legal actions, bool ``(mask_size,)``; the parts of a ``turn`` joined."""
        masks: np.ndarray[Any, np.dtype[np.bool_]] = self.batch.masks[0].copy()
        return masks

    def _observation(self) -> Any:
        return self._observed(self.batch.observations[0].copy())

    def _info(self) -> dict[str, Any]:
        return {
            "seat": int(self.batch.seats[0]),
            "action_mask": self._masked(self.batch.masks[0]),
            "rewards": self.batch.seat_rewards[0].copy(),
            "illegal_action": bool(self.batch.illegal[0]),
        }

    @property
    def seats(self) -> tuple[int, ...]:
        """The caller's seats in this match."""
        return tuple(int(seat) for seat in np.flatnonzero(self.batch.control[0] == CALLER))

    def render(self) -> Any:
        """Return the board as text or picture, uint8 ``(height, width, 3)``; None for a window."""
        return self._display.draw(self.batch)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._display.close()
