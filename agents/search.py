"""The agent that looks ahead: rollouts of the most promising turns, by a base agent's own policy.

For each decision it takes its base's own choice and the best turns that the generator proposes,
plays each on a copy, lets policies play on for some turns with dice of its own, and compares what
that is worth. The better half of the turns gets more rollouts, round by round (sequential halving).
Another turn than the base's is taken only if it is clearly better.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from retinue.agents.rollouts import (
    CAST,
    roll_out,
    roll_out_parallel,
    write_candidates,
    write_seeds,
)
from retinue.agents.strategies import CANDIDATES
from retinue.envs.candidates import strategy_memory
from retinue.envs.choosing import choose_by_weights
from retinue.envs.facts import FACT_NAMES
from retinue.envs.game.board import SEATS
from retinue.envs.game.dice import derive
from retinue.envs.game.engine import IllegalTurn
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import TURN
from retinue.envs.opponents import Policy, View
from retinue.envs.parallel import MAX_THREADS, pool_of
from retinue.envs.strategy_file import guiding_weights

LEAST: Final = 4
"""Rollouts of each turn at least. Few do, for all turns have the same dice: comparing
more of them is worth more."""
AT_ONCE: Final = 256
"""Rollouts between two looks at the keyboard (Ctrl-C): a fraction of a second."""
MOST_ROLLOUTS: Final = 1_000_000
MOST_DEPTH: Final = 1000

TOTALS: Final = [FACT_NAMES.index(name) for name in ("margin", "lead")]

_FOR_BASE: Final = 0
"""Purposes for which chance is derived from a decision's key; those above are of rollouts."""


@dataclass(frozen=True)
class Settings:
    """How a search looks ahead.

    Attributes:
        rollouts: how many for a turn, all candidates together.
        time: seconds for a turn; if not 0 they end the search, not the count of rollouts.
        depth: own decisions after the candidate; a rollout ends with the last of them.
        top: candidate turns that are compared.
        candidates: how many turns a strategy looks at within rollouts.
        doubt: standard errors by which a turn must be better than the base's own to be taken.
        threads: 0 for all that Numba may use.
    """

    rollouts: int
    time: float
    depth: int
    top: int
    candidates: int
    doubt: float
    threads: int

    def turns_compared(self) -> int:
        """Return how many turns are: ``top``, or as many as the rollouts suffice for."""
        count = self.top
        while not self.time and count > 1 and self.rollouts < LEAST * count * rounds_of(count):
            count -= 1
        return count


def rounds_of(count: int) -> int:
    """Return in how many rounds so many turns are halved to two, which have the last one."""
    return max(1, (count - 1).bit_length())


class Comparison:
    """The turns that are still compared, and the scores of their rollouts.

    All have had the same rollouts, so differences are paired. The first turn is the base's own.

    Args:
        turns: ``TURN`` ``(m,)``.
    """

    def __init__(self, turns: Any) -> None:
        self.turns = turns
        self.scores = np.zeros((len(turns), 0))

    def drop_worse_half(self) -> None:
        """Keep the better half of the turns, and the first in any case."""
        means = self.scores.mean(axis=1)
        means[0] = np.inf
        kept = np.sort(np.argsort(-means, kind="stable")[: (len(means) + 1) // 2])
        self.turns, self.scores = self.turns[kept], self.scores[kept]

    def best(self, doubt: float) -> Any:
        """Return the turn of the best mean, or the first unless that one is better beyond doubt."""
        if len(self.turns) == 1:
            return self.turns[0]
        gains = self.scores - self.scores[0]
        means = gains.mean(axis=1)
        found = int(np.argmax(means))
        error = gains[found].std(ddof=1) / gains.shape[1] ** 0.5
        return self.turns[found if means[found] > doubt * error else 0]


def halving(compared: Comparison, settings: Settings, began: float) -> Iterator[int]:
    """Yield how many more rollouts of each turn are due, and drop the worse half of the turns.

    Whoever asks for the next number has added the scores of the last one.

    Args:
        compared: the turns; of a single one no rollouts are due.
        settings: how many rollouts, or how long.
        began: by ``time.perf_counter``, from when on seconds count.
    """
    if len(compared.turns) < 2:
        return
    rounds = rounds_of(len(compared.turns))
    for done in range(1, rounds + 1):
        if settings.time:
            moment = began + settings.time * done / rounds
            yield LEAST
            while time.perf_counter() < moment:
                yield LEAST
            if time.perf_counter() > began + settings.time:
                return  # here a round takes longer than all of them may
        else:
            left = settings.rollouts // rounds // len(compared.turns)
            while left:
                count = min(left, max(1, AT_ONCE // len(compared.turns)))
                yield count
                left -= count
        if done < rounds:
            compared.drop_worse_half()


class SearchAgent:
    """An agent that tries its base's best turns in rollouts.

    Args:
        name: its specification.
        base: the policy that it starts from and that plays its own seat in rollouts.
        opponents: the policy that the other seats are taken to have.
        settings: how it looks ahead.
        ruleset: the only rules that it plays under.
    """

    compiled = None

    def __init__(
        self, name: str, base: Policy, opponents: Policy, settings: Settings, ruleset: Ruleset
    ) -> None:
        self.name = name
        self._base = Policy(base.callback.function, base.memory, ruleset)
        self._settings = settings
        self._rules = np.array([ruleset.packed])
        self._guide = _guide(base, ruleset)
        self._quick_guide = _quickened(self._guide, settings.candidates)
        count = settings.candidates
        self._players = quickened(base, count), quickened(opponents, count)

    def __repr__(self) -> str:
        return f"SearchAgent({self.name!r}, {self._settings})"

    def knowledge(self) -> bytes:
        """Return all that it knows: another base, or other weights, are other bytes."""
        policies = [self._base, *self._players]
        memories = [each.memory.tobytes() for each in policies if each.memory is not None]
        return b"".join([self._guide.tobytes(), *memories])

    def choose(self, view: View, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
        """Return a ``TURN`` array, shape ``(n,)``: the turn found for each game, one by one.

        ``rng`` is left alone: all chance comes from ``view.keys``.

        Raises:
            ValueError: the agent was made for other rules.
            IllegalTurn: a policy chose one in a rollout.
        """
        self._base.check(view.ruleset, self.name)
        turns = np.zeros(len(view.games), TURN)
        for index, key in enumerate(view.keys):
            turns[index] = self._search(view.games[index : index + 1], key)
        return turns

    def _search(self, games: Any, key: np.uint64) -> Any:
        """Return the turn found for a game, ``GAME`` ``(1,)``."""
        began = time.perf_counter()
        settings = self._settings
        compared = self._candidates(games, key)
        cast = self._cast(int(games["seat"][0]))
        for count in halving(compared, settings, began):
            self._play(games, key, cast, compared, count)
        return compared.best(settings.doubt)

    def _candidates(self, games: Any, key: np.uint64) -> Comparison:
        """Return the turns to compare, the base's own choice first."""
        top = self._settings.turns_compared()
        turns = np.zeros(top, TURN)
        base = np.array([self._base.address, self._base.memory_address])
        chance = np.uint64(derive(key, _FOR_BASE))
        count = write_candidates(games, self._rules, chance, base, self._guide, turns)
        return Comparison(turns[:count])

    def _cast(self, seat: int) -> Any:
        """Return who plays the rollouts of a seat, ``CAST`` ``(1,)``."""
        cast = np.zeros(1, CAST)
        cast["depth"] = self._settings.depth
        cast["valued"] = _is_strategy(self._base)
        cast["weighs_totals"] = cast["valued"] and self._guide["weights"][0, TOTALS].any()
        for other in range(SEATS):
            player = self._players[other != seat]
            cast["policies"][0, other] = player.address
            cast["memories"][0, other] = player.memory_address
        return cast

    def _play(
        self, games: Any, key: np.uint64, cast: Any, compared: Comparison, count: int
    ) -> None:
        """Play so many more rollouts of each turn that is compared."""
        seeds = np.zeros(count, np.uint64)
        write_seeds(key, _FOR_BASE + 1 + compared.scores.shape[1], seeds)
        scores = np.zeros((len(compared.turns), count))
        task = (games, self._rules, cast, self._quick_guide, compared.turns)
        threads = self._settings.threads or MAX_THREADS
        if threads == 1:
            roll_out(*task, seeds, scores)
        else:
            with pool_of(threads):
                roll_out_parallel(*task, seeds, scores)
        if np.isnan(scores).any():
            raise IllegalTurn(f"agent {self.name}: a policy chose an illegal turn in a rollout")
        compared.scores = np.hstack([compared.scores, scores])


def _is_strategy(policy: Policy) -> bool:
    """Tell whether a policy weighs turns that the generator proposes."""
    if policy.memory is None or policy.callback.function is not choose_by_weights:
        return False
    return not policy.memory["at_random"][0]


def _guide(base: Policy, ruleset: Ruleset) -> Any:
    """Return what proposes turns, ``STRATEGY`` ``(1,)``: the base if it can, else the tactician."""
    if base.memory is not None and _is_strategy(base):
        return base.memory
    return strategy_memory(ruleset, guiding_weights(ruleset.mode), CANDIDATES)


def _quickened(memory: Any, candidates: int) -> Any:
    """Return a ``STRATEGY`` ``(1,)`` that looks at no more turns than these."""
    quick = memory.copy()
    quick["count"] = np.minimum(quick["count"], candidates)
    return quick


def quickened(policy: Policy, candidates: int) -> Policy:
    """Return a policy as it plays in rollouts: a strategy looks at no more turns than these."""
    if policy.memory is None or not _is_strategy(policy):
        return policy
    return Policy(choose_by_weights, _quickened(policy.memory, candidates), policy.ruleset)
