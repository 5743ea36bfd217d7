"""A slow, plain reference referee, written from the rules text alone.

It shares nothing with the engine it is compared to: one step of one group at a time, each function
naming the rule that it carries out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

SEATS, GUARDS, NOBLE, PIECES = 4, (0, 1, 2, 3), 4, (0, 1, 2, 3, 4)
# Position codes and offsets (rules 1): the loop is 0-67, the Home path begins at 68.
YARD, ENTERING, MIDPOINT, LAST_FORWARD, LOOP, HOME_PATH = -1, 0, 34, 63, 68, 68
CASTLES = (7, 12, 24, 29, 41, 46, 58, 63)
OTHER_ENTERING = (17, 51)

GRIDS = ("position", "midpoint", "checkpoints", "progression", "store")  # one row per seat
STATE_KEYS = (*GRIDS, "combat", "bonus", "credits", "turns_taken", "clock_seconds")
Event = dict[str, Any]


class IllegalTurn(ValueError):  # noqa: N818
    """The choice is not one that rules 3.2 allow; nothing has changed."""


class Referee:
    """One match; public: seat, over, finish_order and the methods without an underscore."""

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
        order = sorted(range(SEATS), key=lambda seat: (self.turns_taken[seat], seat))
        self.finish_order: list[int] = [seat for seat in order if self._all_home(seat)]
        unfinished = [seat for seat in order if not self._all_home(seat)]
        self.seat: int = unfinished[0] if unfinished else 0
        self._rolled = False
        self._events: list[Event] = []

    def state(self) -> dict[str, Any]:
        """A copy of the state in the record's shape."""
        return {key: copy.deepcopy(getattr(self, key)) for key in STATE_KEYS}

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
        positions = self.position[self.seat]
        yard = [guard for guard in GUARDS if positions[guard] == YARD]
        may_leave = yard[: self.credits[self.seat]]
        on_board = [guard for guard in GUARDS if YARD < positions[guard] < self.home]
        return sorted(may_leave + on_board)

    def noble_may_move(self) -> bool:
        """A Noble may be moved from anywhere but Home (rules 3.2)."""
        return self.position[self.seat][NOBLE] != self.home

    def roll(self, dice: list[int]) -> int:
        """Store the dice, give grace or forced grace; the number of credits really added."""
        if self.over or self._rolled:
            raise ValueError("no dice to roll now")
        if len(dice) != self.dice_count() or not all(_is_int_in(die, 1, 6) for die in dice):
            raise ValueError("wrong dice")
        self._rolled = True
        for die in dice:
            self.store[self.seat][die - 1] += 1
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
        guards = self.position[self.seat][:NOBLE]
        stuck = YARD in guards and all(place in (YARD, self.home) for place in guards)
        return stuck and self.turns_taken[self.seat] > 0 and self.credits[self.seat] == 0

    def play(self, turn: dict[str, Any]) -> list[Event]:
        """Play the seat's whole turn; the events in order. IllegalTurn leaves everything as it was.

        The turn's dice are taken to be in the store already (by `roll`, or in the given STATE).
        """
        self._check(turn)
        self._events = []
        forward = turn["direction"] == "forward"
        steps, when = turn["noble"]["steps"], turn["noble"]["when"]
        for values in turn["guards"]:  # spent whatever becomes of the move (rules 3.2, A7)
            for value in values:
                self.store[self.seat][value - 1] -= 1

        if steps and when == "before":
            self._move_group([NOBLE], {NOBLE: steps}, forward, steps_made=0)
        self._move_guards([sum(values) for values in turn["guards"]], forward)
        if steps and when == "after":
            self._move_group([NOBLE], {NOBLE: steps}, forward, steps_made=0)
        self._end_turn()
        return self._events

    def _check(self, turn: dict[str, Any]) -> None:
        """Refuse anything that rules 3.2 do not allow."""
        try:
            direction, noble, guards = turn["direction"], turn["noble"], turn["guards"]
            steps, when = noble["steps"], noble["when"]
            used = [value for values in guards for value in values]
        except (KeyError, TypeError) as error:
            raise IllegalTurn("not a turn") from error
        shape = direction in ("forward", "backward") and when in ("before", "after")
        shape = shape and _is_int_in(steps, 0, 6) and all(_is_int_in(v, 1, 6) for v in used)
        if not shape or len(guards) != len(GUARDS) or self.over:
            raise IllegalTurn("not a turn")
        if (steps == 0 and when != "before") or (steps > 0 and not self.noble_may_move()):
            raise IllegalTurn("the Noble may not do this")
        if any(guards[guard] and guard not in self.legal_guards() for guard in GUARDS):
            raise IllegalTurn("a Guard that may not move")
        if any(used.count(value) > self.store[self.seat][value - 1] for value in used):
            raise IllegalTurn("a roll that is not in the store")

    def _end_turn(self) -> None:
        """Check for finishing, move the clock, pass the turn on (rules 1.2, 3, 4.3, 5)."""
        seat = self.seat
        if self._all_home(seat):
            place = len(self.finish_order)
            self.finish_order.append(seat)
            bonuses = self.rules["completion_bonus"]
            bonus = int(bonuses[place]) if place < len(bonuses) else 0
            self.bonus[seat] += bonus
            paid = {"points": bonus} if bonus else {}
            self._events.append({"type": "finish", **paid})
        self.turns_taken[seat] += 1
        self.clock_seconds = max(0, self.clock_seconds - int(self.rules["turn_seconds"]))
        for following in _seats_after(seat):
            if not self._all_home(following):
                self.seat = following
                break
        self._rolled = False

    def _move_guards(self, totals: list[int], forward: bool) -> None:
        """Form the groups once, then move them, larger first (rules 3.3.1-3.3.3)."""
        together: dict[int, list[int]] = {}
        groups: list[list[int]] = []
        for guard in GUARDS:
            place = self.position[self.seat][guard]
            if totals[guard] == 0:
                continue
            if place == YARD:  # out of the Yard one by one (A8)
                groups.append([guard])
            else:
                together.setdefault(place, []).append(guard)
        groups.extend(together.values())
        for group in _larger_first(groups):
            left = {guard: totals[guard] for guard in group}
            self._move_group(group, left, forward, steps_made=0)

    def _move_group(
        self, group: list[int], left: dict[int, int], forward: bool, steps_made: int
    ) -> None:
        """Step a group until all of it has stopped (rules 3.3.4, 3.3.5, 3.4, 3.5.3).

        `left` is the movement that each piece still has, `steps_made` what all made this turn.
        """
        while True:
            places = self.position[self.seat]
            done = [piece for piece in group if left[piece] == 0 or places[piece] == self.home]
            group = [piece for piece in group if piece not in done]
            self._stop(done, steps_made)
            if not group:
                return
            ways: dict[int, list[int]] = {}
            for piece in group:
                ways.setdefault(self._next_place(piece, forward), []).append(piece)
            if len(ways) > 1:  # the paths part; the parts go on at once (rules 3.3.5, A9)
                for part in _larger_first(ways.values()):
                    self._move_group(part, left, forward, steps_made)
                return
            target = next(iter(ways))
            by_others = self._blocked_by_others(target, len(group))
            if by_others or self._blocked_by_own(target, group):
                self._trim(group, left, by_others)
                self._stop(group, steps_made)
                return
            self._step(group, target)
            for piece in group:
                left[piece] -= 1
            steps_made += 1

    def _next_place(self, piece: int, forward: bool) -> int:
        """The position one step on (rules 2.2-2.7)."""
        place = self.position[self.seat][piece]
        may_enter = self.midpoint[self.seat][piece] == 1
        if place == YARD:
            return ENTERING
        if place >= HOME_PATH:
            return place + 1
        if may_enter and place == (LAST_FORWARD if forward else ENTERING):
            return HOME_PATH
        return (place + 1) % LOOP if forward else (place - 1) % LOOP

    def _step(self, group: list[int], target: int) -> None:
        """Put the group on its next place and score it, piece by piece (rules 3.3.6, 3.3.7)."""
        for piece in group:
            if self.position[self.seat][piece] == YARD:
                self._events.append({"type": "exit", "piece": piece})
                if piece != NOBLE:
                    self.credits[self.seat] -= 1
            self.position[self.seat][piece] = target
        for piece in group:
            self._score_place(piece)

    def _blocked_by_others(self, target: int, moving: int) -> bool:
        """Some other seat has more Guards on the tile than move together (rules 3.5.1, A11)."""
        for other in _seats_after(self.seat):
            guards = self.position[other][:NOBLE]
            stack = [there for there in guards if _same_tile(self.seat, target, other, there)]
            if len(stack) > moving:
                return True
        return False

    def _blocked_by_own(self, target: int, group: list[int]) -> bool:
        """Two or more own Guards stop the own Noble, anywhere short of Home (rules 3.5.2)."""
        own = self.position[self.seat][:NOBLE].count(target)
        return group == [NOBLE] and target != self.home and own >= 2

    def _trim(self, group: list[int], left: dict[int, int], penalised: bool) -> None:
        """Lose all remaining movement, at a price if others blocked (rules 3.5.3-3.5.4, A24)."""
        for piece in group:
            event: Event = {"type": "blocked", "piece": piece, "trimmed": left[piece]}
            if penalised:
                penalty = left[piece] * int(self.rules["blockade_penalty"])
                self.combat[self.seat] -= penalty
                event["points"] = -penalty
            self._events.append(event)

    def _stop(self, pieces: list[int], steps_made: int) -> None:
        """Guards stopping on a tile reached this turn capture what is there, once (rules 3.6)."""
        if not pieces or pieces == [NOBLE] or steps_made == 0:
            return
        capturer = min(pieces)
        place = self.position[self.seat][capturer]
        for other in _seats_after(self.seat):
            for piece in PIECES:
                there = self.position[other][piece]
                here = _same_tile(self.seat, place, other, there)
                if here and not self._is_protected(there):
                    self._send_to_yard(other, piece)
                    points = self._capture_points(piece)
                    self.combat[self.seat] += points
                    event: Event = {"type": "capture", "seat": other, "piece": piece}
                    self._events.append({**event, "by": capturer, "points": points})

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
        return int(self.rules["combat"][standing][past][_column(captured)])

    def _score_place(self, piece: int) -> None:
        """Score the checkpoint, if any, on which the piece has just arrived (rules 2.9, 4.1)."""
        place = self.position[self.seat][piece]
        if place == MIDPOINT:
            if not self.midpoint[self.seat][piece]:
                self.midpoint[self.seat][piece] = 1
                self.checkpoints[self.seat][piece] = 0
                points = self._add_progression(piece, "midpoint")
                self._events.append({"type": "midpoint", "piece": piece, "points": points})
            return
        if place == ENTERING:
            bit, kind = 0, "own_entering"
        elif place in CASTLES:
            bit, kind = 1 + CASTLES.index(place), "castle"
        elif place in OTHER_ENTERING:
            bit, kind = 9 + OTHER_ENTERING.index(place), "other_entering"
        elif place == self.home:
            bit, kind = 11, "home"
        else:
            return
        event: Event = {"type": "checkpoint", "piece": piece, "checkpoint": bit}
        if kind == "home":
            event = {"type": "home", "piece": piece}
        new_in_cycle = not self.checkpoints[self.seat][piece] & (1 << bit)
        if new_in_cycle:
            self.checkpoints[self.seat][piece] |= 1 << bit
            event["points"] = self._add_progression(piece, kind)
        if new_in_cycle or kind == "home":
            self._events.append(event)

    def _add_progression(self, piece: int, kind: str) -> int:
        """Add a checkpoint's points to the piece's progression score (rules 4.1)."""
        points = int(self.rules["progression"][kind][_column(piece)])
        self.progression[self.seat][piece] += points
        return points

    def _all_home(self, seat: int) -> bool:
        """The seat has finished (rules 3, 5)."""
        return all(place == self.home for place in self.position[seat])


def _fresh_state(rules: dict[str, Any]) -> dict[str, Any]:
    """Everybody in the Yard, no score, no rolls, the starting credits, the full clock."""
    widths = {"store": 6}
    state: dict[str, Any] = {
        key: [[0] * widths.get(key, len(PIECES)) for _ in range(SEATS)] for key in GRIDS
    }
    state["position"] = [[YARD] * len(PIECES) for _ in range(SEATS)]
    state["combat"], state["bonus"], state["turns_taken"] = [0] * SEATS, [0] * SEATS, [0] * SEATS
    state["credits"] = [int(rules["start_credits"])] * SEATS
    state["clock_seconds"] = int(rules["clock_seconds"])
    return state


def _same_tile(seat: int, place: int, other: int, there: int) -> bool:
    """Whether both positions are on the loop and on one absolute tile (rules 1.3, 2.8)."""
    both_on_loop = 0 <= place < LOOP and 0 <= there < LOOP
    return both_on_loop and (place + 17 * seat) % LOOP == (there + 17 * other) % LOOP


def _seats_after(seat: int) -> list[int]:
    """The other three seats, going round from the next one (rules 1.2)."""
    return [(seat + distance) % SEATS for distance in range(1, SEATS)]


def _larger_first(groups: Iterable[list[int]]) -> list[list[int]]:
    """Larger groups first, then the one with the lowest piece number (rules 3.3.3, 3.3.5)."""
    return sorted(groups, key=lambda group: (-len(group), min(group)))


def _column(piece: int) -> int:
    """Which number of a [Guard, Noble] pair holds for the piece (rules 4.1, 4.2)."""
    return 1 if piece == NOBLE else 0


def _is_int_in(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
