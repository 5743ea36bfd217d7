"""Who plays whom: line-ups of four, balanced over agents and pairs at every point."""

from typing import Any, Final

import numpy as np

from retinue.envs.game.board import SEATS
from retinue.evaluation.arena import ArenaError, Integers

MOST_AGENTS: Final = 64


def line_ups(agents: int, blocks: int, seed: int = 0) -> Integers:
    """Return the line-up of each block, int64 ``(blocks, 4)`` of agents' indices.

    After any number of blocks every agent has had as many seats as any other, or one more. Next to
    that, those come together that have met least; what then is left open, and who follows whom
    around the board, is drawn. The first blocks are the same however many there are. Fewer than
    four agents have two or more seats of a match, in turn.

    Args:
        agents: how many, 2 to 64.
        blocks: how many line-ups.
        seed: of the draw.

    Raises:
        ArenaError: there are too few or too many agents.
    """
    if not 2 <= agents <= MOST_AGENTS:
        raise ArenaError(f"a tournament takes 2 to {MOST_AGENTS} agents, not {agents}")
    rng = np.random.default_rng(seed)
    seats = np.zeros(agents, np.int64)
    met = np.zeros((agents, agents), np.int64)
    rows = np.zeros((blocks, SEATS), np.int64)
    for block in range(blocks):
        chosen = _next_line_up(seats, met, rng)
        np.add.at(seats, chosen, 1)
        np.add.at(met, np.ix_(chosen, chosen), 1)
        rows[block] = rng.permutation(chosen)
    return rows


def _next_line_up(seats: Integers, met: Integers, rng: np.random.Generator) -> list[int]:
    chosen: list[int] = []
    drawn: Any = rng.random(len(seats))
    for _ in range(SEATS):
        here = np.bincount(chosen, minlength=len(seats))
        # The last key counts most: nobody sits twice where another could sit once.
        order = np.lexsort((drawn, met[:, chosen].sum(axis=1), seats + here, here))
        chosen.append(int(order[0]))
    return chosen
