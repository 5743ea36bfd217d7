"""The Gymnasium vector environment: thousands of matches at once over the batch engine.

``gymnasium.make_vec("retinue/Journey-v0", num_envs=1024)`` makes it; ``docs/environment.md`` has
its arguments and examples.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from retinue.envs.checks import checked_seed
from retinue.envs.common import (
    Display,
    ObservationForm,
    Opponents,
    checked_options,
    make_batch,
)
from retinue.envs.game.dice import SEED_BITS
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.kernels import MAX_GAMES
from retinue.envs.parallel import copy_of_rows
from retinue.envs.render import FPS
from retinue.envs.seating import per_game

Array = np.ndarray[Any, np.dtype[Any]]
PARALLEL_FROM = 1024
"""From how many environments on several threads are used by default."""
DECISION = ("seat", "action_mask")
"""What ``info`` has in every row even where no match was started: no mask is ever empty."""


class RetinueVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Array]):
    """Many matches of Retinue in step; each row is what :class:`RetinueEnv` gives for one.

    Environment ``i`` of ``reset(seed=s)`` plays the matches of the scalar environment's
    ``reset(seed=s + i)``. ``info`` has the scalar one's keys, each with a row for each environment,
    and as Gymnasium has it a bool array ``_key`` that says in which rows it holds:

    ========================  ==========================  =============================
    ``seat``                  int64 ``(n,)``              the seat to act
    ``action_mask``           int8 ``(n, mask_size)``     the parts of a ``turn`` joined
    ``rewards``               float64 ``(n, 4)``          what this step pays to each seat
    ``illegal_action``        bool ``(n,)``
    ``totals``, ``places``    int64 ``(n, 4)``            in the rows of matches that ended
    ========================  ==========================  =============================

    With ``AutoresetMode.NEXT_STEP`` the step after a match's end ignores the action, pays nothing
    and starts the next match. With ``SAME_STEP`` the next match starts at once: ``final_obs``
    (object array) and ``final_info`` then hold the end of the last one. With ``DISABLED`` matches
    start only by ``reset(options={"reset_mask": bool (n,)})``.

    Args:
        num_envs: how many matches.
        mode: ``"journey"`` or ``"brawl"``.
        rules: as for :class:`RetinueEnv`, like all up to ``reward_scale``.
        encoding: of actions, ``"steps"``, ``"turn"`` or ``"candidates"``.
        candidates: how many turns are proposed (``"candidates"`` only).
        observation: ``"flat"`` or ``"dict"``.
        seats: the caller's, in every environment.
        opponents: who plays the other seats.
        draw: ``"in order"`` or ``"each match"``.
        reward: ``"score"``, ``"margin"`` or ``"place"``.
        reward_scale: by what rewards are divided.
        autoreset_mode: an ``AutoresetMode`` or its value, such as ``"SameStep"``.
        copy: with False, observations and action masks are views that the next call overwrites:
            faster, for callers who have copied what they keep.
        threads: of the engine; by default one below 1,024 environments, where more gain nothing,
            else all that Numba may use. One thread starts no pool.
        render_mode: ``"ansi"`` or ``"rgb_array"``: ``render`` gives a tuple, a board for each.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        num_envs: int = 1,
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
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        threads: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if type(num_envs) is not int or not 1 <= num_envs <= MAX_GAMES:
            raise ValueError(f"num_envs must be an integer, 1 to {MAX_GAMES}, not {num_envs!r}")
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {
            "render_modes": ["ansi", "rgb_array"],
            "render_fps": FPS,
            "autoreset_mode": self.autoreset_mode,
        }
        if threads is None and num_envs < PARALLEL_FROM:
            threads = 1
        self.batch = make_batch(
            mode,
            num_envs,
            rules=rules,
            encoding=encoding,
            candidates=candidates,
            seats=seats,
            opponents=opponents,
            draw=draw,
            reward=reward,
            reward_scale=reward_scale,
            threads=threads,
            remember=render_mode is not None,
        )
        self.num_envs = num_envs
        self.copy = copy
        self.layout = self.batch.layout
        self.render_mode = render_mode
        self.single_action_space = self.batch.encoding.action_space()
        self._observed = ObservationForm(self.layout, observation)
        self.single_observation_space = self._observed.space()
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        modes = self.metadata["render_modes"]
        self._display = Display(self.batch.ruleset, render_mode, modes, "gymnasium.make_vec()")

    def reset(
        self,
        *,
        seed: Any = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start a match in every environment, or in those of ``options["reset_mask"]``.

        Args:
            seed: of the dice, an integer: environment ``i`` has ``seed + i``; or a list with one
                for each, in which None means the environment's next match, as without a seed.
            options: ``reset_mask``, bool ``(n,)``; ``seats`` and ``opponents``, each a list with an
                entry for each environment: who plays from now on, later matches included.

        Raises:
            ValueError: a seed, an option or the first ``reset_mask`` does not fit; nothing starts.
        """
        given = dict(options or {})
        rows = self._rows(given.pop("reset_mask", None))
        chosen = np.flatnonzero(rows)
        arrangement = self._arrangement(given, chosen)
        seeds = self._seeds(seed)
        self.batch.arrange(chosen, **arrangement)
        if seed is not None and np.ndim(seed) == 0:
            super().reset(seed=seeds[0])
        if rows.all() and None not in seeds:
            self.batch.reset(seeds)
        else:
            self._start(chosen, seeds)
        self._look()
        info = self._info()
        return self._observed(self._flat), info | _only(info, rows, but=DECISION)

    def _rows(self, reset_mask: Any) -> Array:
        if reset_mask is None:
            return np.ones(self.num_envs, np.bool_)
        mask = np.asarray(reset_mask)
        if mask.dtype != np.bool_ or mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(
                f"reset_mask must be bool ({self.num_envs},) with a True, "
                f"not {mask.dtype} {mask.shape} with {np.count_nonzero(mask)}"
            )
        if not self.batch.has_begun and not mask.all():
            raise ValueError("the first reset starts every match: leave out reset_mask")
        return mask

    def _arrangement(self, options: dict[str, Any], chosen: Array) -> dict[str, list[Any]]:
        """Return the options of those environments that are to be reset."""
        arrangement = {}
        for name, values in checked_options(options).items():
            entries = per_game(values, name, self.num_envs)
            arrangement[name] = [entries[index] for index in chosen]
        return arrangement

    def _seeds(self, seed: Any) -> list[int | None]:
        if seed is None and self.batch.has_begun:
            return [None] * self.num_envs
        if seed is None:
            seed = int(self.np_random.integers(1 << SEED_BITS))
        if np.ndim(seed) == 0:
            first = checked_seed(seed)
            return [first + index for index in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"{len(seed)} seeds are not one for each of {self.num_envs} matches")
        seeds = [None if each is None else checked_seed(each) for each in seed]
        if not self.batch.has_begun and None in seeds:
            raise ValueError("the first reset needs a seed for every match, or none at all")
        return seeds

    def _start(self, chosen: Array, seeds: list[int | None]) -> None:
        """Start matches: those that have no seed of their own go on with their environment's."""
        seeded = np.array([seeds[index] is not None for index in chosen])
        self.batch.start(chosen[seeded], [seeds[index] for index in chosen[seeded]])
        self.batch.start_next(chosen[~seeded])

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Take an action in every environment.

        Args:
            actions: integers ``(n,)`` for ``steps``, ``(n, 2 + store_capacity)`` for ``turn``.

        Returns:
            Observations float32 ``(n, size)`` or a dict of them, rewards float64 ``(n,)``,
            terminations and truncations bool ``(n,)``, and ``info``.

        Raises:
            ValueError: the actions have another shape; nothing is played.
            RuntimeError: a match is over (``DISABLED``), or :meth:`reset` was never called.
            IllegalTurn: an opponent chose an illegal turn; the message names it.
        """
        batch = self.batch
        over = np.flatnonzero(batch.terminated)
        if over.size and self.autoreset_mode is AutoresetMode.DISABLED:
            raise RuntimeError(
                f"the matches of environments {over.tolist()} are over: start their next ones with "
                'reset(options={"reset_mask": ...})'
            )
        batch.step(actions, np.flatnonzero(~batch.terminated) if over.size else None)
        if over.size:
            batch.start_next(over)
        self._look()
        rewards, terminations = batch.rewards.copy(), batch.terminated.copy()
        info = self._info()
        if terminations.any():
            info = self._with_ends(info, terminations)
            if self.autoreset_mode is AutoresetMode.SAME_STEP:
                info = self._restart(terminations, info)
        truncations = np.zeros(self.num_envs, np.bool_)
        return self._observed(self._flat), rewards, terminations, truncations, info

    def _restart(self, ended: Array, end_info: dict[str, Any]) -> dict[str, Any]:
        """Start the next matches where one ended; return ``info`` with the end of the last ones."""
        final_obs = np.full(self.num_envs, None, object)
        for index in np.flatnonzero(ended):
            final_obs[index] = self._observed(self._flat[index].copy())
        final = {
            "final_obs": final_obs,
            "_final_obs": ended.copy(),
            "final_info": _only(end_info, ended),
            "_final_info": ended.copy(),
        }
        self.batch.start_next(np.flatnonzero(ended))
        if self.copy:
            self._flat[ended] = self.batch.observations[ended]
            self._masks[ended] = self.batch.masks[ended]
        return {**final, **self._info()}

    def _look(self) -> None:
        """Take new copies of what is seen, or the batch's own arrays."""
        batch = self.batch
        self._flat, self._masks = batch.observations, batch.masks.view(np.int8)
        if self.copy:
            self._flat = copy_of_rows(self._flat, batch.threads)
            self._masks = self._masks.copy()

    def _info(self) -> dict[str, Any]:
        """Return what is known of every decision that is due."""
        batch = self.batch
        info = {
            "seat": batch.seats.astype(np.int64),
            "action_mask": self._masks,
            "rewards": batch.seat_rewards.copy(),
            "illegal_action": batch.illegal.copy(),
        }
        known = np.ones(self.num_envs, np.bool_)
        return info | {f"_{name}": known.copy() for name in info}

    def _with_ends(self, info: dict[str, Any], ended: Array) -> dict[str, Any]:
        """Return ``info`` with what is known of the matches that have ended."""
        for name, values in (
            ("totals", self.batch.final_totals),
            ("places", self.batch.final_places),
        ):
            info[name] = np.where(ended[:, None], values, 0).astype(np.int64)
            info[f"_{name}"] = ended.copy()
        return info

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return the legal actions, bool ``(n, mask_size)``; the parts of a ``turn`` joined."""
        return self.batch.masks.copy()

    def render(self) -> Any:
        """Return every match's board, a tuple of texts or of pictures uint8 ``(h, w, 3)``."""
        if self.render_mode is None:
            return self._display.draw(self.batch)
        return tuple(self._display.draw(self.batch, index) for index in range(self.num_envs))


def _only(info: dict[str, Any], rows: Array, but: Sequence[str] = ()) -> dict[str, Any]:
    """Return a copy of ``info``, zero in all other rows; what ``but`` names is left out."""
    shown = {}
    for name, value in info.items():
        if name not in but:
            shown[name] = value.copy()
            shown[name][~rows] = 0
    return shown
