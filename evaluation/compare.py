"""Which of two agents is stronger: blocks of matches until a sequential test can say."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from retinue.agents.base import Agent
from retinue.envs.game.board import SEATS
from retinue.envs.game.dice import SEED_BITS
from retinue.envs.game.ruleset import Ruleset
from retinue.evaluation.arena import ArenaError, Progress, play_matches
from retinue.evaluation.pairs import check_threads
from retinue.evaluation.sequential import SequentialTest
from retinue.evaluation.statistics import block_means

BLOCKS_AT_ONCE: Final = 32
"""Blocks between two looks at the test, if kernels can call both agents."""
ASKED_BLOCKS: Final = 4
"""The same if one has to be asked, which may take its time."""


@dataclass(frozen=True)
class Comparison:
    """How two agents compared.

    Attributes:
        names: of the two.
        test: as it stood at the end; of later blocks it knows nothing.
        interrupted: the user stopped it.
    """

    names: tuple[str, str]
    test: SequentialTest
    interrupted: bool

    def in_words(self) -> str:
        """Return what came out, in one line."""
        if not self.test.blocks:
            return f"no block of {self.names[0]} and {self.names[1]} has been played"
        found = self.test.estimate()
        told = {
            "first": f"{self.names[0]} is stronger than {self.names[1]}",
            "second": f"{self.names[1]} is stronger than {self.names[0]}",
            "equal": f"{self.names[0]} and {self.names[1]} are equal within the margin",
            None: f"not decided yet between {self.names[0]} and {self.names[1]}",
        }[self.test.verdict]
        return (
            f"{told}: {self.names[0]} has {100 * found.value:.1f}% ({100 * found.low:.1f}-"
            f"{100 * found.high:.1f}) of the first places, par 50, after "
            f"{self.test.blocks * SEATS:,} matches in {self.test.blocks:,} blocks"
        )


def compare(
    one: Agent,
    other: Agent,
    ruleset: Ruleset,
    test: SequentialTest,
    *,
    most_blocks: int,
    seed: int = 0,
    threads: int | None = None,
    at_once: int | None = None,
    on_progress: Progress,
) -> Comparison:
    """Play two agents against each other until the test is decided, or the user interrupts.

    In a block each agent has two neighbouring seats, and the line-up goes round the board with the
    same dice. The test looks at the one's share of the block's first places.

    Args:
        one: an agent.
        other: another one.
        ruleset: the rules.
        test: new.
        most_blocks: after so many it stays undecided.
        seed: of the first block's dice; the next block has the next.
        threads: of the kernels; by default all that Numba may use.
        at_once: blocks between two looks at the test; by default many if kernels can call both
            agents, few if one has to be asked.
        on_progress: is told how many blocks have been played, of how many at most.

    Raises:
        ArenaError: an argument does not fit.
        IllegalTurn: an agent chose an illegal turn.
    """
    if not 0 <= seed <= (1 << SEED_BITS) - most_blocks:
        raise ArenaError(f"seeds from {seed} on go beyond 2**{SEED_BITS} - 1, the largest")
    check_threads(threads)
    asked = one.compiled is None or other.compiled is None
    at_once = at_once or (ASKED_BLOCKS if asked else BLOCKS_AT_ONCE)
    one_block = ((np.arange(SEATS) - np.arange(SEATS)[:, None]) % SEATS) // 2
    interrupted = False
    try:
        for first in range(0, most_blocks, at_once):
            count = min(at_once, most_blocks - first)
            seeds = [seed + first + block for block in range(count) for _ in range(SEATS)]
            seating: Any = np.tile(one_block, (count, 1))
            matches = play_matches([one, other], ruleset, seeds, threads, seating=seating)
            shares = (matches.first_shares * (matches.seating == 0)).sum(axis=1)
            test.add(block_means(shares, SEATS))
            on_progress(first + count, most_blocks)
            if test.verdict is not None:
                break
    except KeyboardInterrupt:
        interrupted = True
    return Comparison((one.name, other.name), test, interrupted)
