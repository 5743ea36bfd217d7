"""The rules configuration: validated, loaded from YAML, packed for the engine.

A rule file holds every number of the game that could be otherwise; ``docs/rules.md`` says where
each comes from. Users' own files have the same form.
"""

import functools
import hashlib
import importlib.resources
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from retinue.envs.game import board
from retinue.envs.game.schema import SchemaError, StrictModel, build, read_yaml

MODES: Final = ("journey", "brawl")
MAX_DICE: Final = 16
"""The engine's limit on the dice of one roll."""
MAX_STORE: Final = 36
"""The engine's limit on a roll store's capacity."""

SAFE: Final = 0
CASTLE: Final = 1
REGULAR: Final = 2
"""Where the own Noble stands when its seat captures: rows of the combat table (rules 4.2)."""

RULES = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("home", "i4"),  # position code of Home
                ("start_credits", "i4"),
                ("max_credits", "i4"),
                ("credits_per_grace", "i4"),
                ("store_capacity", "i4"),
                ("dice", "i4", (MAX_STORE + 1,)),  # dice rolled, by the number of stored rolls
                ("castles_protect", "i4"),
                ("midpoint_points", "i4", (2,)),  # Guard, Noble
                ("checkpoint_points", "i4", (board.CHECKPOINTS, 2)),  # record bit; Guard, Noble
                ("combat", "i4", (3, 2, 2)),  # own Noble's place; before, past; Guard, Noble
                ("blockade_penalty", "i4"),
                ("completion_bonus", "i4", (board.SEATS,)),  # by finishing order
                ("clock_seconds", "i4"),
                ("turn_seconds", "i4"),
            ],
            align=True,
        ),
    )
)
"""The rules as the engine reads them: one record."""

Points = Annotated[int, Field(ge=0, le=100_000)]
Pair = tuple[Points, Points]
Count = Annotated[int, Field(ge=0, le=100)]


class Progression(StrictModel):
    """Points of one checkpoint for a Guard and for the Noble (rules 4.1)."""

    midpoint: Pair
    castle: Pair
    own_entering: Pair
    other_entering: Pair
    home: Pair


class ByMidpoint(StrictModel):
    """Points for a captured Guard and Noble, before and past the own Noble's midpoint."""

    before: Pair
    past: Pair


class Combat(StrictModel):
    """Points for captures by the own Noble's place (rules 4.2)."""

    safe: ByMidpoint
    castle: ByMidpoint
    regular: ByMidpoint


class Ruleset(StrictModel):
    """Every number of the rules, as in ``configs/rules/*.yaml`` and in match records."""

    mode: Literal["journey", "brawl"]
    home_path_tiles: Annotated[int, Field(ge=1, le=20)]
    start_credits: Count
    max_credits: Annotated[int, Field(ge=1, le=100)]
    credits_per_grace: Count
    store_capacity: Annotated[int, Field(ge=1, le=MAX_STORE)]
    dice: Annotated[
        tuple[tuple[int, Annotated[int, Field(ge=0, le=MAX_DICE)]], ...], Field(min_length=1)
    ]
    castles_protect: bool
    progression: Progression
    combat: Combat
    blockade_penalty: Points
    completion_bonus: tuple[Points, Points, Points, Points]
    clock_seconds: Annotated[int, Field(ge=1, le=1_000_000)]
    turn_seconds: Annotated[int, Field(ge=1, le=1_000_000)]

    @model_validator(mode="after")
    def _fits_together(self) -> "Ruleset":
        if self.turns < board.SEATS:
            raise ValueError(
                f"clock_seconds: {self.clock_seconds} is less than one turn of "
                f"{self.turn_seconds} seconds for each of {board.SEATS} seats"
            )
        if self.start_credits > self.max_credits:
            raise ValueError(
                f"start_credits: {self.start_credits} is more than max_credits {self.max_credits}"
            )
        held = -1
        for row, (up_to, rolled) in enumerate(self.dice):
            if up_to <= held:
                raise ValueError(f"dice[{row}]: {up_to} must be above the row before it, {held}")
            if up_to + rolled > self.store_capacity:
                raise ValueError(
                    f"dice[{row}]: {up_to} stored and {rolled} rolled are more than "
                    f"store_capacity {self.store_capacity}"
                )
            held = up_to
        if held != self.store_capacity:
            raise ValueError(
                f"dice: the last row must be for store_capacity {self.store_capacity}, not {held}"
            )
        return self

    @property
    def home(self) -> int:
        """The position code of Home (rules 1.8)."""
        return board.HOME_PATH + self.home_path_tiles

    @property
    def turns(self) -> int:
        """How many turns fit on the clock (rules 5)."""
        return -(-self.clock_seconds // self.turn_seconds)

    @property
    def digest(self) -> str:
        """A short hash of every number, to tell whether two rulesets are the same."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with the entries in ``update``, which are not validated."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("packed", None)  # it holds the numbers from before the update
        return copied

    @functools.cached_property
    def packed(self) -> Any:
        """The :data:`RULES` record that the engine reads."""
        rules = np.zeros(1, RULES)[0]
        for name in ("start_credits", "max_credits", "credits_per_grace", "store_capacity"):
            rules[name] = getattr(self, name)
        for name in ("blockade_penalty", "completion_bonus", "clock_seconds", "turn_seconds"):
            rules[name] = getattr(self, name)
        rules["home"] = self.home
        rules["castles_protect"] = self.castles_protect
        for up_to, rolled in reversed(self.dice):
            rules["dice"][: up_to + 1] = rolled
        points = self.progression
        rules["midpoint_points"] = points.midpoint
        table = rules["checkpoint_points"]
        table[board.OWN_ENTERING_BIT] = points.own_entering
        table[board.FIRST_CASTLE_BIT : board.FIRST_OTHER_ENTERING_BIT] = points.castle
        table[board.FIRST_OTHER_ENTERING_BIT : board.HOME_BIT] = points.other_entering
        table[board.HOME_BIT] = points.home
        for place, row in ((SAFE, "safe"), (CASTLE, "castle"), (REGULAR, "regular")):
            by_midpoint = getattr(self.combat, row)
            rules["combat"][place] = (by_midpoint.before, by_midpoint.past)
        return rules


def rules_file(mode: str) -> Any:
    """Return the shipped rule file of a mode, readable wherever the package is installed."""
    return importlib.resources.files("retinue") / "configs" / "rules" / f"{mode}.yaml"


def load_ruleset(mode_or_path: str | Path) -> Ruleset:
    """Return the rules of a mode (``"journey"``, ``"brawl"``) or of a YAML file.

    Raises:
        SchemaError: naming the file, the key and what would be right.
    """
    name = str(mode_or_path)
    if name in MODES:
        return _shipped(name)
    if not name.endswith((".yaml", ".yml")):
        raise SchemaError(f"unknown mode {name!r}: use {', '.join(MODES)} or a .yaml rule file")
    return build(Ruleset, read_yaml(name), name)


@functools.cache
def _shipped(mode: str) -> Ruleset:
    with importlib.resources.as_file(rules_file(mode)) as path:
        return build(Ruleset, read_yaml(path), path.name)
