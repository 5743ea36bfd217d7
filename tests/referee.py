"""A plain reference referee, written from the rules text alone.

It shares nothing with the engine it is compared to: one step of one group at a time, in ordinary
lists, each function naming the rule that it carries out.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable
from typing import Any

SEATS, GUARDS, NOBLE, PIECES = 4, (0, 1, 2, 3), 4, (0, 1, 2, 3, 4)
# Position codes and offsets (rules 1): the loop is 0-67, the Home path begins at 68.
YARD, ENTERING, MIDPOINT, LAST_FORWARD, LOOP, HOME_PATH = -1, 0, 34, 63, 68, 68
CASTLES = (7, 12, 24, 29, 41, 46, 58, 63)
OTHER_ENTERING = (17, 51)
# Record bit and rules key of the loop's checkpoints, but for the midpoint, which has no record.
CHECKPOINTS = {
    ENTERING: (0, "own_entering"),
    **{offset: (1 + index, "castle") for index, offset in enumerate(CASTLES)},
    **{offset: (9 + index, "other_entering") for index, offset in enumerate(OTHER_ENTERING)},
}
HOME_BIT = 11
COLUMN = (0, 0, 0, 0, 1)  # of each piece, in a [Guard, Noble] pair (rules 4.1, 4.2)
DIE = frozenset(range(1, 7))
# The other three seats, going round from the next one (rules 1.2).
SEATS_AFTER = [[(seat + ahead) % SEATS for ahead in (1, 2, 3)] for seat in range(SEATS)]

GRIDS = ("position", "midpoint", "checkpoints", "progression", "store")  # one row per seat
STATE_KEYS = (*GRIDS, "combat", "bonus", "credits", "turns_taken", "clock_seconds")
Event = dict[str, Any]


class IllegalTurn(ValueError):  # noqa: N818
    """The choice is not one that rules 3.2 allow; nothing has changed."""


class Referee:
    """One match; public: seat, over, finish_order, splits and the methods without an underscore."""

    def __init__(self, rules: dict[str, Any], state: dict[str, Any] | None = None) -> None:
        """Start a fresh match (rules 1, 3.1.5, 5) or go on from a STATE at the start of a turn."""
        self.rules = copy.deepcopy(rules)
        given = _fresh_state(self.rules) if state is None else copy.deepcopy(state)
        self.position: list[list[int]] = given["position"]
        self.midpoint: list[list[int]] = given["midpoint"]
        self.checkpoints: list[list[int]] = given["checkpoints"]
        self.progression: list[list[int]] = given["progression"]
        self.combat: list[int] = given["combat"]
        self.bonus: list[int] = given["bonus"]
        self.store: list[list[int]] = given["store"]
        self.credits: list[int] = given["credits"]
        self.turns_taken: list[int] = given["turns_taken"]
        self.clock_seconds: int = given["clock_seconds"]
        self.home: int = HOME_PATH + int(self.rules["home_path_tiles"])
        self._scoring = {*CHECKPOINTS, MIDPOINT, self.home}
        order = sorted(range(SEATS), key=lambda seat: (self.turns_taken[seat], seat))
        self.finish_order: list[int] = [seat for seat in order if self._all_home(seat)]
        unfinished = [seat for seat in order if not self._all_home(seat)]
        self.seat: int = unfinished[0] if unfinished else 0
        self.splits = 0  # how often a group has parted at a Home path
        self._rolled = False
        self._events: list[Event] = []
        self._stacks: dict[int, int] = {}

    def state(self) -> dict[str, Any]:
        """A copy of the state in the record's shape."""
        return {key: copy.deepcopy(getattr(self, key)) for key in STATE_KEYS}

    def numbers(self) -> list[int]:
        """All numbers of the state in one row, in the order of STATE_KEYS, to compare it fast."""
        row: list[int] = []
        for table in (self.position, self.midpoint, self.checkpoints, self.progression, self.store):
            row += itertools.chain.from_iterable(table)
        for part in (self.combat, self.bonus, self.credits, self.turns_taken):
            row += part
        return [*row, self.clock_seconds]

    @property
    def over(self) -> bool:
        """All four seats have finished, or the clock has run out (rules 5)."""
        return len(self.finish_order) == SEATS or self.clock_seconds <= 0

    def result(self) -> dict[str, Any]:
        """Totals, places (equal totals share the better one), finish order, reason (rules 4, 5)."""
        if not self.over:
            raise ValueError("the match is not over")
        progression = [sum(pieces) for pieces in self.progression]
        totals = [sum(parts) for parts in zip(progression, self.combat, self.bonus, strict=True)]
        places = [1 + sum(other > total for other in totals) for total in totals]
        return {
            "totals": totals,
            "places": places,
            "finish_order": list(self.finish_order),
            "reason": "finished" if len(self.finish_order) == SEATS else "clock",
        }

    def dice_count(self) -> int:
        """Dice that the seat to move rolls with its present store (rules 3.1.1)."""
        stored = sum(self.store[self.seat])
        for up_to, dice in self.rules["dice"]:
            if stored <= up_to:
                return int(dice)
        return 0

    def legal_guards(self) -> list[int]:
        """Guards on the loop or Home path, and the first `credits` ones in the Yard (rules 3.2)."""
        places, credits = self.position[self.seat], self.credits[self.seat]
        legal = []
        for guard in GUARDS:
            if places[guard] == YARD and credits > 0:
                credits -= 1
                legal.append(guard)
            elif YARD < places[guard] < self.home:
                legal.append(guard)
        return legal

    def noble_may_move(self) -> bool:
        """A Noble may be moved from anywhere but Home (rules 3.2)."""
        return self.position[self.seat][NOBLE] != self.home

    def roll(self, dice: list[int]) -> int:
        """Store the dice, give grace or forced grace; the number of credits really added."""
        if self.over or self._rolled:
            raise ValueError("no dice to roll now")
        if len(dice) != self.dice_count() or not DIE.issuperset(dice):
            raise ValueError("wrong dice")
        self._rolled = True
        store = self.store[self.seat]
        for die in dice:
            store[die - 1] += 1
        held = self.credits[self.seat]
        if self._is_grace(dice) or self._is_forced_grace():
            raised = held + int(self.rules["credits_per_grace"])
            self.credits[self.seat] = min(raised, int(self.rules["max_credits"]))
        return self.credits[self.seat] - held

    def _is_grace(self, dice: list[int]) -> bool:
        """A 6 in the first two dice, or these two adding up to 6; not on turn one (rules 3.1.2)."""
        if self.turns_taken[self.seat] == 0:
            return False
        first_two = dice[:2]
        return 6 in first_two or (len(first_two) == 2 and sum(first_two) == 6)

    def _is_forced_grace(self) -> bool:
        """No credit, Guards only in Yard or Home, one in the Yard; not turn one (rules 3.1.4)."""
        if self.turns_taken[self.seat] == 0 or self.credits[self.seat] > 0:
            return False
        guards = self.position[self.seat][:NOBLE]
        return YARD in guards and all(place in (YARD, self.home) for place in guards)

    def play(self, turn: dict[str, Any]) -> list[Event]:
        """Play the seat's whole turn; the events in order. IllegalTurn leaves everything as it was.

        The turn's dice are taken to be in the store already (by `roll`, or in the given STATE).
        """
        self._check(turn)
        self._events = []
        self._stacks = self._stacks_of_others()
        forward = turn["direction"] == "forward"
        steps, when = turn["noble"]["steps"], turn["noble"]["when"]
        store = self.store[self.seat]
        for value in itertools.chain.from_iterable(turn["guards"]):
            store[value - 1] -= 1  # spent whatever becomes of the move (rules 3.2, A7)
        totals = [*map(sum, turn["guards"]), steps]
        if steps and when == "before":
            self._move_group([NOBLE], totals, forward, 0)
        self._move_guards(totals, forward)
        if steps and when == "after":
            self._move_group([NOBLE], totals, forward, 0)
        self._end_turn()
        return self._events

    def _check(self, turn: dict[str, Any]) -> None:
        """Refuse anything that rules 3.2 do not allow."""
        guards, steps, when = turn["guards"], turn["noble"]["steps"], turn["noble"]["when"]
        used = list(itertools.chain.from_iterable(guards))
        known = turn["direction"] in ("forward", "backward") and when in ("before", "after")
        known = known and 0 <= steps <= 6 and DIE.issuperset(used) and len(guards) == len(GUARDS)
        if not known or self.over:
            raise IllegalTurn("not a turn")
        if (steps == 0 and when != "before") or (steps > 0 and not self.noble_may_move()):
            raise IllegalTurn("the Noble may not do this")
        legal = self.legal_guards()
        for guard, values in enumerate(guards):
            if values and guard not in legal:
                raise IllegalTurn("a Guard that may not move")
        for value, held in enumerate(self.store[self.seat], start=1):
            if used.count(value) > held:
                raise IllegalTurn("a roll that is not in the store")

    def _end_turn(self) -> None:
        """Check for finishing, move the clock, pass the turn on (rules 1.2, 3, 4.3, 5)."""
        seat = self.seat
        if self._all_home(seat):
            place = len(self.finish_order)
            self.finish_order.append(seat)
            bonus = int(self.rules["completion_bonus"][place])
            self.bonus[seat] += bonus
            self._events.append({"type": "finish", **_paid(bonus)})
        self.turns_taken[seat] += 1
        self.clock_seconds = max(0, self.clock_seconds - int(self.rules["turn_seconds"]))
        for following in SEATS_AFTER[seat]:
            if not self._all_home(following):
                self.seat = following
                break
        self._rolled = False

    def _move_guards(self, totals: list[int], forward: bool) -> None:
        """Form the groups once, then move them, larger first (rules 3.3.1-3.3.3)."""
        together: dict[int, list[int]] = {}
        places = self.position[self.seat]
        for guard in GUARDS:
            if totals[guard]:  # out of the Yard one by one (A8)
                key = places[guard] if places[guard] != YARD else YARD - guard
                together.setdefault(key, []).append(guard)
        for group in _larger_first(together.values()):
            self._move_group(group, totals, forward, 0)

    def _move_group(self, group: list[int], totals: list[int], forward: bool, steps: int) -> None:
        """Step a group until all of it has stopped (rules 3.3.4, 3.3.5, 3.4, 3.5.3).

        `totals` is the movement of every piece, `steps` what this group has made of it so far.
        """
        shortest = min([totals[piece] for piece in group])
        while group:
            target = self._next_place(group[0], forward)
            if len(group) > 1:  # perhaps the paths part; then the parts go on at once (A9)
                ways: dict[int, list[int]] = {}
                for piece in group:
                    ways.setdefault(self._next_place(piece, forward), []).append(piece)
                if len(ways) > 1:
                    self.splits += 1
                    for part in _larger_first(ways.values()):
                        self._move_group(part, totals, forward, steps)
                    return
            by_others = self._stacks.get(target, 0) > len(group)
            if by_others or (group[0] == NOBLE and self._blocked_by_own(target)):
                self._trim(group, [totals[piece] - steps for piece in group], by_others)
                self._stop(group, steps)
                return
            self._step(group, target)
            if target == self.home:  # what is left over is ignored (rules 2.7)
                return
            steps += 1
            if steps == shortest:
                self._stop([piece for piece in group if totals[piece] == steps], steps)
                group = [piece for piece in group if totals[piece] > steps]
                shortest = min([totals[piece] for piece in group], default=0)

    def _next_place(self, piece: int, forward: bool) -> int:
        """The position one step on (rules 2.2-2.7)."""
        place = self.position[self.seat][piece]
        if place == YARD:
            return ENTERING
        if place >= HOME_PATH:
            return place + 1
        if place == (LAST_FORWARD if forward else ENTERING) and self.midpoint[self.seat][piece]:
            return HOME_PATH
        return (place + 1) % LOOP if forward else (place - 1) % LOOP

    def _step(self, group: list[int], target: int) -> None:
        """Put the group on its next place and score it, piece by piece (rules 3.3.6, 3.3.7)."""
        places = self.position[self.seat]
        if target == ENTERING and places[group[0]] == YARD:
            self._events.append({"type": "exit", "piece": group[0]})
            if group != [NOBLE]:
                self.credits[self.seat] -= 1
        for piece in group:
            places[piece] = target
        if target in self._scoring:
            for piece in group:
                self._score_place(piece)

    def _stacks_of_others(self) -> dict[int, int]:
        """The largest stack that one other seat has on a tile, by the mover's offset (3.5.1)."""
        largest: dict[int, int] = {}
        for other in SEATS_AFTER[self.seat]:
            guards = self.position[other][:NOBLE]
            places = set(guards)
            for there in places if len(places) < len(guards) else ():
                if guards.count(there) > 1 and 0 <= there < LOOP:
                    seen = _offset_for(self.seat, other, there)
                    largest[seen] = max(largest.get(seen, 0), guards.count(there))
        return largest

    def _blocked_by_own(self, target: int) -> bool:
        """Two or more own Guards stop the own Noble, anywhere short of Home (rules 3.5.2)."""
        return target != self.home and self.position[self.seat][:NOBLE].count(target) >= 2

    def _trim(self, group: list[int], left: list[int], penalised: bool) -> None:
        """Lose all remaining movement, at a price if others blocked (rules 3.5.3-3.5.4, A24)."""
        for piece, trimmed in zip(group, left, strict=True):
            penalty = trimmed * int(self.rules["blockade_penalty"]) if penalised else 0
            self.combat[self.seat] -= penalty
            event: Event = {"type": "blocked", "piece": piece, "trimmed": trimmed}
            self._events.append(event | _paid(-penalty))

    def _stop(self, pieces: list[int], steps: int) -> None:
        """Guards stopping on a tile reached this turn capture what is there, once (rules 3.6)."""
        place = self.position[self.seat][pieces[0]]
        if pieces == [NOBLE] or steps == 0 or place >= HOME_PATH:
            return
        for other in SEATS_AFTER[self.seat]:
            there = _offset_for(other, self.seat, place)
            places = self.position[other]
            if there not in places or self._is_protected(there):
                continue
            for piece in [piece for piece in PIECES if places[piece] == there]:
                self._send_to_yard(other, piece)
                points = self._capture_points(piece)
                self.combat[self.seat] += points
                event: Event = {"type": "capture", "seat": other, "piece": piece}
                self._events.append({**event, **_paid(points)})
            self._stacks = self._stacks_of_others()

    def _is_protected(self, place: int) -> bool:
        """On a Castle (A13), or on the piece's own entering tile (rules 3.6.2)."""
        return place == ENTERING or (bool(self.rules["castles_protect"]) and place in CASTLES)

    def _send_to_yard(self, seat: int, piece: int) -> None:
        """What a captured piece loses; its checkpoint records stay (rules 3.6.3, 3.6.4)."""
        self.position[seat][piece] = YARD
        self.progression[seat][piece] = 0
        self.midpoint[seat][piece] = 0
        if piece == NOBLE:
            self.credits[seat] = int(self.rules["start_credits"])

    def _capture_points(self, captured: int) -> int:
        """Price a capture by where the own Noble stands and its midpoint (rules 3.6.5, 4.2)."""
        noble = self.position[self.seat][NOBLE]
        if noble in (YARD, ENTERING) or noble >= HOME_PATH:
            standing = "safe"
        elif noble in CASTLES:
            standing = "castle"
        else:
            standing = "regular"
        past = "past" if self.midpoint[self.seat][NOBLE] else "before"
        return int(self.rules["combat"][standing][past][COLUMN[captured]])

    def _score_place(self, piece: int) -> None:
        """Score the checkpoint, if any, on which the piece has just arrived (rules 2.9, 4.1)."""
        place = self.position[self.seat][piece]
        if place == MIDPOINT:
            if not self.midpoint[self.seat][piece]:
                self.midpoint[self.seat][piece] = 1
                self.checkpoints[self.seat][piece] = 0
                points = self._add_progression(piece, "midpoint")
                self._events.append({"type": "midpoint", "piece": piece, **_paid(points)})
            return
        bit, kind = (HOME_BIT, "home") if place == self.home else CHECKPOINTS[place]
        event: Event = {"type": "checkpoint", "piece": piece, "checkpoint": bit}
        if kind == "home":
            event = {"type": "home", "piece": piece}
        new_in_cycle = not self.checkpoints[self.seat][piece] & (1 << bit)
        if new_in_cycle:
            self.checkpoints[self.seat][piece] |= 1 << bit
            event |= _paid(self._add_progression(piece, kind))
        if new_in_cycle or kind == "home":
            self._events.append(event)

    def _add_progression(self, piece: int, kind: str) -> int:
        """Add a checkpoint's points to the piece's progression score (rules 4.1)."""
        points = int(self.rules["progression"][kind][COLUMN[piece]])
        self.progression[self.seat][piece] += points
        return points

    def _all_home(self, seat: int) -> bool:
        """The seat has finished (rules 3, 5)."""
        return self.position[seat].count(self.home) == len(PIECES)


def _fresh_state(rules: dict[str, Any]) -> dict[str, Any]:
    """Everybody in the Yard, no score, no rolls, the starting credits, the full clock."""
    rows = {"position": [YARD] * len(PIECES), "store": [0] * 6}
    none = [0] * len(PIECES)
    state: dict[str, Any] = {key: [rows.get(key, none)[:] for _ in range(SEATS)] for key in GRIDS}
    state |= {key: [0] * SEATS for key in ("combat", "bonus", "turns_taken")}
    state["credits"] = [int(rules["start_credits"])] * SEATS
    state["clock_seconds"] = int(rules["clock_seconds"])
    return state


def _offset_for(viewer: int, seat: int, offset: int) -> int:
    """A seat's loop offset as counted from the viewer's entering tile (rules 1.3)."""
    return (offset + 17 * (seat - viewer)) % LOOP


def _paid(points: int) -> Event:
    """The points of an event that scores; one that does not has none."""
    return {"points": points} if points else {}


def _larger_first(groups: Iterable[list[int]]) -> list[list[int]]:
    """Larger groups first, then the one with the lowest piece number (rules 3.3.3, 3.3.5)."""
    return sorted(groups, key=lambda group: (-len(group), min(group)))
