"""Candidate turns as a learner sees them: the observation and the actions of ``candidates``."""

from typing import Any, Final

import numpy as np

from retinue.envs.actions import MAX_CANDIDATES, Encoding, clear_turn
from retinue.envs.candidates import (
    CANDIDATE_FIELDS,
    PROPOSALS,
    copy_candidate,
    new_scratch,
    propose,
    strategy_memory,
)
from retinue.envs.estimates import STRATEGY
from retinue.envs.facts import FACT_COUNT, FACTS
from retinue.envs.game.board import GUARDS
from retinue.envs.game.jit import Callback, inline_jit, inner_jit
from retinue.envs.game.ruleset import RULES
from retinue.envs.game.state import GAME, Record
from retinue.envs.observation import EXTRA_AT
from retinue.envs.strategy_file import guiding_weights

OFFER: Final = np.dtype(
    (
        np.record,
        np.dtype(
            [
                *CANDIDATE_FIELDS,
                # A row of facts for each candidate follows the state's own sections.
                ("observation", "f4", (EXTRA_AT + MAX_CANDIDATES * FACT_COUNT,)),
            ],
            align=True,
        ),
    )
)
"""The candidates that a learner chooses from, and what it sees of them."""

_SCALE: Final = np.array([fact.scale for fact in FACTS], np.float32)
_IS_SIGNED: Final = np.array([fact.low < 0 for fact in FACTS])


def guide_of(encoding: Encoding) -> np.ndarray[Any, np.dtype[Any]]:
    """Return what guides the generator for an encoding, a ``STRATEGY`` array ``(1,)``.

    The weights are those of the mode's tactician whatever the numbers of the rules: they only
    decide which turns are proposed.
    """
    if not encoding.is_candidates:
        return np.zeros(1, STRATEGY)
    ruleset = encoding.ruleset
    return strategy_memory(ruleset, guiding_weights(ruleset.mode), encoding.candidates)


@inner_jit
def withdraw(guide: Record, offer: Record) -> None:
    """Offer nothing: the rows of all candidates are 0."""
    offer.count = 0
    for index in range(EXTRA_AT, EXTRA_AT + guide.count * FACT_COUNT):
        offer.observation[index] = 0.0


@inner_jit
def take_candidate(offer: Record, action: int, turn: Record) -> int:
    """Set the turn to a candidate, the one that moves nothing if there is none of that number.

    Returns:
        as :func:`retinue.envs.actions.take_step`.
    """
    if 0 <= action < offer.count:
        copy_candidate(offer, action, turn)
        return 1
    clear_turn(turn)
    return 3


@inline_jit
def _seen(value: Any, fact: int) -> Any:
    """Return a fact as a learner sees it, float32."""
    if _IS_SIGNED[fact]:
        return value / (abs(value) + _SCALE[fact])
    return min(max(value / _SCALE[fact], np.float32(0.0)), np.float32(1.0))


@inner_jit
def _write_offer(
    game: Record, rules: Record, guide: Record, offer: Record, scratch: Any, found: Any
) -> None:
    """Write an offer; what was found is in ``found``, ``PROPOSALS`` ``(1,)``."""
    proposals = found[0]
    propose(game, rules, guide, scratch, proposals)
    withdraw(guide, offer)
    offer.count = proposals.count
    for index in range(proposals.count):
        offer.direction[index] = proposals.direction[index]
        offer.noble_steps[index] = proposals.noble_steps[index]
        offer.noble_after[index] = proposals.noble_after[index]
        for guard in range(GUARDS):
            for value in range(6):
                offer.rolls[index, guard, value] = proposals.rolls[index, guard, value]
        at = EXTRA_AT + index * FACT_COUNT
        for fact in range(FACT_COUNT):
            offer.observation[at + fact] = _seen(proposals.row[index, fact], fact)


def make_offer(game: Any, rules: Any, guide: Any, offer: Any) -> int:
    """Write the candidates of the seat to move and their facts, as learners see them."""
    found = np.empty(1, PROPOSALS)
    _write_offer(game, rules, guide, offer, new_scratch(), found)
    return 0


MAKE_OFFER: Final = Callback(make_offer, (GAME, RULES, STRATEGY, OFFER))
"""Called by address, so that kernels need not contain the generator."""
