"""The limits of a service, all in one place."""

from dataclasses import dataclass, field
from pathlib import Path

HOUR = 3600.0


@dataclass(frozen=True)
class Settings:
    """How a service is set up.

    Attributes:
        matches_folder: where hosted matches are kept.
        agents: the operator's own agents, specification by name.
        time_limit: seconds for a turn of an operator's agent that is a class of its own.
        threads: among which trained policies share what they are asked at once.
        origins: of pages elsewhere that browsers may let ask.
        body_bytes: the most that a request's body may have.
        body_seconds: in which it must arrive.
        batch: positions in one request.
        explained: alternatives in one answer.
        in_flight: requests that are answered at once, streams apart.
        streams: of events, at once.
        waiting: positions that wait for a decision.
        waiting_long: of these, for agents that take long.
        at_once: positions that are decided together.
        matches: hosted and not over, at once.
        idle_seconds: after which a match in which nobody plays expires.
        kept: records of matches that are over; of more, the oldest are removed.
        sweep_seconds: between two looks for what has expired.
        rest_seconds: after which a match that nobody asks for leaves the memory, not the folder.
        ping_seconds: between two signs of life of a silent stream.
        longest_wait: seconds that a request may ask to wait for the agents.
    """

    matches_folder: Path
    agents: dict[str, str] = field(default_factory=dict)
    time_limit: float = 10.0
    threads: int = 1
    origins: tuple[str, ...] = ()
    body_bytes: int = 1 << 20
    body_seconds: float = 20.0
    batch: int = 256
    explained: int = 1024
    in_flight: int = 1024
    streams: int = 2048
    waiting: int = 2048
    waiting_long: int = 64
    at_once: int = 32
    matches: int = 2000
    idle_seconds: float = 24 * HOUR
    kept: int = 10_000
    sweep_seconds: float = 60.0
    rest_seconds: float = 600.0
    ping_seconds: float = 15.0
    longest_wait: int = 30
