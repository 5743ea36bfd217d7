"""The league: whom a learner meets, as it grows.

For each match each opponent's seat is drawn, in the shares that the configuration gives, from
three kinds of agents:

- the *latest*: a copy of the learner, renewed before each rollout;
- *snapshots* of its past, the harder the oftener (prioritised fictitious self-play): one that the
  learner comes in before in a share ``p`` of their matches weighs ``(1 - p) ** hardness``;
- the *scripted* agents of ``opponents``.

Whoever sits down plays the match to its end: a copy lives in a *place* of its own, and a place is
given to another copy only when no match needs it any more.

A copy becomes a snapshot only if a sequential test finds it stronger than the snapshot before it,
or, for the first, than the first scripted agent.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from retinue.agents.base import Agent
from retinue.agents.network import Network
from retinue.agents.policy import PolicyAgent, TorchModel
from retinue.envs.actions import Encoding
from retinue.envs.batch import Batch
from retinue.envs.kernels import MAX_OPPONENTS
from retinue.envs.opponents import View
from retinue.evaluation.compare import BLOCKS_AT_ONCE, compare
from retinue.evaluation.sequential import SequentialTest
from retinue.training.config import SPARE_PLACES, LeagueConfig

MEMORY: Final = 0.97
"""What a result counts a rollout later: about the last thirty rollouts tell how hard one is."""
PRIOR: Final = 2.0
"""Results at par that everybody begins with."""
EMPTY: Final = -1

TESTING_SEED: Final = 1 << 51
"""First dice seed of admission tests, between those of training and those of measurements."""


class Place:
    """A seat at the learner's table for one of its copies.

    Args:
        number: of the place.
    """

    compiled = None

    def __init__(self, number: int) -> None:
        self.name = f"copy {number}"
        self.agent: PolicyAgent | None = None
        self.network: Network | None = None
        self.seconds = 0.0

    def seat(self, network: Network, agent: PolicyAgent) -> None:
        """Give the place to a copy: its weights, which must not change any more, and its play."""
        self.network, self.agent = network, agent

    def choose(self, view: View, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the turns of the copy that has the place, and note how long it took."""
        if self.agent is None:
            raise RuntimeError(f"{self.name} is asked to play, but the place is empty")
        begun = time.perf_counter()
        turns = self.agent.choose(view, rng)
        self.seconds += time.perf_counter() - begun
        return turns


@dataclass
class Snapshot:
    """A copy that was found stronger than the one before.

    Attributes:
        place: where it sits.
        decisions: of the learner when it was taken.
        share: of the first places, par 0.5, that it had in its test.
    """

    place: int
    decisions: int
    share: float


class League:
    """The opponents of one learner.

    Args:
        config: of the league; without it there are scripted agents only.
        scripted: the agents of ``opponents``; the first one is whom the first snapshot must beat.
        encoding: of the learner.
        new_network: makes a network of the learner's form.
        threads: of the kernels.
    """

    def __init__(
        self,
        config: LeagueConfig | None,
        scripted: Sequence[Agent],
        encoding: Encoding,
        new_network: Callable[[], Network],
        threads: int,
    ) -> None:
        self.config = config or LeagueConfig()
        self.scripted = tuple(scripted)
        count = 0 if config is None else config.most + SPARE_PLACES
        self.places = tuple(Place(number) for number in range(count))
        self.snapshots: list[Snapshot] = []
        self.latest = EMPTY
        self._encoding, self._new_network, self._threads = encoding, new_network, threads
        self._beaten = np.zeros(len(self.agents))
        self._met = np.zeros(len(self.agents))
        self._next_test = self.config.every
        self._tests = 0

    @property
    def agents(self) -> tuple[Agent, ...]:
        """All who may be met, as a :class:`Batch` takes them: scripted agents, then places."""
        return (*self.scripted, *self.places)

    @property
    def seconds(self) -> float:
        """For how long copies of the learner have been choosing so far."""
        return sum(place.seconds for place in self.places)

    @property
    def rates(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """In which share of matches the learner came in before each of the agents, float64."""
        return (self._beaten + PRIOR / 2) / (self._met + PRIOR)

    def results(self) -> dict[str, float]:
        """Return :attr:`rates` by name, of who has been met lately."""
        names = {len(self.scripted) + self.latest: "the latest copy"} if self.places else {}
        names |= {
            len(self.scripted) + each.place: f"the snapshot of {each.decisions:,} decisions"
            for each in self.snapshots
        }
        names |= {index: agent.name for index, agent in enumerate(self.scripted)}
        met = {index: name for index, name in sorted(names.items()) if self._met[index] >= 1.0}
        return {name: round(float(self.rates[index]), 3) for index, name in met.items()}

    def note(self, batch: Batch, ended: np.ndarray[Any, Any]) -> None:
        """Take the results of matches that ended, games ``ended`` of the learner's batch."""
        places = batch.final_places[ended]
        own = places[np.arange(len(ended)), batch.seats[ended]]
        control = batch.control[ended]
        before = np.where(places > own[:, None], 1.0, np.where(places == own[:, None], 0.5, 0.0))
        others = control >= 0
        np.add.at(self._beaten, control[others], before[others])
        np.add.at(self._met, control[others], 1.0)

    def update(self, learner: Network, batch: Batch, decisions: int) -> str:
        """Renew the league before a rollout; matches that start from now on are drawn from it.

        Args:
            learner: a copy of it as it is now, for the league to keep.
            batch: of the learner.
            decisions: that the learner has made.

        Returns:
            What there is to tell; empty if nothing.
        """
        self._beaten *= MEMORY
        self._met *= MEMORY
        told = ""
        if self.config.snapshots and decisions >= self._next_test:
            free = self._free(batch)
            if free:
                self._next_test += self.config.every
                told = self._test(learner, free[0], batch, decisions)
        if self.config.latest:
            free = self._free(batch)
            if free:
                self.latest = free[0]
                self._seat(learner, free[0])
        self.deal(batch)
        return told

    def deal(self, batch: Batch) -> None:
        """Let the opponents of a batch's later matches be drawn from the league as it is."""
        pool = self.pool()
        batch.arrange(np.arange(batch.num_games), opponents=[pool] * batch.num_games)

    def pool(self) -> list[Agent]:
        """Return whom a seat's agent is drawn from: as many times as likely."""
        weights = np.zeros(len(self.agents))
        own, past = self.config.latest, self.config.snapshots
        if self.latest != EMPTY:
            weights[len(self.scripted) + self.latest] = own
        if self.snapshots:
            seats = [len(self.scripted) + each.place for each in self.snapshots]
            hard = (1.0 - self.rates[seats]) ** self.config.hardness
            weights[seats] += past * hard / hard.sum()
        weights[: len(self.scripted)] = (1.0 - weights.sum()) / len(self.scripted)
        return [
            agent
            for agent, count in zip(self.agents, _apportion(weights), strict=True)
            for _ in range(count)
        ]

    def _agent(self, network: Network) -> PolicyAgent:
        return PolicyAgent(TorchModel(network), self._encoding, "learner", threads=self._threads)

    def _seat(self, learner: Network, place: int) -> None:
        """Give a place to a copy of the learner, which meets everybody as if for the first time."""
        self.places[place].seat(learner, self._agent(learner))
        self._beaten[len(self.scripted) + place] = 0.0
        self._met[len(self.scripted) + place] = 0.0

    def _free(self, batch: Batch) -> list[int]:
        """Return the places that nobody needs: no snapshot's, and of no match under way."""
        taken = {each.place for each in self.snapshots}
        sitting = set((np.unique(batch.control) - len(self.scripted)).tolist())
        return [each for each in range(len(self.places)) if each not in taken | sitting]

    def _test(self, learner: Network, place: int, batch: Batch, decisions: int) -> str:
        """Let a copy of the learner become a snapshot if it is stronger than the one before."""
        champion: Agent = self.scripted[0]
        if self.snapshots:
            champion = self.places[self.snapshots[-1].place]
        config = self.config
        test = SequentialTest(margin=config.margin, error=config.error)
        compare(
            self._agent(learner),
            champion,
            batch.ruleset,
            test,
            most_blocks=config.blocks,
            seed=TESTING_SEED + self._tests * config.blocks,
            threads=self._threads,
            at_once=BLOCKS_AT_ONCE,
            on_progress=lambda done, most: None,
        )
        self._tests += 1
        share = test.estimate()
        told = (
            f"{100 * share.value:.0f}% ({100 * share.low:.0f}-{100 * share.high:.0f}) of the first "
            f"places against {self._told(champion)} in {test.blocks} blocks"
        )
        if test.verdict != "first":
            return f"No new snapshot: {told}"
        if len(self.snapshots) == config.most:
            self._drop_easiest()
        self._seat(learner, place)
        self.snapshots.append(Snapshot(place, decisions, share.value))
        return f"Snapshot {len(self.snapshots)} of at most {config.most}: {told}"

    def _told(self, champion: Agent) -> str:
        if not self.snapshots:
            return champion.name
        return f"the snapshot of {self.snapshots[-1].decisions:,} decisions"

    def _drop_easiest(self) -> None:
        """Let the snapshot go that the learner beats most, but not the last one."""
        seats = [len(self.scripted) + each.place for each in self.snapshots[:-1]]
        del self.snapshots[int(np.argmax(self.rates[seats]))]

    def state(self) -> dict[str, Any]:
        """Return all that :meth:`restore` needs, tensors and plain data."""
        return {
            "places": [
                None if place.network is None else place.network.state_dict()
                for place in self.places
            ],
            "snapshots": [vars(each).copy() for each in self.snapshots],
            "latest": self.latest,
            "beaten": self._beaten.tolist(),
            "met": self._met.tolist(),
            "next_test": self._next_test,
            "tests": self._tests,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a :meth:`state`.

        Raises:
            ValueError: it is another league's.
        """
        for place, weights in zip(self.places, state["places"], strict=True):
            if weights is not None:
                network = self._new_network()
                network.load_state_dict(weights)
                place.seat(network.eval(), self._agent(network))
        self.snapshots = [Snapshot(**each) for each in state["snapshots"]]
        self.latest = state["latest"]
        for mine, saved in ((self._beaten, state["beaten"]), (self._met, state["met"])):
            if len(saved) != len(mine):
                raise ValueError(f"results of {len(saved)} agents, not of {len(mine)}")
            mine[:] = saved
        self._next_test, self._tests = state["next_test"], state["tests"]


def _apportion(weights: np.ndarray[Any, Any]) -> list[int]:
    """Return how many of a pool's entries each agent has: its share, by largest remainders."""
    exact = weights * MAX_OPPONENTS
    counts = np.floor(exact + 1e-9).astype(int)
    left = MAX_OPPONENTS - counts.sum()
    counts[np.argsort(counts - exact, kind="stable")[:left]] += 1
    return [int(count) for count in counts]
