"""Rollouts with a trained policy: what a turn is worth by the policy's own value, a while later.

All rollouts of a decision, and of all games that are asked about at once, go in step, so that the
network is asked once for each turn of theirs.
"""

from typing import Any, Final

import numpy as np

from retinue.agents.policy import Floats, PolicyAgent, PolicyError, Returns, masked_choice
from retinue.agents.policy_rollouts import ROLLOUT, TERMS, begin, play_on, play_on_parallel
from retinue.envs.actions import Encoding
from retinue.envs.game.engine import IllegalTurn
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import GAME, OVER, TURN
from retinue.envs.kernels import CONSIDER, RESET, STEP
from retinue.envs.opponents import Policy
from retinue.envs.parallel import MAX_THREADS, Memory, new_memory, pool_of, serve_games
from retinue.envs.rewards import Reward

AT_ONCE: Final = 1024
"""Rollouts in step at most: enough for the network, and they stay in the processor's caches."""


class Playouts:
    """Rollouts of a policy's decisions.

    Args:
        policy: of the encoding ``candidates``, with values.
        depth: own decisions after the one that is due; a rollout ends with the last of them.
        candidates: turns that the policy chooses from in rollouts, if it was trained with so many.
        others: the policy that the other seats are taken to have; None if it is the same.
        threads: of the kernels; 0 for all that Numba may use.

    Attributes:
        threads: of the kernels, which may be changed.

    Raises:
        PolicyError: the policy has no values, or nobody knows what they mean.
    """

    def __init__(
        self, policy: PolicyAgent, depth: int, candidates: int, others: Policy | None, threads: int
    ) -> None:
        encoding, returns = policy.encoding, policy.returns
        if not encoding.is_candidates:
            raise PolicyError(
                f"{policy.name}: looking ahead needs a policy with values, which those of the "
                f"encoding candidates have; this one's is {encoding.name}"
            )
        if returns is None:
            raise PolicyError(f"{policy.name}: does not tell in which rewards its values are")
        self.policy = policy
        self._depth = depth
        self._others = others
        self.threads = threads or MAX_THREADS
        self._terms = _terms(returns)
        count = min(candidates, encoding.candidates)
        self._encoding = Encoding(encoding.name, encoding.ruleset, count)
        self._memory = new_memory(self._encoding, np.zeros(0, GAME))

    def __reduce__(self) -> Any:
        """Leave the memory behind: it holds addresses, and a copy may wake up elsewhere."""
        count = self._encoding.candidates
        made_of = self.policy, self._depth, count, self._others, self.threads
        return type(self), made_of

    def check(self, ruleset: Ruleset, name: str) -> None:
        """Refuse rules that the policy was not made for.

        Raises:
            ValueError: naming both; ``name`` is the agent's.
        """
        own = self.policy.encoding.ruleset
        if ruleset.digest != own.digest:
            raise ValueError(
                f"agent {name} was made for {own.mode} with rules {own.digest}, "
                f"these are {ruleset.mode} with rules {ruleset.digest}"
            )

    def look(self, games: Any) -> tuple[Floats, Any, Any]:
        """Return what the policy thinks of positions, ``GAME`` ``(n,)``.

        Returns:
            logits float32 ``(n, k)``, masks bool ``(n, k)`` and the candidates, ``OFFER`` ``(n,)``.
        """
        logits, values, masks, offers = look_at(self.policy, games, self.threads)
        self._check_values(values)
        return logits, masks, offers

    def roll_out(self, games: Any, starts: Any, turns: Any, seeds: Any) -> Any:
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
            begin(games, starts[part], memory.games, rollouts, self._terms, self._depth)
            worths[part] = self._finish(memory, rollouts)
        return worths

    def _finish(self, memory: Memory, rollouts: Any) -> Any:
        """Play rollouts to their ends; return what they are worth, float64 ``(n,)``."""
        observations, masks, actions = memory.learners_views(self._encoding)
        going = np.arange(len(rollouts))
        while going.size:
            self._play_on(memory, rollouts, going)
            going = going[memory.games["phase"][going] != OVER]
            if not going.size:
                break
            serve_games(memory, going, RESET, CONSIDER.address, self.threads)
            logits, values = self._evaluate(observations[going])
            ends = rollouts["left"][going] == 0
            last = going[ends]
            rollouts["worth"][last] += rollouts["factor"][last] * values[ends]
            going = going[~ends]
            actions[going] = masked_choice(logits[~ends], masks[going], self._encoding.nvec)
            serve_games(memory, going, STEP, CONSIDER.address)
        return rollouts["worth"]

    def _play_on(self, memory: Memory, rollouts: Any, going: Any) -> None:
        """Play the turns chosen in rollouts, and those of the others if a policy is theirs."""
        others = np.zeros(2, np.int64)
        if self._others is not None:
            others[:] = self._others.address, self._others.memory_address
        task = memory.games, memory.turns, rollouts, going, memory.rules, self._terms, memory.log
        if self.threads == 1 or self._others is None:
            illegal = play_on(*task, others)
        else:
            with pool_of(self.threads):
                illegal = play_on_parallel(*task, others)
        if illegal:
            raise IllegalTurn(f"agent {self.policy.name}: an illegal turn in a rollout")

    def _evaluate(self, observations: Floats) -> tuple[Floats, Floats]:
        logits, values = self.policy.model.evaluate(observations)
        return logits, self._check_values(values)

    def _check_values(self, values: Floats | None) -> Floats:
        if values is None:
            raise PolicyError(f"{self.policy.name}: has no values, which looking ahead needs")
        return values

    def _memory_of(self, count: int) -> Memory:
        """Return memory for so many rollouts at least; making it anew would cost half the time."""
        if len(self._memory.games) < count:
            self._memory = new_memory(self._encoding, np.zeros(count, GAME))
        return self._memory


def look_at(
    policy: PolicyAgent, games: Any, threads: int
) -> tuple[Floats, Floats | None, Any, Any]:
    """Return what a policy of the encoding ``candidates`` thinks of positions.

    Args:
        policy: which thinks.
        games: ``GAME`` ``(n,)``, turns due.
        threads: of the kernels.

    Returns:
        logits float32 ``(n, k)``; values float32 ``(n,)``, None if it has none; masks bool
        ``(n, k)``; and the candidates, ``OFFER`` ``(n,)``.
    """
    memory = new_memory(policy.encoding, games)
    serve_games(memory, np.arange(len(games)), RESET, CONSIDER.address, threads)
    observations, masks, _ = memory.learners_views(policy.encoding)
    logits, values = policy.model.evaluate(np.ascontiguousarray(observations))
    return logits, values, masks, memory.offers


def _terms(returns: Returns) -> Any:
    """Return how training paid, ``TERMS`` ``(1,)``."""
    reward = Reward(returns.mode, returns.scale, returns.place_bonus)
    terms = np.zeros(1, TERMS)
    terms["reward"] = reward.code
    terms["divisor"] = reward.divisor
    terms["place_bonus"] = returns.place_bonus * reward.divisor
    terms["discount"] = returns.discount
    return terms


def turns_of(offers: Any, games: Any, chosen: Any) -> Any:
    """Return candidates, ``TURN`` ``(m,)``.

    Args:
        offers: ``OFFER`` ``(n,)``.
        games: integers ``(m,)``, of which of them each is.
        chosen: integers ``(m,)``, which candidate of it.
    """
    turns = np.zeros(len(chosen), TURN)
    for name in ("direction", "noble_steps", "noble_after", "rolls"):
        turns[name] = offers[name][games, chosen]
    return turns
