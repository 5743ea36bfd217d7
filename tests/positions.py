"""Positions for the tests: a scene that is set up piece by piece, and random rules and states."""

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any, Final

from referee import Event, Referee
from retinue.envs.game import engine
from retinue.envs.game.events import events_to_json, new_log
from retinue.envs.game.record import turn_to_json
from retinue.envs.game.ruleset import Ruleset, load_ruleset
from retinue.envs.game.state import (
    CHOOSE,
    ROLL,
    empty_turn,
    new_game,
    state_from_json,
    state_to_json,
)

GREEN, RED, BLUE, YELLOW = range(4)
G1, G2, G3, G4, NOBLE = range(5)
YARD, HOME = -1, 75
JOURNEY: Final = load_ruleset("journey")
BRAWL: Final = load_ruleset("brawl")

Piece = tuple[int, int]
"""A seat and one of its pieces."""


def there(seat: int, offset: int) -> int:
    """Return another seat's position on the tile that has this offset for Green."""
    return (offset - 17 * seat) % 68


def stack(seat: int, offset: int, size: int = 2) -> dict[Piece, int]:
    """Return Guards of another seat on one of Green's tiles."""
    return {(seat, guard): there(seat, offset) for guard in range(size)}


def captured(seat: int, piece: int, points: int) -> Event:
    """Return the event of a capture."""
    return {"type": "capture", "seat": seat, "piece": piece, "points": points}


def checkpoint(piece: int, bit: int, points: int) -> Event:
    """Return the event of a checkpoint that scores."""
    return {"type": "checkpoint", "piece": piece, "checkpoint": bit, "points": points}


def blocked(piece: int, trimmed: int, points: int = 0) -> Event:
    """Return the event of a blockade, which costs something if another seat made it."""
    event: Event = {"type": "blocked", "piece": piece, "trimmed": trimmed}
    return {**event, "points": points} if points else event


def changed(ruleset: Ruleset, **entries: Any) -> Ruleset:
    """Return a ruleset with some entries changed, as a user's own file would."""
    return Ruleset.model_validate_json(json.dumps(ruleset.model_dump(mode="json") | entries))


def values_for(steps: int) -> list[int]:
    """Return the fewest rolls that add up to ``steps``."""
    return [6] * (steps // 6) + [steps % 6] * (steps % 6 > 0)


class Scene:
    """A position, and the turns that are played from it.

    Every seat has had at least one turn, so that grace is possible. Each turn is played by the
    engine and by the referee, which must agree on the state and on the events.

    Args:
        pieces: where pieces are that are not in their Yard.
        ruleset: the rules.
        seat: who moves first.
        midpoint: the pieces that have midpoint progress.
        entries: other entries of STATE, each a whole list or a dict: by seat, or by (seat, piece).
    """

    def __init__(
        self,
        pieces: Mapping[Piece, int],
        ruleset: Ruleset = JOURNEY,
        *,
        seat: int = GREEN,
        midpoint: Iterable[Piece] = (),
        **entries: Any,
    ) -> None:
        state = state_to_json(new_game(ruleset))
        state["turns_taken"] = [2 if other < seat else 1 for other in range(4)]
        entries |= {"position": dict(pieces), "midpoint": dict.fromkeys(midpoint, 1)}
        for name, entry in entries.items():
            if not isinstance(entry, dict):
                state[name] = entry
                continue
            for key, value in entry.items():
                if isinstance(key, tuple):
                    state[name][key[0]][key[1]] = value
                else:
                    state[name][key] = value
        self.ruleset = ruleset
        self.game = state_from_json(state, ruleset)
        self._referee = Referee(ruleset.model_dump(mode="json"), state)

    def roll(self, *dice: int) -> int:
        """Let the seat to move receive dice; return the credits earned."""
        engine.set_dice(self.game, self.ruleset, list(dice))
        earned = int(self.game["credits_earned"])
        assert earned == self._referee.roll(list(dice))
        assert engine.legal_guards(self.game, self.ruleset.packed) == sum(
            1 << guard for guard in self._referee.legal_guards()
        )
        return earned

    def play(
        self,
        direction: str = "forward",
        guards: Mapping[int, int | list[int]] | None = None,
        *,
        noble: int = 0,
        after: bool = False,
    ) -> list[Event]:
        """Play a turn in which Guards move by totals or are given values; return its events.

        If no dice were received the seat's store is made to hold just the rolls of this turn.
        """
        turn = empty_turn()
        turn["direction"] = ("forward", "backward").index(direction)
        turn["noble_steps"], turn["noble_after"] = noble, after
        for guard, moved in (guards or {}).items():
            for value in values_for(moved) if isinstance(moved, int) else moved:
                turn["rolls"][guard, value - 1] += 1
        if self.game["phase"] == ROLL:
            seat, needed = self.game["seat"], turn["rolls"].sum(axis=0)
            self.game["store"][seat] = needed
            self._referee.store[seat] = needed.tolist()
            self.game["phase"] = CHOOSE
        log = new_log()
        engine.play_or_raise(self.game, self.ruleset, turn, log)
        events = events_to_json(log)
        assert self._referee.play(turn_to_json(turn)) == events
        assert self._referee.state() == state_to_json(self.game)
        return events

    def at(self, *pieces: Piece) -> Any:
        """Return the position of a piece, or the positions of several."""
        found = [int(self.game["position"][piece]) for piece in pieces]
        return found if len(found) > 1 else found[0]

    def of(self, name: str, *place: int) -> Any:
        """Return a number or a list of numbers of the state."""
        return self.game[name][place].tolist() if place else self.game[name].tolist()


def any_rules(chance: random.Random) -> Ruleset:
    """Return random rules, as far from the shipped ones as a rule file may go."""

    def pair() -> list[int]:
        return [chance.randrange(200), chance.randrange(200)]

    limit = chance.randint(1, 6)
    rows = sorted(chance.sample(range(1, 20), chance.randint(1, 5)))
    capacity = rows[-1] + chance.randint(1, 5)
    dice = [[held, chance.randint(0, min(8, capacity - held))] for held in rows]
    by_midpoint = [{"before": pair(), "past": pair()} for _ in range(3)]
    names = ("midpoint", "castle", "own_entering", "other_entering", "home")
    data = {
        "mode": chance.choice(["journey", "brawl"]),
        "home_path_tiles": chance.randint(1, 20),
        "start_credits": chance.randint(0, limit),
        "max_credits": limit,
        "credits_per_grace": chance.randint(0, 3),
        "store_capacity": capacity,
        "dice": [*dice, [capacity, 0]],
        "castles_protect": chance.random() < 0.5,
        "progression": {name: pair() for name in names},
        "combat": dict(zip(("safe", "castle", "regular"), by_midpoint, strict=True)),
        "blockade_penalty": chance.randrange(4),
        "completion_bonus": [chance.randrange(500) for _ in range(4)],
        "clock_seconds": chance.randint(300, 1800),
        "turn_seconds": chance.randint(5, 15),
    }
    return Ruleset.model_validate_json(json.dumps(data))


def any_state(chance: random.Random, ruleset: Ruleset) -> dict[str, Any]:
    """Return a random STATE, crowded, with pieces everywhere, in a seat's turn or later."""
    state = state_to_json(new_game(ruleset))
    spots = [chance.randrange(68) for _ in range(5)]
    for seat in range(4):
        for piece in range(5):
            where = chance.random()
            if where < 0.6:
                position = (chance.choice(spots) + chance.randrange(3) - 17 * seat) % 68
            elif where < 0.75:
                position = YARD
            else:
                position = chance.randint(68, ruleset.home)
            state["position"][seat][piece] = position
            if position != YARD:
                state["midpoint"][seat][piece] = chance.randrange(2)
                state["progression"][seat][piece] = chance.randrange(300)
            state["checkpoints"][seat][piece] = chance.getrandbits(11)
        for _ in range(chance.randint(0, ruleset.store_capacity)):
            state["store"][seat][chance.randrange(6)] += 1
        state["combat"][seat] = chance.randint(-50, 500)
        state["credits"][seat] = chance.randint(0, ruleset.max_credits)
    mover, rounds = chance.randrange(4), chance.randrange(3)
    state["turns_taken"] = [rounds + (seat < mover) for seat in range(4)]
    state["clock_seconds"] = chance.randint(1, ruleset.clock_seconds)
    return state
