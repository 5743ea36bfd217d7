"""What the Gymnasium and PettingZoo environments share: arguments, spaces, options, drawing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium import spaces

from retinue.envs.actions import Encoding
from retinue.envs.batch import Batch
from retinue.envs.game.board import SEATS
from retinue.envs.game.dice import SEED_BITS
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.observation import Layout
from retinue.envs.opponents import Opponent
from retinue.envs.render import BoardPicture, LastMove, Window, render_text
from retinue.envs.rewards import Reward
from retinue.envs.seating import ANY, as_list

OBSERVATIONS: Final = ("flat", "dict")
OPTIONS: Final = ("seats", "opponents")
"""What ``reset(options=...)`` takes."""
ONLY: Final = np.zeros(1, np.int64)
"""The index of an environment's only match."""

Opponents = Sequence[Opponent | str] | Opponent | str | None


def ruleset_of(mode: str, rules: Ruleset | str | Path | None) -> Ruleset:
    """Return the rules of a mode, or those given instead.

    Raises:
        TypeError, ValueError, OSError: they are not rules, or not of this mode.
    """
    if rules is None:
        return load_ruleset(mode)
    if not isinstance(rules, Ruleset | str | Path):
        raise TypeError(f"rules must be a Ruleset or a file's path, not {type(rules).__name__}")
    ruleset = rules if isinstance(rules, Ruleset) else load_ruleset(rules)
    if ruleset.mode != mode:
        raise ValueError(f"these are the rules of {ruleset.mode}, but the environment is {mode}")
    return ruleset


def make_batch(
    mode: str,
    num_games: int,
    *,
    rules: Ruleset | str | Path | None,
    seats: int | Sequence[int] | str | None,
    opponents: Opponents,
    reward: str,
    reward_scale: float | None,
    **arguments: Any,
) -> Batch:
    """Return the batch behind an environment; the arguments are :class:`RetinueEnv`'s.

    Raises:
        ValueError: an argument is out of its range.
    """
    given = as_list(opponents)
    if seats is None:
        seats = ANY if given else range(SEATS)
    batch = Batch(
        ruleset_of(mode, rules),
        num_games,
        seats=seats,
        opponents=given,
        reward=Reward(reward, reward_scale),
        **arguments,
    )
    if not batch.seats_played:
        raise ValueError("an environment needs a seat for its caller")
    return batch


class ObservationForm:
    """How one observation is given: ``"flat"`` as a vector, ``"dict"`` as its named parts.

    Raises:
        ValueError: it is neither.
    """

    def __init__(self, layout: Layout, form: str) -> None:
        if form not in OBSERVATIONS:
            raise ValueError(f"unknown observation {form!r}: use {' or '.join(OBSERVATIONS)}")
        self._sections = None if form == "flat" else layout.sections
        self._flat_space = layout.flat_space()

    def space(self) -> spaces.Space[Any]:
        """Return the space of one observation."""
        if self._sections is None:
            return self._flat_space
        return spaces.Dict(
            [
                (each.name, spaces.Box(each.low, each.high, (each.size,), np.float32))
                for each in self._sections
            ]
        )

    def __call__(self, flat: np.ndarray[Any, Any]) -> Any:
        """Return flat observations ``(..., size)`` in this form; parts are views of them."""
        if self._sections is None:
            return flat
        return {each.name: flat[..., each.slice] for each in self._sections}


class MaskForm:
    """How one mask is given: int8, for ``turn`` a tuple of its parts, as ``sample`` takes them."""

    def __init__(self, encoding: Encoding) -> None:
        ends = np.cumsum(encoding.nvec).tolist()
        self._parts = [slice(*part) for part in zip([0, *ends], ends)]

    def __call__(self, mask: np.ndarray[Any, Any]) -> Any:
        """Return a mask, bool ``(mask_size,)``, in this form."""
        numbers = mask.astype(np.int8)
        if len(self._parts) == 1:
            return numbers
        return tuple(numbers[part] for part in self._parts)


def start_match(batch: Batch, seed: int | None, rng: np.random.Generator) -> None:
    """Start a batch's only match: a seed's, or the next one; the first is drawn by ``rng``."""
    if seed is None and batch.has_begun:
        batch.start_next(ONLY)
    else:
        batch.reset(rng.integers(1 << SEED_BITS) if seed is None else seed)


def checked_options(options: dict[str, Any] | None) -> dict[str, Any]:
    """Return a copy of what ``reset`` is given as options.

    Raises:
        ValueError: one is unknown.
    """
    given = dict(options or {})
    for name in given:
        if name not in OPTIONS:
            raise ValueError(f"unknown option {name!r}: reset takes {' and '.join(OPTIONS)}")
    return given


class Display:
    """Draws the matches of a batch in an environment's render mode; a copy starts without a window.

    Args:
        ruleset: the rules of the matches.
        render_mode: ``"ansi"``, ``"rgb_array"``, ``"human"`` or None.
        known: the modes that the environment knows.
        maker: the function to which a mode is given.

    Raises:
        ValueError: the mode is not among them.
    """

    def __init__(
        self, ruleset: Ruleset, render_mode: str | None, known: Sequence[str], maker: str
    ) -> None:
        if render_mode is not None and render_mode not in known:
            raise ValueError(f"unknown render_mode {render_mode!r}: use {', '.join(known)}")
        self.mode = render_mode
        self._ruleset = ruleset
        self._maker = maker
        self._picture: BoardPicture | Window | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: surfaces and windows cannot be copied."""
        return {**vars(self), "_picture": None}

    def draw(self, batch: Batch, index: int = 0) -> Any:
        """Return a game's board as text or picture, uint8 ``(height, width, 3)``, or show it.

        Without a mode it warns and returns None.
        """
        if self.mode is None:
            gymnasium.logger.warn(
                f"render() was called without a render_mode: pass one to {self._maker}"
            )
            return None
        game, turn = batch.games[index], batch.turns[index]
        move = batch.last_move(index)
        last = None if move is None else LastMove(*move)
        if self.mode == "ansi":
            return render_text(game, self._ruleset, turn, last)
        if self._picture is None:
            make: type[BoardPicture | Window] = Window if self.mode == "human" else BoardPicture
            self._picture = make(self._ruleset)
        return self._picture.draw(game, turn, last)

    def show(self, batch: Batch) -> None:
        """Bring the window up to date, if the mode has one."""
        if self.mode == "human":
            self.draw(batch)

    def close(self) -> None:
        """Close the window, if there is one."""
        if isinstance(self._picture, Window):
            self._picture.close()
        self._picture = None
