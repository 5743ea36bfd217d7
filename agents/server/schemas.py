"""What requests and answers look like; STATE, RULES, turns and results are the match record's."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from retinue.agents.policy import Returns
from retinue.envs.actions import MAX_CANDIDATES
from retinue.envs.game.board import SEATS
from retinue.envs.game.dice import SEED_BITS
from retinue.envs.game.record import ChoicesModel, ResultModel, Rolls, Seat, TurnModel
from retinue.envs.game.ruleset import MAX_DICE, Ruleset
from retinue.envs.game.schema import StrictModel
from retinue.envs.game.state import StateModel

HUMAN = "human"
"""In place of an agent: a seat that is played through the service."""

Mode: TypeAlias = Literal["journey", "brawl"]
AgentName: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
Seed: TypeAlias = Annotated[int, Field(ge=0, lt=1 << SEED_BITS)]
Dice: TypeAlias = Annotated[Rolls, Field(max_length=MAX_DICE)]
BySeat: TypeAlias = tuple[int, int, int, int]


class UnderRules(StrictModel):
    """What says under which rules it is meant: those of a mode, or a document of its own."""

    mode: Mode | None = None
    rules: Ruleset | None = None

    @model_validator(mode="after")
    def _has_one(self) -> "UnderRules":
        if (self.mode is None) == (self.rules is None):
            raise ValueError("give either mode or rules")
        return self


class RollRequest(UnderRules):
    """A position in which a roll is due."""

    state: StateModel
    seat: Seat
    rolled: Dice | None = None
    """Dice that fell elsewhere and are only to be received."""
    seed: Seed | None = None
    """Of dice by the dice function; without both the service draws them."""

    @model_validator(mode="after")
    def _has_at_most_one(self) -> "RollRequest":
        if self.rolled is not None and self.seed is not None:
            raise ValueError("give rolled or seed, not both")
        return self


class Position(UnderRules):
    """A position in which a turn is due: the state before the roll, and the dice received."""

    state: StateModel
    seat: Seat
    rolled: Dice


class LegalRequest(Position):
    """What may be chosen, and whether a turn may."""

    turn: ChoicesModel | None = None


class PlayRequest(Position):
    """A turn to be played."""

    turn: ChoicesModel


class DecideRequest(Position):
    """A position in which an agent is to choose."""

    agent: AgentName
    seed: Seed | None = None
    """Of the agent's own chance; the same one gives the same turn."""
    explain: Annotated[int, Field(ge=0, le=MAX_CANDIDATES)] = 0
    """How many of the turns that it looked at are shown, if it can."""


class BatchRequest(StrictModel):
    """Positions, each with its agent."""

    decisions: Annotated[tuple[DecideRequest, ...], Field(min_length=1)]


class MatchRequest(UnderRules):
    """A match to be hosted."""

    seats: tuple[AgentName, AgentName, AgentName, AgentName]
    clock_seconds: Annotated[int, Field(ge=1)] | None = None
    """On the clock at the start, if not all that the rules give."""


class HostedTurnRequest(ChoicesModel):
    """A human seat's turn."""

    turn: Annotated[int, Field(ge=0)]
    """The number of the turn that is due."""


# --- Answers


class Legal(StrictModel):
    """What the seat to move may choose."""

    guards: tuple[bool, bool, bool, bool]
    """Which may be given rolls."""
    noble: bool
    """Whether it may move."""
    store: Annotated[tuple[int, ...], Field(min_length=6, max_length=6)]
    """How many rolls of each value there are to give."""


class RollAnswer(StrictModel):
    """A roll received."""

    seat: Seat
    rolled: Rolls
    credits_earned: int
    credits: int
    store: Annotated[tuple[int, ...], Field(min_length=6, max_length=6)]
    legal: Legal


class Verdict(StrictModel):
    """Whether a turn is legal, and else why not."""

    legal: bool
    reason: str | None


class LegalAnswer(StrictModel):
    """What may be chosen."""

    legal: Legal
    verdict: Verdict | None


class Next(StrictModel):
    """Who rolls next, and how many dice."""

    seat: Seat
    dice: int


class PlayAnswer(StrictModel):
    """A turn played: its line of a match record, and what comes next."""

    line: TurnModel
    next: Next | None
    totals: BySeat
    result: ResultModel | None


class Alternative(StrictModel):
    """A turn that an agent looked at."""

    turn: ChoicesModel
    probability: float
    chosen: bool
    after: BySeat
    """Totals after it, by seat."""


class Explanation(StrictModel):
    """What a trained policy thinks of a position."""

    value: float | None
    """To the seat to move, in rewards of training."""
    unit: Returns | None
    """Those rewards."""
    candidates: int
    alternatives: tuple[Alternative, ...]


class DecideAnswer(StrictModel):
    """An agent's turn."""

    agent: str
    turn: ChoicesModel
    explanation: Explanation | None


class BatchAnswer(StrictModel):
    """Agents' turns, in the order of the positions."""

    decisions: tuple[DecideAnswer, ...]


class Due(StrictModel):
    """Whose turn is due in a match."""

    seat: Seat
    kind: Literal["human", "agent"]
    rolled: Rolls
    credits_earned: int
    legal: Legal


class MatchView(StrictModel):
    """A hosted match as everybody may see it."""

    id: str
    mode: Mode
    seats: tuple[str, str, str, str]
    status: Literal["playing", "over", "expired"]
    turn: int
    state: StateModel
    due: Due | None
    totals: BySeat
    result: ResultModel | None
    seed_sha256: str | None
    seed: int | None


class MatchCreated(StrictModel):
    """A new match, and the tokens of its human seats, which are shown only here."""

    tokens: Annotated[tuple[str | None, ...], Field(min_length=SEATS, max_length=SEATS)]
    match: MatchView


class TurnAnswer(StrictModel):
    """A turn played in a hosted match."""

    line: TurnModel
    match: MatchView


class OptionView(StrictModel):
    """An option of an agent."""

    name: str
    type: Literal["integer", "name"]
    default: int | str
    low: int | None
    high: int | None
    choices: tuple[str, ...] | None
    description: str


class StrengthView(StrictModel):
    """How often a policy came first against three others (par is 25%), with its 95% interval."""

    against: str
    share: float
    low: float
    high: float
    matches: int


class AgentView(StrictModel):
    """An agent that can be asked."""

    name: str
    kind: Literal["scripted", "strategy", "search", "policy", "own"]
    description: str
    modes: tuple[Mode, ...]
    options: tuple[OptionView, ...]
    explains: bool
    strength: dict[Mode, tuple[StrengthView, ...]]


class AgentsAnswer(StrictModel):
    """All agents."""

    agents: tuple[AgentView, ...]
    suggested: tuple[str, ...]


class RulesAnswer(StrictModel):
    """The rules of a mode."""

    mode: Mode
    digest: str
    rules: Ruleset
    start: StateModel


class HealthAnswer(StrictModel):
    """That the service is there."""

    status: Literal["ok"]
    version: str
    matches: int
    waiting: int


Point: TypeAlias = tuple[float, float]


class Numbers(StrictModel):
    """A tile's numbers, by seat, as rules 1.4 has them."""

    forward: BySeat
    backward: BySeat


class TileView(StrictModel):
    """A tile of the loop."""

    tile: int
    x: int
    y: int
    castle: bool
    entering: Seat | None
    midpoint: Seat | None
    turn_off: Seat | None
    offsets: BySeat
    numbers: Numbers


class SeatView(StrictModel):
    """Where a seat's own places are drawn."""

    seat: Seat
    name: str
    yard: Point
    home: Point
    home_path: tuple[Point, ...]


class EndNumbers(StrictModel):
    """The number of a path's last loop tile."""

    forward: int
    backward: int


class BoardAnswer(StrictModel):
    """The board: what a frontend needs to draw it."""

    grid: int
    seat_names: tuple[str, str, str, str]
    piece_names: tuple[str, str, str, str, str]
    loop: tuple[TileView, ...]
    seats: tuple[SeatView, ...]
    home_code: int
    end_number: EndNumbers


REQUESTS: tuple[type[StrictModel], ...] = (
    BatchRequest,
    DecideRequest,
    HostedTurnRequest,
    LegalRequest,
    MatchRequest,
    PlayRequest,
    RollRequest,
)
"""Those that read_body reads, for the schema."""

Plain: TypeAlias = dict[str, Any]
"""An answer before it becomes text: dicts, lists and numbers in the form of a model above."""
