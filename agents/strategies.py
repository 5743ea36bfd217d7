"""Strategies: agents that weigh the facts of candidate turns, each a file of a few weights.

The candidates are proposed by the generator (:mod:`retinue.envs.candidates`), guided by the
strategy's own weights, or drawn at random.
"""

from typing import Final

from retinue.agents.base import CompiledAgent
from retinue.envs.actions import MAX_CANDIDATES
from retinue.envs.candidates import strategy_memory
from retinue.envs.choosing import choose_by_weights
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.opponents import Policy
from retinue.envs.strategy_file import StrategyError, Weights

CANDIDATES: Final = 32
"""Candidates that a strategy looks at unless another number is given."""
MOST_AT_RANDOM: Final = 1_000_000


def make_strategy(
    name: str,
    weights: Weights,
    ruleset: Ruleset,
    candidates: int = CANDIDATES,
    *,
    at_random: bool = False,
) -> CompiledAgent:
    """Return the agent that takes the candidate turn which its weights value most.

    Args:
        name: of the agent.
        weights: by fact; what is not named weighs nothing.
        ruleset: the only rules that it can play under.
        candidates: how many turns it looks at.
        at_random: they are drawn, uniformly part by part, not proposed.

    Raises:
        StrategyError: there cannot be so many candidates.
    """
    # The first one that is proposed moves nothing.
    least, most = (1, MOST_AT_RANDOM) if at_random else (2, MAX_CANDIDATES)
    if not least <= candidates <= most:
        raise StrategyError(
            f"agent {name}: candidates must be {least} to {most:,}"
            f"{'' if at_random else ' unless they are drawn at random'}, not {candidates:,}"
        )
    memory = strategy_memory(ruleset, weights, candidates, at_random=at_random)
    return CompiledAgent(name, Policy(choose_by_weights, memory, ruleset))
