"""A made-up tournament, for tests of what is written about one."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from retinue.envs.game.board import CASTLES, ENTERING, LOOP, MIDPOINT
from retinue.envs.tally import PATHS
from retinue.evaluation.summary import (
    AgentSummary,
    Interval,
    Luck,
    Meeting,
    TournamentSummary,
)
from retinue.evaluation.tournament_words import short_names

EIGHT: Final = (
    *("tactician", "hunter", "blockader", "greedy", "yardstick", "backward", "forward", "random"),
)
TWELVE: Final = (
    *("search:top=8,depth=2", "tactician", "hunter", "blockader", "greedy"),
    *("yardstick:candidates=100,random=true", "yardstick:candidates=100,random=false"),
    *("/home/somebody/bots/a/long/way/down/my_bot.py:MyBotWithALongName", "switch"),
    *("guardian", "spread", "random"),
)
ROUNDS: Final = 45
WILD: Final = '<b>x</b>&"'


def around(value: float, reach: float) -> Interval:
    return Interval(value=value, low=value - reach, high=value + 1.1 * reach)


def shares(rng: np.random.Generator, parts: int) -> tuple[float, ...]:
    return tuple(rng.dirichlet(30 * rng.uniform(0.05, 1, parts)).tolist())


def tiles(rng: np.random.Generator, whole: float, protected: float) -> tuple[float, ...]:
    """How something that happens ``whole`` times is spread over the loop."""
    weights = rng.gamma(2.0, 1.0, LOOP) * np.linspace(1.5, 0.6, LOOP)
    weights[[*CASTLES, ENTERING]] *= protected
    weights[MIDPOINT] *= 1.5
    return tuple((whole * weights / weights.sum()).tolist())


def made_agent(rng: np.random.Generator, name: str, rating: float, reach: float) -> AgentSummary:
    """What an agent of that rating might have done."""
    skill = 1 / (1 + np.exp(-rating / 150))
    first = 0.55 * skill**1.5
    lower = 1 - first
    places = (first, lower * 0.5 * (0.4 + skill), lower * 0.3)
    progression, captures = 300 + 1900 * skill, 900 * skill**2 + rng.uniform(0, 150)
    penalty, bonus = rng.uniform(5, 90), 260 * skill**2
    total = progression + captures + bonus - penalty
    growth = np.linspace(0, 1, ROUNDS + 1)[1:] ** rng.uniform(0.8, 1.5)
    lost, taken = 9 - 5 * skill + rng.uniform(0, 2), 10 * skill
    return AgentSummary(
        name=name,
        matches=int(rng.integers(300, 340)) * 4,
        rating=around(rating, reach),
        first=around(first, min(first, 0.02)),
        places=(*places, 1 - sum(places)),
        place=4 - 2.6 * skill,
        total=around(total, 30),
        progression=progression,
        captures=captures,
        penalty=penalty,
        bonus=bonus,
        guards_captured=0.85 * taken,
        nobles_captured=0.15 * taken,
        guards_lost=0.85 * lost,
        nobles_lost=0.15 * lost,
        points_lost=90 * lost,
        exits=5 + lost,
        midpoints=5 * skill,
        homes=4.6 * skill**2,
        finished=skill**3,
        finishing_round=44 - 12 * skill,
        rolls=130 + 20 * skill,
        kept=6 - 4 * skill,
        left=5 - 3 * skill,
        wasted=20 * (1 - skill) + rng.uniform(0, 5),
        forward=rng.uniform(0.2, 0.8),
        still=0.2 * (1 - skill),
        guard_paths=shares(rng, len(PATHS)),
        noble_paths=shares(rng, len(PATHS)),
        microseconds=float(rng.choice([0.35, 8.6, 72.0, 122.0, 2400.0])),
        by_seat=tuple((first * rng.uniform(0.85, 1.15, 4)).tolist()),
        rounds=tuple((total * growth).tolist()),
        stood=tiles(rng, 2.8, 2.5),
        lost_at=tiles(rng, lost, 0.05),
        captured_at=tiles(rng, taken, 0.1),
        forfeited=0,
    )


def made_meeting(rng: np.random.Generator, gap: float) -> Meeting:
    ahead = 1 / (1 + 10 ** (-gap / 400))
    return Meeting(ahead=around(ahead, 0.03), points=4.2 * gap, blocks=int(rng.integers(40, 60)))


def made(
    names: Sequence[str] = EIGHT, *, spacing: float = 70, mode: str = "journey", **changes: Any
) -> TournamentSummary:
    """A tournament in which each agent rates ``spacing`` points above the next."""
    rng = np.random.default_rng(3)
    ratings = [spacing * (len(names) / 2 - rank) for rank in range(len(names))]
    gaps = np.subtract.outer(ratings, ratings)
    meetings = [[made_meeting(rng, float(gap)) for gap in row] for row in gaps]
    above = 1 / (1 + np.exp(-gaps / 12))
    return TournamentSummary(
        retinue="0.1.0",
        mode=mode,
        rules="adc7cd607e510d34",
        seed=1000,
        blocks=330,
        pinned=None,
        agents=tuple(
            made_agent(rng, name, rating, rng.uniform(9, 18))
            for name, rating in zip(names, ratings, strict=True)
        ),
        meetings=tuple(
            tuple(None if one == other else each for other, each in enumerate(row))
            for one, row in enumerate(meetings)
        ),
        above=tuple(tuple(row) for row in above.tolist()),
        seats=tuple(around(share, 0.012) for share in (0.262, 0.251, 0.249, 0.238)),
        luck=Luck(factor=Interval(value=1.72, low=1.55, high=1.9), agents=tuple(names[:4])),
        processor="Intel(R) Xeon(R) Processor",
    ).model_copy(update=changes)


def of_one(summary: TournamentSummary, agent: int, **changes: Any) -> TournamentSummary:
    """The summary with something else of one agent."""
    agents = list(summary.agents)
    agents[agent] = agents[agent].model_copy(update=changes)
    return summary.model_copy(update={"agents": tuple(agents)})


def without_numbers() -> TournamentSummary:
    """A tournament in which all is unknown that may be."""
    summary = made(EIGHT[:3], pinned="hunter", luck=None, processor="")
    for agent in range(3):
        summary = of_one(
            summary,
            agent,
            finishing_round=None,
            microseconds=None,
            guard_paths=(),
            noble_paths=(),
        )
    return summary.model_copy(update={"meetings": ((None,) * 3,) * 3})


def of_one_block() -> TournamentSummary:
    """A single block, which leaves intervals open; and one agent scored less than nothing."""
    open_ended = Interval(value=-47.0, low=-np.inf, high=np.inf)
    summary = made(EIGHT[:3], blocks=1)
    return of_one(summary, 2, total=open_ended, rating=open_ended, rounds=(-9.0, -47.0))


CASES = {
    "eight": made(),
    "twelve": made(TWELVE, mode="brawl", pinned="random"),
    "thirteen": made([*TWELVE, "forward"]),
    "two": made(EIGHT[:2]),
    "one": made(EIGHT[:1]),
    "unknown": without_numbers(),
    "one block": of_one_block(),
    "wild": made([WILD, "a$b$_{c}^", "\x1b[31mred\n", "語 🎲", "-->", "{{ 1 + 1 }}", "x|y`z"]),
}


def labels_of(summary: TournamentSummary) -> list[str]:
    return short_names([agent.name for agent in summary.agents])
