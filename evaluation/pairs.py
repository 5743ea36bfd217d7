"""One agent against three of another, and how long an agent takes."""

import hashlib
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from retinue.agents.base import Agent
from retinue.agents.search import SearchAgent
from retinue.agents.user import UserAgent
from retinue.envs.game import engine
from retinue.envs.game.board import SEATS
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import StrictModel
from retinue.envs.game.state import new_game
from retinue.envs.opponents import View
from retinue.envs.parallel import MAX_THREADS
from retinue.evaluation.arena import ArenaError, Matches, Progress, play_matches, rotations
from retinue.evaluation.benchmark import machine
from retinue.evaluation.statistics import Estimate, block_means, estimate_share

AT_ONCE: Final = 256
"""Matches between two reports of progress, and what Ctrl-C has to wait for."""
TIMED_FOR: Final = 1.0
"""Seconds of decisions from which an agent's speed is told, unless one match takes longer."""
MOST_TIMED: Final = 256
"""Matches at most for that."""


def check_threads(threads: int | None) -> None:
    """Refuse a number of threads that there cannot be, before other work is done.

    Raises:
        ArenaError: it is not 1 to what Numba may use.
    """
    if threads is not None and not 1 <= threads <= MAX_THREADS:
        raise ArenaError(f"threads must be 1 to {MAX_THREADS} here, not {threads}")


def fingerprint(agent: Agent, spec: str) -> str:
    """Return what tells an agent from another of the same name; empty if nothing could."""
    if isinstance(agent, UserAgent):
        source = Path(spec.rpartition(":")[0])
        data = source.read_bytes() if source.is_file() else b""
    elif isinstance(agent, SearchAgent):
        data = agent.knowledge()
    elif agent.compiled is not None and agent.compiled.memory is not None:
        data = agent.compiled.memory.tobytes()
    else:
        folder = Path(spec.partition(":")[2])
        data = b"".join(path.read_bytes() for path in sorted(folder.rglob("policy.*")))
    return hashlib.sha256(data).hexdigest()[:16] if data else ""


def difference(found: Any, wanted: Any, names: Sequence[str]) -> str | None:
    """Say in words what kept results are of, if not of what is wanted.

    Args:
        found: header of the results.
        wanted: header of what is to be played.
        names: of the entries that have to be equal, the first that counts first; the agents', if
            one is a tuple of specifications, before their ``fingerprints``.
    """
    for name in names:
        there, asked = getattr(found, name), getattr(wanted, name)
        if there == asked:
            continue
        if name == "fingerprints":
            pairs = zip(wanted.agents, there, asked, strict=True)
            changed = [agent for agent, old, new in pairs if old != new]
            return f"{', '.join(changed)} as it was before it changed"
        if isinstance(there, tuple):
            return f"the agents {','.join(there)}"
        return f"{name} {there}, not {asked}"
    return None


def play_against_three(
    one: Agent,
    three: Agent,
    ruleset: Ruleset,
    blocks: int,
    seed: int = 0,
    *,
    threads: int | None = None,
    on_progress: Progress | None = None,
) -> Matches:
    """Play one agent against three of another in blocks: the same dice from every seat.

    Args:
        one: is agent 0 of the seating.
        three: is agent 1, which has the three other seats.
        ruleset: the rules.
        blocks: of four matches.
        seed: of the first block's dice; the next block has the next.
        threads: of the kernels; by default all that Numba may use.
        on_progress: is told how many matches have been played, of how many.

    Raises:
        ArenaError: an argument does not fit.
    """
    seeds, seating = rotations(blocks, seed)
    return play_matches(
        [one, three],
        ruleset,
        seeds,
        threads,
        seating=np.minimum(seating, 1),
        on_progress=on_progress,
        at_once=AT_ONCE,
    )


def share_of_one(matches: Matches) -> Estimate:
    """Return the one's share of first places in whole blocks; par is 0.25."""
    shares = matches.first_shares[matches.seating == 0]
    return estimate_share(block_means(shares, SEATS))


class Speed(StrictModel):
    """How long an agent takes.

    Attributes:
        agent: its specification.
        microseconds: for a turn, on one thread, in matches against itself.
        turns: of such a match, of all seats.
        decisions: that were timed.
        processor: on which.
    """

    agent: str
    microseconds: float
    turns: float
    decisions: int
    processor: str


class _Timed:
    """An agent, and how long it takes.

    Args:
        agent: who chooses.
    """

    compiled = None

    def __init__(self, agent: Agent) -> None:
        self.name = agent.name
        self._agent = agent
        # What is compiled works in this thread, so other programs do not count.
        self._clock = time.perf_counter if agent.compiled is None else time.thread_time
        self.forget()

    def forget(self) -> None:
        """Start anew."""
        self.seconds = 0.0
        self.decisions = 0

    def choose(self, view: View, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the agent's turns."""
        begun = self._clock()
        turns = self._agent.choose(view, rng)
        self.seconds += self._clock() - begun
        self.decisions += len(turns)
        return turns


def time_agent(agent: Agent, spec: str, ruleset: Ruleset) -> Speed:
    """Measure an agent's speed in matches against itself."""
    timed = _Timed(agent)
    games = np.array([new_game(ruleset)])
    engine.roll(games[0], ruleset.packed, np.uint64(0))
    # The first decision may have to compile or to load something.
    timed.choose(View(games, np.zeros(1, np.uint64), ruleset), np.random.default_rng(0))
    count = 1
    while True:
        timed.forget()
        play_matches([timed], ruleset, range(count), seating=np.zeros((count, SEATS), np.int64))
        if timed.seconds >= TIMED_FOR / 2 or count == MOST_TIMED:
            break
        wanted = math.ceil(count * TIMED_FOR / max(timed.seconds, 1e-9))
        count = min(MOST_TIMED, max(2 * count, wanted))
    return Speed(
        agent=spec,
        microseconds=1e6 * timed.seconds / timed.decisions,
        turns=timed.decisions / count,
        decisions=timed.decisions,
        processor=machine()["processor"],
    )
