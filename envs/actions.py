"""The action encodings: how a learner's actions become a turn, and which of them are legal.

``steps``
    ``Discrete(51)``. First the plan: ``13 * direction + noble``, where noble 0 is stay, 1 to 6 are
    steps before the Guards and 7 to 12 are 1 to 6 steps after them. Then any number of
    ``26 + 6 * guard + (value - 1)``: give one stored roll of that value to that Guard. Then 50: end
    the turn.
``turn``
    ``MultiDiscrete([2, 13] + [5] * store_capacity)``: direction, noble as above, and for each
    stored roll, in ascending order of value, keep (0) or the Guard that gets it (1 to 4).
``candidates``
    ``Discrete(candidates)``: which of the turns proposed by the generator
    (:mod:`retinue.envs.candidates`) is played; 0 moves nothing.

Masks are exact and never empty. An action that the mask forbids never raises: it means the most
passive legal one. In ``steps`` that is the plan "forward" (or its own direction) with the Noble
staying, afterwards the end of the turn; in ``turn`` it is "stay" and "keep" for each illegal part;
in ``candidates`` it is the turn that moves nothing.
"""

from dataclasses import dataclass
from typing import Any, Final

import gymnasium
import numpy as np

from retinue.envs.facts import FACT_COUNT
from retinue.envs.game.board import DIRECTION_NAMES, GUARDS
from retinue.envs.game.engine import legal_guards, noble_may_move
from retinue.envs.game.jit import inline_jit, inner_jit
from retinue.envs.game.ruleset import MAX_STORE, Ruleset
from retinue.envs.game.state import Record
from retinue.envs.observation import (
    EXTRA_AT,
    PLAN_DIRECTION,
    PLAN_LEFT,
    PLAN_NOBLE,
    PLAN_SIZE,
    PLAN_TOTALS,
    TOTAL_SCALE,
    Layout,
)

STEPS: Final = 0
TURN_AT_ONCE: Final = 1
CANDIDATES: Final = 2
ENCODINGS: Final = ("steps", "turn", "candidates")
MAX_CANDIDATES: Final = 128

DIRECTIONS: Final = 2
NOBLE_CHOICES: Final = 13
PLANS: Final = DIRECTIONS * NOBLE_CHOICES
GIVES: Final = GUARDS * 6
END_TURN: Final = PLANS + GIVES
STEP_ACTIONS: Final = END_TURN + 1
CHOICES_PER_ROLL: Final = 1 + GUARDS
MAX_PARTS: Final = 2 + MAX_STORE
"""Parts of the longest action under any ruleset."""
MAX_MASK: Final = DIRECTIONS + NOBLE_CHOICES + CHOICES_PER_ROLL * MAX_STORE
"""Length of the longest mask under any ruleset."""

DRAFT_FIELDS: Final = (
    ("planned", "i4"),  # 1 once the plan is chosen (steps)
    ("legal", "i4"),  # bit mask of the Guards that may be given rolls
    ("noble_may_move", "i4"),
    ("left", "i2", (6,)),  # rolls of each value not given yet
)
"""Fields of a record that holds a turn while it is being chosen."""


@dataclass(frozen=True)
class Encoding:
    """One action encoding under one ruleset.

    Args:
        name: one of ``ENCODINGS``.
        ruleset: the rules.
        candidates: how many turns are proposed; of ``candidates`` only.

    Raises:
        ValueError: there is no such encoding, or there cannot be so many candidates.
    """

    name: str
    ruleset: Ruleset
    candidates: int = 64

    def __post_init__(self) -> None:
        if self.name not in ENCODINGS:
            raise ValueError(f"unknown encoding {self.name!r}: use {', '.join(ENCODINGS)}")
        if type(self.candidates) is not int or not 2 <= self.candidates <= MAX_CANDIDATES:
            raise ValueError(
                f"candidates must be an integer, 2 to {MAX_CANDIDATES}, not {self.candidates!r}"
            )

    @property
    def is_candidates(self) -> bool:
        """Whether whole turns are proposed."""
        return self.code == CANDIDATES

    @property
    def code(self) -> int:
        """The encoding's number in compiled code."""
        return ENCODINGS.index(self.name)

    @property
    def nvec(self) -> tuple[int, ...]:
        """How many choices each part of an action has."""
        if self.name == "steps":
            return (STEP_ACTIONS,)
        if self.is_candidates:
            return (self.candidates,)
        return (DIRECTIONS, NOBLE_CHOICES, *[CHOICES_PER_ROLL] * self.ruleset.store_capacity)

    @property
    def mask_size(self) -> int:
        """Length of the mask: the parts' masks, one after the other."""
        return sum(self.nvec)

    def action_space(self) -> gymnasium.Space[Any]:
        """Return a new Gymnasium action space."""
        if self.name == "steps":
            return gymnasium.spaces.Discrete(STEP_ACTIONS)
        if self.is_candidates:
            return gymnasium.spaces.Discrete(self.candidates)
        return gymnasium.spaces.MultiDiscrete(np.array(self.nvec))

    def layout(self) -> Layout:
        """Return the layout of the observation that goes with this encoding."""
        if self.name == "steps":
            return Layout(self.ruleset, ("plan", (PLAN_SIZE,), 0.0, "the turn chosen so far"))
        if self.is_candidates:
            shape = (self.candidates, FACT_COUNT)
            return Layout(self.ruleset, ("candidates", shape, -1.0, "a row of facts for each"))
        capacity = self.ruleset.store_capacity
        meaning = "the stored rolls in ascending order, value / 6"
        return Layout(self.ruleset, ("rolls", (capacity,), 0.0, meaning))

    def describe(self, action: Any) -> str:
        """Return an action of the ``steps`` encoding, or one noble choice, in words."""
        action = int(action)
        if action < PLANS:
            direction, noble = divmod(action, NOBLE_CHOICES)
            return f"{DIRECTION_NAMES[direction]}, {describe_noble(noble)}"
        if action < END_TURN:
            guard, value = divmod(action - PLANS, 6)
            return f"a {value + 1} to G{guard + 1}"
        return "end the turn"


def describe_noble(choice: int) -> str:
    """Return a Noble choice (0 to 12) in words."""
    if choice == 0:
        return "the Noble stays"
    steps, when = (choice, "before") if choice <= 6 else (choice - 6, "after")
    return f"the Noble moves {steps} {when} the Guards"


@inline_jit
def clear_turn(turn: Record) -> None:
    """Set a ``TURN`` to one that moves nothing, forward."""
    turn.direction = 0
    turn.noble_steps = 0
    turn.noble_after = 0
    for guard in range(GUARDS):
        for value in range(6):
            turn.rolls[guard, value] = 0


@inline_jit
def copy_turn(source: Record, target: Record) -> None:
    """Set a ``TURN`` to another."""
    target.direction = source.direction
    target.noble_steps = source.noble_steps
    target.noble_after = source.noble_after
    for guard in range(GUARDS):
        for value in range(6):
            target.rolls[guard, value] = source.rolls[guard, value]


@inner_jit
def start_draft(game: Record, rules: Record, draft: Record, turn: Record) -> None:
    """Begin choosing: an empty ``turn``, and in ``draft`` what may be chosen."""
    clear_turn(turn)
    draft.planned = 0
    draft.legal = legal_guards(game, rules)
    draft.noble_may_move = 1 if noble_may_move(game, rules) else 0
    for value in range(6):
        draft.left[value] = game.store[game.seat, value]


@inner_jit
def close_draft(draft: Record, turn: Record) -> None:
    """Set a draft for a match that is over: only a direction can be chosen."""
    clear_turn(turn)
    draft.planned = 0
    draft.legal = 0
    draft.noble_may_move = 0
    for value in range(6):
        draft.left[value] = 0


@inline_jit
def _choose_plan(draft: Record, turn: Record, direction: int, noble: int) -> bool:
    """Set direction and Noble; an illegal Noble choice becomes "stay". Return if it was legal."""
    turn.direction = direction
    if noble > 0 and not draft.noble_may_move:
        return False
    turn.noble_steps = noble if noble <= 6 else noble - 6
    turn.noble_after = 1 if noble > 6 else 0
    return True


@inner_jit
def take_step(draft: Record, turn: Record, action: int) -> int:
    """Add one action of ``steps`` to the turn.

    Returns:
        bit 0: the turn is complete; bit 1: the action was illegal.
    """
    if not draft.planned:
        draft.planned = 1
        if action < 0 or action >= PLANS:
            return 2
        direction = action // NOBLE_CHOICES
        legal = _choose_plan(draft, turn, direction, action - direction * NOBLE_CHOICES)
        return 0 if legal else 2
    if action == END_TURN:
        return 1
    if action < PLANS or action > END_TURN:
        return 3
    guard = (action - PLANS) // 6
    value = action - PLANS - 6 * guard
    if draft.left[value] == 0 or not (draft.legal >> guard) & 1:
        return 3
    draft.left[value] -= 1
    turn.rolls[guard, value] += 1
    return 0


@inner_jit
def take_turn(draft: Record, turn: Record, action: Any, capacity: int) -> int:
    """Set the turn from one action of ``turn``, whose first ``2 + capacity`` numbers count.

    Returns:
        as :func:`take_step`.
    """
    legal = 0 <= action[0] < DIRECTIONS and 0 <= action[1] < NOBLE_CHOICES
    direction = 1 if action[0] == 1 else 0
    noble = action[1] if 0 <= action[1] < NOBLE_CHOICES else 0
    if not _choose_plan(draft, turn, direction, noble):
        legal = False
    part = 2
    for value in range(6):
        for _ in range(draft.left[value]):
            choice = action[part]
            part += 1
            if 1 <= choice <= GUARDS and (draft.legal >> (choice - 1)) & 1:
                turn.rolls[choice - 1, value] += 1
            elif choice != 0:
                legal = False
    for index in range(part, 2 + capacity):
        if action[index] != 0:
            legal = False
    return 1 if legal else 3


@inner_jit
def write_plan_mask(draft: Record, mask: Any) -> None:
    """Write the mask of a turn's first action in ``steps``, uint8 ``(51,)``."""
    for choice in range(NOBLE_CHOICES):
        legal = 1 if choice == 0 else draft.noble_may_move
        mask[choice] = legal
        mask[NOBLE_CHOICES + choice] = legal
    for action in range(PLANS, STEP_ACTIONS):
        mask[action] = 0


@inner_jit
def write_give_mask(draft: Record, mask: Any) -> None:
    """Write the mask of ``steps`` once the plan is chosen."""
    for plan in range(PLANS):
        mask[plan] = 0
    for guard in range(GUARDS):
        legal = (draft.legal >> guard) & 1
        for value in range(6):
            mask[PLANS + 6 * guard + value] = legal if draft.left[value] > 0 else 0
    mask[END_TURN] = 1


@inner_jit
def update_give_mask(draft: Record, mask: Any, action: int) -> None:
    """Bring the mask of ``steps`` up to date after a roll was given."""
    value = (action - PLANS) % 6
    if draft.left[value] == 0:
        for guard in range(GUARDS):
            mask[PLANS + 6 * guard + value] = 0


@inner_jit
def write_turn_mask(draft: Record, mask: Any, capacity: int) -> None:
    """Write the mask of ``turn``, uint8 ``(2 + 13 + 5 * capacity,)``, one part after the other."""
    mask[0] = 1
    mask[1] = 1
    for choice in range(NOBLE_CHOICES):
        mask[DIRECTIONS + choice] = 1 if choice == 0 else draft.noble_may_move
    at = DIRECTIONS + NOBLE_CHOICES
    for value in range(6):
        for _ in range(draft.left[value]):
            mask[at] = 1
            for guard in range(GUARDS):
                mask[at + 1 + guard] = (draft.legal >> guard) & 1
            at += CHOICES_PER_ROLL
    while at < DIRECTIONS + NOBLE_CHOICES + CHOICES_PER_ROLL * capacity:
        mask[at] = 1
        for guard in range(GUARDS):
            mask[at + 1 + guard] = 0
        at += CHOICES_PER_ROLL


@inner_jit
def write_candidates_mask(count: int, mask: Any, most: int) -> None:
    """Write the mask of ``candidates``, uint8 ``(most,)``; without any the first is left."""
    for index in range(most):
        mask[index] = 1 if index < max(1, count) else 0


@inner_jit
def encode_plan(draft: Record, rules: Record, out: Any) -> None:
    """Write the section ``plan`` of a turn of which nothing is chosen yet."""
    for index in range(PLAN_LEFT):
        out[EXTRA_AT + index] = 0
    per_roll = np.float32(1.0) / np.float32(rules.store_capacity)
    for value in range(6):
        out[EXTRA_AT + PLAN_LEFT + value] = np.float32(draft.left[value]) * per_roll


@inner_jit
def encode_choice_of_plan(turn: Record, out: Any) -> None:
    """Add direction and Noble to the section ``plan`` once they are chosen."""
    out[EXTRA_AT + PLAN_DIRECTION + turn.direction] = 1
    out[EXTRA_AT + PLAN_NOBLE + turn.noble_after] = np.float32(turn.noble_steps) * np.float32(1 / 6)


@inner_jit
def encode_give(draft: Record, rules: Record, turn: Record, action: int, out: Any) -> None:
    """Bring the section ``plan`` up to date after a roll was given."""
    guard = (action - PLANS) // 6
    value = action - PLANS - 6 * guard
    given = 0
    for each in range(6):
        given += int(turn.rolls[guard, each]) * (each + 1)
    out[EXTRA_AT + PLAN_TOTALS + guard] = np.float32(given) / (np.float32(given) + TOTAL_SCALE)
    out[EXTRA_AT + PLAN_LEFT + value] = np.float32(draft.left[value]) / np.float32(
        rules.store_capacity
    )


@inner_jit
def encode_rolls(draft: Record, out: Any, capacity: int) -> None:
    """Write the section ``rolls``."""
    at = EXTRA_AT
    for value in range(6):
        for _ in range(draft.left[value]):
            out[at] = np.float32(value + 1) * np.float32(1 / 6)
            at += 1
    while at < EXTRA_AT + capacity:
        out[at] = 0
        at += 1
