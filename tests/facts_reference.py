"""A plain reference of the facts of a turn (``retinue.envs.facts``), written from their meanings.

Turns are played by the independent referee; chances come from dice and stored rolls alone. It
shares no code with what it is compared to and is as slow as it is plain.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from typing import Any

from referee import (
    CASTLES,
    CHECKPOINTS,
    COLUMN,
    GUARDS,
    HOME_BIT,
    HOME_PATH,
    LOOP,
    MIDPOINT,
    NOBLE,
    PIECES,
    SEATS,
    SEATS_AFTER,
    YARD,
    Event,
    Referee,
)
from ways_and_chances import (
    DIE,
    apart,
    dice_for,
    none_of,
    rolls_in,
    sums_of,
    throws_with,
    tile_of,
    way_home,
)

REACH, NEAR, EXPOSED_WITHIN = 36, 12, 14
NEARNESS = 0.97
MOST_DICE = 6
FADING_TURNS = 6
AHEAD = ("next", "across", "previous")

State = dict[str, Any]
Rules = dict[str, Any]
Facts = dict[str, float]


class _Walker(Referee):
    """A referee that counts the steps made on the loop, by direction and midpoint."""

    def __init__(self, rules: Rules, state: State) -> None:
        super().__init__(rules, state)
        self.made: Counter[str] = Counter()
        self._way = ""

    def play(self, turn: dict[str, Any]) -> list[Event]:
        self._way = turn["direction"]
        return super().play(turn)

    def _step(self, group: list[int], target: int) -> None:
        for piece in group if target < HOME_PATH else ():
            past = self.midpoint[self.seat][piece]
            self.made[f"{self._way}_{'past' if past else 'before'}"] += 1
        super()._step(group, target)


def facts(rules: Rules, state: State, turn: dict[str, Any]) -> Facts:
    """Return all facts of a turn by name.

    Args:
        rules: the rules configuration.
        state: STATE before the turn, the seat's roll in its store.
        turn: as records write it.
    """
    before, after = Referee(rules, state), _Walker(rules, state)
    events = after.play(turn)
    found = _Facts(before, after, events)
    return {
        **found.scores(),
        **found.losses(),
        **found.ways(),
        **found.places(),
        **found.danger(),
        **found.prey(),
        **found.resources(),
        **{f"{way}_{part}": after.made[f"{way}_{part}"] for way, part in _PARTS},
    }


_PARTS = list(itertools.product(("forward", "backward"), ("before", "past")))


class _Facts:
    """The facts of one turn, seen from its seat.

    Args:
        before: the match before the turn.
        after: the match after it.
        events: of the turn.
    """

    def __init__(self, before: Referee, after: Referee, events: list[Event]) -> None:
        self.before, self.after = before, after
        self.rules, self.home = before.rules, before.home
        self.seat = before.seat
        self.others = SEATS_AFTER[self.seat]
        self.captured = [(e["seat"], e["piece"]) for e in events if e["type"] == "capture"]
        self.events = events
        step = int(self.rules["turn_seconds"])
        # Turns that all seats have left once this one is over, and the seat's own share of them.
        self.turns_left = math.ceil(max(0, before.clock_seconds - step) / step)
        waiting = [seat for seat in range(SEATS) if seat not in before.finish_order]
        own_turns = self.turns_left / len(waiting)
        self.fade = own_turns / (own_turns + FADING_TURNS)
        self.where = after.position[self.seat]
        self.on_loop = [piece for piece in PIECES if 0 <= self.where[piece] < HOME_PATH]

    def _paid(self, kind: str) -> int:
        return sum(e.get("points", 0) for e in self.events if e["type"] == kind)

    @staticmethod
    def _total(match: Referee, seat: int) -> int:
        return sum(match.progression[seat]) + match.combat[seat] + match.bonus[seat]

    def scores(self) -> Facts:
        """What the turn paid, and where that leaves the seat."""
        own = self._total(self.after, self.seat)
        theirs = [self._total(self.after, other) for other in self.others]
        return {
            "progression": sum(map(self._paid, ("checkpoint", "midpoint", "home"))),
            "combat": self._paid("capture"),
            "penalties": -self._paid("blocked"),
            "bonus": self._paid("finish"),
            "margin": own - sum(theirs) / len(theirs),
            "lead": own - max(theirs),
            "time_left": self.after.clock_seconds / self.rules["clock_seconds"],
        }

    def losses(self) -> Facts:
        """What opponents lost."""
        lost = dict.fromkeys(self.others, 0)
        for seat, piece in self.captured:
            lost[seat] += self.before.progression[seat][piece]
        totals = {other: self._total(self.before, other) for other in self.others}
        leaders = [other for other in self.others if totals[other] == max(totals.values())]
        nobles = sum(piece == NOBLE for _, piece in self.captured)
        return {
            "guards_captured": len(self.captured) - nobles,
            "nobles_captured": nobles,
            "loss_leader": sum(lost[other] for other in leaders),
            **{f"loss_{name}": lost[seat] for name, seat in zip(AHEAD, self.others, strict=True)},
        }

    def _open(self, piece: int) -> float:
        """Points on the better way Home, each step on the way making them worth a little less."""
        place = self.where[piece]
        past, records = (
            table[self.seat][piece] for table in (self.after.midpoint, self.after.checkpoints)
        )
        found = []
        for forward in (True, False):
            points = 0.0
            for steps, (at, is_past) in enumerate(way_home(place, bool(past), forward, self.home)):
                taken, key = False, ""
                if at == MIDPOINT:
                    taken, key = is_past, "midpoint"
                elif at == self.home or at in CHECKPOINTS:
                    bit, key = (HOME_BIT, "home") if at == self.home else CHECKPOINTS[at]
                    # The midpoint on the way would clear the records.
                    taken = bool(records >> bit & 1) and is_past == bool(past)
                if key and not taken:
                    worth = self.rules["progression"][key][COLUMN[piece]]
                    points += worth * NEARNESS ** (steps + 1)
            found.append(points)
        return max(found)

    def ways(self) -> Facts:
        """What lies between the pieces and Home."""
        midpoint = self.after.midpoint[self.seat]
        steps = [
            min(len(way_home(place, bool(past), forward, self.home)) for forward in (True, False))
            for place, past in zip(self.where, midpoint, strict=True)
        ]
        return {
            "steps_guards": sum(steps[:NOBLE]),
            "steps_noble": steps[NOBLE],
            "open_guards": self.fade * sum(map(self._open, GUARDS)),
            "open_noble": self.fade * self._open(NOBLE),
            "midpoint_guards": sum(midpoint[:NOBLE]),
            "midpoint_noble": midpoint[NOBLE],
        }

    def _protected(self, place: int) -> bool:
        """On the own entering tile or on a Castle (rules 3.6.2), or not on the loop."""
        castle = place in CASTLES and bool(self.rules["castles_protect"])
        return not 0 < place < HOME_PATH or castle

    def _standing(self, match: Referee, seat: int) -> str:
        """The row of the combat table (rules 4.2) for a seat's Noble."""
        place = match.position[seat][NOBLE]
        if not 0 < place < HOME_PATH:
            return "safe"
        return "castle" if place in CASTLES else "regular"

    def _worth(self, match: Referee, seat: int, piece: int) -> int:
        """What a seat gets for capturing such a piece."""
        past = "past" if match.midpoint[seat][NOBLE] else "before"
        row = self.rules["combat"][self._standing(match, seat)][past]
        return int(row[COLUMN[piece]])

    def _company(self, piece: int) -> int:
        """Own Guards on a piece's tile; a Guard counts itself."""
        return self.where[:NOBLE].count(self.where[piece])

    def _guards_within(self, piece: int, tiles: int) -> int:
        """Opponents' Guards that stood near a piece when the turn began."""
        own = tile_of(self.seat, self.where[piece])
        places = [
            (seat, self.before.position[seat][guard]) for seat in self.others for guard in GUARDS
        ]
        return sum(
            0 <= place < HOME_PATH and apart(own, tile_of(seat, place)) <= tiles
            for seat, place in places
        )

    def places(self) -> Facts:
        """Where the pieces stand."""
        guards = [piece for piece in self.on_loop if piece != NOBLE]
        stacked = [guard for guard in guards if self._company(guard) >= 2]
        stacks = {self.where[guard]: guard for guard in stacked}
        noble = self.where[NOBLE]
        return {
            "yard_guards": self.fade * self.where[:NOBLE].count(YARD),
            "home_guards": self.where[:NOBLE].count(self.home),
            "noble_home": noble == self.home,
            "noble_castle": self._standing(self.after, self.seat) == "castle",
            "noble_regular": self._standing(self.after, self.seat) == "regular",
            "capture_worth": self.fade * self._worth(self.after, self.seat, 0),
            "safe_guards": sum(self._protected(self.where[guard]) for guard in guards),
            "stacked": len(stacked),
            "barrier": self.fade
            * sum(self._guards_within(guard, NEAR) for guard in stacks.values()),
            "at_stake": sum(self.after.progression[self.seat][piece] for piece in self.on_loop),
        }

    # --- What opponents may do next

    def _moves_again(self, other: int) -> bool:
        """Whether a seat has a turn before the own next one."""
        waiting = [seat for seat in self.others if seat not in self.before.finish_order]
        return other in waiting[: self.turns_left]

    @functools.cached_property
    def _hits(self) -> dict[int, list[float]]:
        return {other: self._hit_chances(other) for other in self.others}

    def _hit_chances(self, other: int) -> list[float]:
        """How likely a seat can make each total: with stored rolls, or one or two new dice too."""
        if not self._moves_again(other):
            return [0.0] * (REACH + 1)
        store = self.before.store[other]
        sums = sums_of(rolls_in(store))
        dice = dice_for(self.rules, sum(store))
        chances = []
        for steps in range(REACH + 1):
            ones = sum(steps - die in sums for die in DIE)
            twos = sum(steps - one - two in sums for one, two in itertools.product(DIE, DIE))
            missed = (1 - ones / 6) ** dice * (1 - twos / 36) ** math.comb(dice, 2)
            chances.append(1.0 if steps in sums else 1.0 - missed)
        return chances

    def _stacks_of_third_seats(self, other: int) -> set[int]:
        """Tiles on which stacks of neither this nor the own seat stand."""
        return {
            tile_of(third, place)
            for third in self.others
            for place in self.before.position[third][:NOBLE]
            if third != other
            and 0 <= place < HOME_PATH
            and self.before.position[third][:NOBLE].count(place) >= 2
        }

    def _stops(self, other: int, place: int, past: bool, tile: int) -> list[float]:
        """How likely a Guard stops on a tile, in either direction, as far as it may go."""
        chances = []
        for forward in (True, False):
            for steps, (at, _) in enumerate(way_home(place, past, forward, self.home), start=1):
                here = tile_of(other, at)
                if steps > REACH or at >= HOME_PATH or here in self._in_the_way[other]:
                    break
                if here == tile:
                    chances.append(self._hits[other][steps])
        return chances

    @functools.cached_property
    def _in_the_way(self) -> dict[int, set[int]]:
        return {other: self._stacks_of_third_seats(other) for other in self.others}

    def _chance(self, other: int, piece: int) -> float:
        """How likely an opponent captures a piece in its next turn, all its ways independent."""
        tile = tile_of(self.seat, self.where[piece])
        guards = self.before.position[other][:NOBLE]
        chances: list[float] = []
        for guard, place in enumerate(guards):
            if 0 <= place < HOME_PATH and (other, guard) not in self.captured:
                past = bool(self.before.midpoint[other][guard])
                chances += self._stops(other, place, past, tile)
        if YARD in guards and self.before.credits[other] > 0:
            chances += self._stops(other, YARD, False, tile)
        return 1.0 - none_of(chances)

    def danger(self) -> Facts:
        """What may become of pieces that stand alone and unprotected."""
        found: defaultdict[str, float] = defaultdict(float)
        for piece in self.on_loop:
            if self._protected(self.where[piece]) or self._company(piece) >= 2:
                continue
            points = self.after.progression[self.seat][piece]
            chances = [self._chance(other, piece) for other in self.others]
            kind = "noble" if piece == NOBLE else "guards"
            for other, name, chance in zip(self.others, AHEAD, chances, strict=True):
                found[f"risk_{kind}_{name}"] += chance * points
                found["bounty"] += chance * self._worth(self.before, other, piece)
            found["setbacks"] += 1.0 - none_of(chances)
            if self._guards_within(piece, EXPOSED_WITHIN):
                found["exposed"] += points
        names = [f"risk_{kind}_{name}" for kind in ("guards", "noble") for name in AHEAD]
        return {name: found[name] for name in (*names, "bounty", "setbacks", "exposed")}

    # --- What the seat may do next

    def prey(self) -> Facts:
        """What own Guards may reach with the dice that an empty store brings."""
        dice = min(dice_for(self.rules, 0), MOST_DICE)
        pieces, points = 0.0, 0.0
        for seat, piece in itertools.product(self.others, PIECES):
            place = self.after.position[seat][piece]
            if self._protected(place):
                continue
            for guard in [piece for piece in self.on_loop if piece != NOBLE]:
                ahead = (tile_of(seat, place) - tile_of(self.seat, self.where[guard])) % LOOP
                for steps in (ahead, LOOP - ahead):
                    if 0 < steps <= REACH:
                        chance = self.fade * throws_with(dice)[steps] / 6**dice
                        pieces += chance * (1.5 if piece == NOBLE else 1.0)
                        points += chance * self.after.progression[seat][piece]
        return {"prey": pieces, "prey_points": points}

    def resources(self) -> Facts:
        """What is left for later turns."""
        store = self.after.store[self.seat]
        return {
            "kept": self.fade * sum(store),
            "kept_pips": self.fade * sum(rolls_in(store)),
            "dice": self.fade * dice_for(self.rules, sum(store)),
            "credits": self.fade * self.after.credits[self.seat],
        }
