"""The batch engine as a Stable-Baselines3 ``VecEnv``: thousands of matches, no loop over them."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from retinue.envs.batch import Batch
from retinue.envs.game.dice import SEED_BITS


class RetinueVecEnv(VecEnv):
    """Matches of a :class:`~retinue.envs.batch.Batch`, one learner's seat in each.

    A match that ends starts anew within the same step, as Stable-Baselines3 wants it: its ``info``
    has ``terminal_observation``, ``episode`` (reward ``r`` and length ``l``, as ``Monitor`` writes
    them), ``total`` and ``place`` of the learner's seat. Masks come from
    ``env_method("action_masks")``.

    Attributes:
        batch: the matches.
        seconds: that steps took so far.
        on_ends: is told which games, int64 ``(m,)``, have just ended, before they start anew.

    Args:
        batch: with one seat for the caller (a number or ``"any"``).
        seed: of the matches after the first ``reset``; see :meth:`seed`.

    Raises:
        ValueError: the batch's caller has not exactly one seat.
    """

    def __init__(self, batch: Batch, seed: int | None = None) -> None:
        if batch.seats_played != 1:
            raise ValueError(f"a learner plays one seat of each match, not {batch.seats_played}")
        self.batch = batch
        self.render_mode = None
        super().__init__(batch.num_games, batch.layout.flat_space(), batch.encoding.action_space())
        self._actions = np.zeros(0, np.int64)
        self._returns = np.zeros(batch.num_games)
        self._lengths = np.zeros(batch.num_games, np.int64)
        self._is_started = False
        self.seconds = 0.0
        self.on_ends: Callable[[np.ndarray[Any, Any]], None] | None = None
        if seed is not None:
            self.seed(seed)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed of the next ``reset``: environment ``i`` plays the dice of ``seed + i``."""
        if seed is None:
            seed = int(np.random.default_rng().integers(1 << SEED_BITS))
        self._seeds = [seed + index for index in range(self.num_envs)]
        return self._seeds

    def reset(self) -> Any:
        """Start a new match in every environment; return observations float32 ``(n, size)``."""
        if self._seeds[0] is not None:
            self.batch.reset(self._seeds[0])
        elif self._is_started:
            self.batch.start_next(np.arange(self.num_envs))
        else:
            self.batch.reset(int(np.random.default_rng().integers(1 << SEED_BITS)))
        self._is_started = True
        self._returns[:] = 0
        self._lengths[:] = 0
        self._reset_seeds()
        self._reset_options()
        return self.batch.observations.copy()

    def step_async(self, actions: np.ndarray[Any, Any]) -> None:
        """Take note of the actions."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray[Any, Any], np.ndarray[Any, Any], list[Any]]:
        """Play them; return observations, rewards float32 ``(n,)``, dones bool ``(n,)``, infos."""
        begun = time.perf_counter()
        batch = self.batch
        ended = batch.step(self._actions)
        rewards = batch.rewards.astype(np.float32)
        dones = batch.terminated.copy()
        self._returns += batch.rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if ended:
            self._restart(np.flatnonzero(dones), infos)
        observations = batch.observations.copy()
        self.seconds += time.perf_counter() - begun
        return observations, rewards, dones, infos

    def _restart(self, indices: np.ndarray[Any, Any], infos: list[dict[str, Any]]) -> None:
        batch = self.batch
        finals = batch.observations[indices]
        for index, final in zip(indices, finals, strict=True):
            seat = batch.seats[index]
            infos[index] = {
                "terminal_observation": final,
                "episode": {"r": float(self._returns[index]), "l": int(self._lengths[index])},
                "total": int(batch.final_totals[index, seat]),
                "place": int(batch.final_places[index, seat]),
            }
        self._returns[indices] = 0
        self._lengths[indices] = 0
        if self.on_ends is not None:
            self.on_ends(indices)
        batch.start_next(indices)

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return the masks of all environments, bool ``(n, mask_size)``."""
        return self.batch.masks.copy()

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> Any:
        """Call ``action_masks`` for all environments or those of ``indices``.

        Raises:
            AttributeError: for any other method: there are no separate environments here.
        """
        if method_name != "action_masks" or method_args or method_kwargs:
            raise AttributeError(f"{type(self).__name__} has no environment method {method_name!r}")
        masks = self.action_masks()
        return masks if indices is None else masks[list(self._get_indices(indices))]

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of this object once for each environment."""
        value = getattr(self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: the environments share everything.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(f"{type(self).__name__} has no attribute {attr_name!r} to be set")

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Return whether the wrapper's work is done: True for ``Monitor``, whose infos we give."""
        return [issubclass(Monitor, wrapper_class) for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[np.ndarray[Any, Any] | None]:
        """Return None for each environment: a batch is not drawn."""
        return [None] * self.num_envs

    def close(self) -> None:
        """Do nothing: there is nothing to be closed."""

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of everything that :meth:`restore` needs to go on exactly from here."""
        return {
            "matches": self.batch.save_matches(),
            "returns": self._returns.tolist(),
            "lengths": self._lengths.tolist(),
        }

    def restore(self, snapshot: dict[str, Any]) -> Any:
        """Go back to a :meth:`snapshot`; return the observations, float32 ``(n, size)``."""
        self.batch.load_matches(snapshot["matches"])
        self._returns[:] = snapshot["returns"]
        self._lengths[:] = snapshot["lengths"]
        self._is_started = True
        return self.batch.observations.copy()
