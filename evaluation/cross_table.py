"""Every agent against three of every other one: played pair by pair, kept on disk as it goes.

The results of a mode are a file in JSON lines: a header that says what the table is of, then a line
for each agent's speed and for each pair. It is written anew after each, whole or not at all, so
that an interruption costs at most the pair in hand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from retinue import __version__
from retinue.agents.base import Agent
from retinue.agents.registry import make_agent
from retinue.agents.user import UserAgent
from retinue.envs.game.board import SEATS
from retinue.envs.game.dice import SEED_BITS
from retinue.envs.game.files import check_writable, write_atomically
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.schema import SchemaError, StrictModel, from_json
from retinue.evaluation.arena import ArenaError, Progress
from retinue.evaluation.pairs import (
    Speed,
    check_threads,
    difference,
    fingerprint,
    play_against_three,
    share_of_one,
    time_agent,
)

DEFAULT_AGENTS: Final = (
    "random",
    "racer",
    "spread",
    "forward",
    "backward",
    "switch",
    "greedy",
    "hunter",
    "blockader",
    "guardian",
    "tactician",
    "yardstick:candidates=100,random=true",
)
FORMAT: Final = "retinue-cross-table"
ENGINE_SECONDS: Final = 2e-6
"""What a turn takes beside the agents, to foretell how long a pair takes."""


class Header(StrictModel):
    """What a table is of; results of anything else do not belong in it.

    Attributes:
        fingerprints: of each agent, what tells it from another of the same name: a digest of its
            weights or of its file, empty if it has neither.
        matches: of each pair, blocks of four with the same dice.
        seed: of each pair's first block; the next block has the next.
    """

    format: Literal["retinue-cross-table"] = FORMAT
    retinue: str
    mode: str
    rules: str
    agents: tuple[str, ...]
    fingerprints: tuple[str, ...]
    matches: int
    seed: int


class Cell(StrictModel):
    """How one agent came out against three of another.

    Attributes:
        share: of first places, from 0 to 1; par is 0.25. A shared one counts in part.
        low, high: its 95% interval, by blocks.
        total: mean points of the one.
        others_total: the same of the three.
        forfeited: turns of a user's own agents that were forfeited.
    """

    one: str
    three: str
    share: float
    low: float
    high: float
    total: float
    others_total: float
    forfeited: int


class _Line(StrictModel):
    """A line below the header."""

    speed: Speed | None = None
    cell: Cell | None = None


@dataclass
class CrossTable:
    """A table as far as it has been played.

    Attributes:
        path: of its file.
        header: what it is of.
        ruleset: the rules.
        agents: in the order of ``header.agents``.
        speeds: by agent.
        cells: by the one and the three.
    """

    path: Path
    header: Header
    ruleset: Ruleset
    agents: list[Agent]
    speeds: dict[str, Speed] = field(default_factory=dict)
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many pairs there are in all."""
        return len(self.agents) * (len(self.agents) - 1)

    def seconds(self, one: str, three: str) -> float:
        """Return how long a pair is expected to take on one core; all speeds must be known."""
        ours, theirs = self.speeds[one], self.speeds[three]
        each = 1e-6 * (ours.microseconds + 3 * theirs.microseconds) / SEATS + ENGINE_SECONDS
        return each * self.header.matches * (ours.turns + 3 * theirs.turns) / SEATS

    def pairs(self) -> list[tuple[str, str]]:
        """Return all pairs, the quick ones first: what an interruption leaves is a smaller table.

        An agent comes with all its pairs with those that are quicker than it.
        """
        names = sorted(self.header.agents, key=lambda name: self.speeds[name].microseconds)
        return [
            pair
            for index, slower in enumerate(names)
            for quicker in names[:index]
            for pair in ((slower, quicker), (quicker, slower))
        ]

    def write(self) -> None:
        """Write the file, whole or not at all."""
        lines = [_Line(speed=each) for each in self.speeds.values()]
        lines += [_Line(cell=each) for each in self.cells.values()]
        texts = [self.header.model_dump_json()]
        texts += [line.model_dump_json(exclude_none=True) for line in lines]
        write_atomically(self.path, "\n".join(texts) + "\n")


# --- Opening


def _read(table: CrossTable) -> None:
    """Take over what a file holds.

    Raises:
        ArenaError: it is of another table.
        SchemaError: a line is not of this format.
    """
    try:
        lines = table.path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise SchemaError(f"{table.path}: is not UTF-8 text") from error
    for number, text in enumerate(lines or [""], 1):  # an empty file has no header
        try:
            if number == 1:
                _refuse_another(from_json(Header, text), table)
                continue
            line = from_json(_Line, text)
        except SchemaError as error:
            raise SchemaError(f"{table.path}: line {number}: {error}") from error
        if line.speed is not None:
            table.speeds[line.speed.agent] = line.speed
        if line.cell is not None:
            table.cells[line.cell.one, line.cell.three] = line.cell


def _refuse_another(found: Header, table: CrossTable) -> None:
    names = ("mode", "agents", "matches", "seed", "rules", "fingerprints", "retinue")
    if what := difference(found, table.header, names):
        raise ArenaError(
            f"{table.path}: holds another table, of {what}; choose another folder or remove it"
        )


def open_tables(
    folder: Path,
    rulesets: Sequence[Ruleset],
    specs: Sequence[str],
    matches: int,
    seed: int = 0,
    *,
    threads: int | None = None,
    time_limit: float | None = None,
) -> list[CrossTable]:
    """Return a table for each ruleset, with what is in the folder already.

    Args:
        folder: made if need be; each mode's results are in ``MODE.jsonl`` there.
        rulesets: of different modes.
        specs: of the agents.
        matches: of each pair; a multiple of four.
        seed: of each pair's first block.
        threads: that will be asked for; only checked.
        time_limit: seconds for a turn of a user's own agent.

    Raises:
        ArenaError: an argument does not fit, or the folder holds another table.
        AgentError: a specification makes no agent.
        SchemaError: a file there is damaged.
        OSError: the folder cannot be used.
    """
    twice = {spec for spec in specs if specs.count(spec) > 1}
    if twice:
        raise ArenaError(f"agent {min(twice)} is given twice; give each once")
    if len(specs) < 2:
        raise ArenaError(f"a cross table takes two agents or more, not {len(specs)}")
    if matches < SEATS or matches % SEATS:
        raise ArenaError(f"matches must be a multiple of {SEATS}, not {matches}")
    if seed + matches // SEATS > 1 << SEED_BITS:
        raise ArenaError(f"seeds from {seed} on go beyond 2**{SEED_BITS} - 1, the largest")
    check_threads(threads)
    tables = []
    for ruleset in rulesets:
        agents = [make_agent(spec, ruleset, time_limit=time_limit) for spec in specs]
        header = Header(
            retinue=__version__,
            mode=ruleset.mode,
            rules=ruleset.digest,
            agents=tuple(specs),
            fingerprints=tuple(map(fingerprint, agents, specs)),
            matches=matches,
            seed=seed,
        )
        tables.append(CrossTable(folder / f"{ruleset.mode}.jsonl", header, ruleset, agents))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArenaError(f"{folder}: no folder for results: {error.strerror}") from error
    for table in tables:
        if table.path.exists():
            _read(table)
        check_writable(table.path)
    return tables


# --- Playing


def _each(tables: Sequence[CrossTable]) -> Iterator[tuple[CrossTable, str, Agent]]:
    for table in tables:
        for spec, agent in zip(table.header.agents, table.agents, strict=True):
            yield table, spec, agent


def time_agents(tables: Sequence[CrossTable], on_progress: Progress) -> None:
    """Measure the speeds that are not known yet; ``on_progress`` counts agents."""
    count = sum(len(table.agents) for table in tables)
    for done, (table, spec, agent) in enumerate(_each(tables), 1):
        if spec not in table.speeds:
            table.speeds[spec] = time_agent(agent, spec, table.ruleset)
            if isinstance(agent, UserAgent):
                agent.faults.clear()  # those of the pairs are told
            table.write()
        on_progress(done, count)


def _forfeited(*agents: Agent) -> int:
    """Return how many turns users' own agents have forfeited so far."""
    users = [agent for agent in agents if isinstance(agent, UserAgent)]
    return sum(kind.count for agent in users for kind in agent.faults.values())


def play_pairs(
    tables: Sequence[CrossTable], *, threads: int | None = None, on_progress: Progress
) -> None:
    """Play the pairs that are not there yet.

    Args:
        tables: with all speeds.
        threads: of the kernels; by default all that Numba may use.
        on_progress: is told how many seconds of work on one core are done, of how many expected.
    """
    left = [(table, pair) for table in tables for pair in table.pairs() if pair not in table.cells]
    work = sum(table.seconds(*pair) for table, pair in left)
    done = 0.0
    for table, (one, three) in left:
        cost = table.seconds(one, three)
        agents = dict(zip(table.header.agents, table.agents, strict=True))

        def tell(played: int, of: int, begun: float = done, cost: float = cost) -> None:
            on_progress(round(begun + cost * played / of), max(1, round(work)))

        before = _forfeited(agents[one], agents[three])
        matches = play_against_three(
            agents[one],
            agents[three],
            table.ruleset,
            table.header.matches // SEATS,
            table.header.seed,
            threads=threads,
            on_progress=tell,
        )
        of_one, share = matches.seating == 0, share_of_one(matches)
        table.cells[one, three] = Cell(
            one=one,
            three=three,
            share=share.value,
            low=share.low,
            high=share.high,
            total=float(matches.totals[of_one].mean()),
            others_total=float(matches.totals[~of_one].mean()),
            forfeited=_forfeited(agents[one], agents[three]) - before,
        )
        table.write()
        done += cost
