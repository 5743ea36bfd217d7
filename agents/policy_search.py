"""The agent that looks ahead with a trained policy: rollouts of the turns that it likes best.

In rollouts the policy plays all four seats. They end with one of the seat's own decisions, which
the policy's value judges. Other turns than the policy's own choice are compared with it as
:mod:`retinue.agents.search` does it. All rollouts of a decision, and of all games that are asked
about at once, go in step, so that the network is asked once for each turn of theirs.
"""

import time
from typing import Any, Final

import numpy as np

from retinue.agents.policy import Floats, PolicyAgent, PolicyError, Returns, masked_choice
from retinue.agents.policy_rollouts import ROLLOUT, TERMS, begin, play_on
from retinue.agents.rollouts import write_seeds
from retinue.agents.search import Comparison, Settings, halving
from retinue.envs.game.engine import IllegalTurn
from retinue.envs.game.state import GAME, OVER, TURN
from retinue.envs.kernels import CONSIDER, RESET, STEP
from retinue.envs.opponents import View
from retinue.envs.parallel import MAX_THREADS, Memory, new_memory, serve_games
from retinue.envs.rewards import Reward

AT_ONCE: Final = 1024
"""Rollouts in step at most: enough for the network, and they stay in the processor's caches."""
NEGLIGIBLE: Final = 1e-3
"""Probability below which the policy's opinion of a turn is taken for granted."""


class PolicySearchAgent:
    """An agent that tries a trained policy's best turns in rollouts.

    Args:
        name: its specification.
        policy: of the encoding ``candidates``, with values.
        settings: how it looks ahead.

    Raises:
        PolicyError: the policy has no values, or nobody knows what they mean.
    """

    compiled = None

    def __init__(self, name: str, policy: PolicyAgent, settings: Settings) -> None:
        encoding, returns = policy.encoding, policy.returns
        if not encoding.is_candidates:
            raise PolicyError(
                f"{policy.name}: a search needs a policy with values, which those of the encoding "
                f"candidates have; this one's is {encoding.name}"
            )
        if returns is None:
            raise PolicyError(f"{policy.name}: does not tell in which rewards its values are")
        self.name = name
        self._policy = policy
        self._settings = settings
        self._terms = _terms(returns)
        self._threads = settings.threads or MAX_THREADS
        self._memory = new_memory(encoding, np.zeros(0, GAME))

    def __reduce__(self) -> Any:
        """Leave the memory behind: it holds addresses, and a copy may wake up elsewhere."""
        return type(self), (self.name, self._policy, self._settings)

    def __repr__(self) -> str:
        return f"PolicySearchAgent({self.name!r}, {self._settings})"

    def choose(self, view: View, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
        """Return a ``TURN`` array, shape ``(n,)``: the turn found for each game.

        ``rng`` is left alone: all chance comes from ``view.keys``.

        Raises:
            ValueError: the agent was made for other rules.
            IllegalTurn: the policy chose one in a rollout.
            PolicyError: its model gives no values.
        """
        own = self._policy.encoding.ruleset
        if view.ruleset.digest != own.digest:
            raise ValueError(
                f"agent {self.name} was made for {own.mode} with rules {own.digest}, "
                f"these are {view.ruleset.mode} with rules {view.ruleset.digest}"
            )
        turns = np.zeros(len(view.games), TURN)
        # With a time limit each game has its own time.
        at_once = 1 if self._settings.time else len(view.games)
        for first in range(0, len(view.games), at_once or 1):
            part = slice(first, first + at_once)
            turns[part] = self._search(view.games[part], view.keys[part])
        return turns

    def _search(self, games: Any, keys: Any) -> Any:
        """Return the turns found for some games, ``TURN`` ``(g,)``."""
        began = time.perf_counter()
        settings = self._settings
        searches = [Comparison(turns) for turns in self._candidates(games)]
        plans = [halving(compared, settings, began) for compared in searches]
        while due := [
            (index, count) for index, plan in enumerate(plans) if (count := next(plan, 0))
        ]:
            self._play(games, keys, searches, due)
        return np.array([compared.best(settings.doubt) for compared in searches], TURN)

    def _candidates(self, games: Any) -> list[Any]:
        """Return for each game the turns to compare, the policy's own choice first."""
        encoding = self._policy.encoding
        memory = new_memory(encoding, games)
        serve_games(memory, np.arange(len(games)), RESET, CONSIDER.address, self._threads)
        observations, masks, _ = memory.learners_views(encoding)
        logits, _ = self._evaluate(np.ascontiguousarray(observations))
        legal = np.where(masks, logits, -np.inf)
        shares = np.exp(legal - legal.max(axis=1, keepdims=True))
        tried = shares >= NEGLIGIBLE * shares.sum(axis=1, keepdims=True)
        order = np.where(tried, -legal, np.inf)
        own = masked_choice(logits, masks, encoding.nvec)
        np.put_along_axis(order, own, -np.inf, axis=1)
        best = np.argsort(order, axis=1, kind="stable")
        counts = np.minimum(tried.sum(axis=1), self._settings.turns_compared())
        return [
            _turns_of(offer, chosen[:count])
            for offer, chosen, count in zip(memory.offers, best, counts, strict=True)
        ]

    def _play(
        self, games: Any, keys: Any, searches: list[Comparison], due: list[tuple[int, int]]
    ) -> None:
        """Play more rollouts.

        Args:
            games: ``GAME`` ``(g,)``.
            keys: uint64 ``(g,)``.
            searches: for each game the turns that are compared.
            due: of which games, and how many rollouts of each turn.
        """
        starts, turns, seeds = [], [], []
        for index, count in due:
            compared = searches[index]
            drawn = np.zeros(count, np.uint64)
            write_seeds(keys[index], compared.scores.shape[1], drawn)
            starts.append(np.full(len(compared.turns) * count, index))
            turns.append(np.repeat(compared.turns, count))
            seeds.append(np.tile(drawn, len(compared.turns)))
        scores = self._roll_out(
            games, np.concatenate(starts), np.concatenate(turns), np.concatenate(seeds)
        )
        at = 0
        for index, count in due:
            compared = searches[index]
            size = len(compared.turns) * count
            more = scores[at : at + size].reshape(-1, count)
            compared.scores = np.hstack([compared.scores, more])
            at += size

    def _roll_out(self, games: Any, starts: Any, turns: Any, seeds: Any) -> Any:
        """Return what rollouts are worth to the seats to move, float64 ``(n,)``.

        Args:
            games: ``GAME`` ``(g,)``.
            starts: int64 ``(n,)``, from which of the games each rollout starts.
            turns: ``TURN`` ``(n,)``, what is played first.
            seeds: uint64 ``(n,)``, of the dice.
        """
        worths = np.zeros(len(starts))
        for first in range(0, len(starts), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            rollouts = np.zeros(len(starts[part]), ROLLOUT)
            rollouts["seed"] = seeds[part]
            memory = self._memory_of(len(rollouts))
            memory.turns[: len(rollouts)] = turns[part]
            depth = self._settings.depth
            begin(games, starts[part], memory.games, rollouts, self._terms, depth)
            worths[part] = self._finish(memory, rollouts)
        return worths

    def _finish(self, memory: Memory, rollouts: Any) -> Any:
        """Play rollouts to their ends; return what they are worth, float64 ``(n,)``."""
        encoding = self._policy.encoding
        observations, masks, actions = memory.learners_views(encoding)
        going = np.arange(len(rollouts))
        while going.size:
            if play_on(
                memory.games, memory.turns, rollouts, going, memory.rules, self._terms, memory.log
            ):
                raise IllegalTurn(f"agent {self.name}: the policy chose an illegal turn")
            going = going[memory.games["phase"][going] != OVER]
            if not going.size:
                break
            serve_games(memory, going, RESET, CONSIDER.address, self._threads)
            logits, values = self._evaluate(observations[going])
            ends = rollouts["left"][going] == 0
            last = going[ends]
            rollouts["worth"][last] += rollouts["factor"][last] * values[ends]
            going = going[~ends]
            actions[going] = masked_choice(logits[~ends], masks[going], encoding.nvec)
            serve_games(memory, going, STEP, CONSIDER.address)
        return rollouts["worth"]

    def _evaluate(self, observations: Floats) -> tuple[Floats, Floats]:
        logits, values = self._policy.model.evaluate(observations)
        if values is None:
            raise PolicyError(f"{self._policy.name}: has no values, which a search needs")
        return logits, values

    def _memory_of(self, count: int) -> Memory:
        """Return memory for so many rollouts at least; making it anew would cost half the time."""
        if len(self._memory.games) < count:
            self._memory = new_memory(self._policy.encoding, np.zeros(count, GAME))
            guide = self._memory.guide  # rows that it leaves over are empty, as if none were found
            guide["count"] = np.minimum(guide["count"], self._settings.candidates)
        return self._memory


def _terms(returns: Returns) -> Any:
    """Return how training paid, ``TERMS`` ``(1,)``."""
    reward = Reward(returns.mode, returns.scale, returns.place_bonus)
    terms = np.zeros(1, TERMS)
    terms["reward"] = reward.code
    terms["divisor"] = reward.divisor
    terms["place_bonus"] = returns.place_bonus * reward.divisor
    terms["discount"] = returns.discount
    return terms


def _turns_of(offer: Any, chosen: Any) -> Any:
    """Return some of the candidates of an ``OFFER``, ``TURN`` ``(m,)``."""
    turns = np.zeros(len(chosen), TURN)
    for name in ("direction", "noble_steps", "noble_after", "rolls"):
        turns[name] = offer[name][chosen]
    return turns
