"""Playing in the environments: actions drawn from masks, turns as actions, actions as turns.

What actions mean is written here a second time, from the words of ``docs/environment.md``; what is
legal is left to ``engine.judge``, which is asked about the completed turn.
"""

import json
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from positions import BRAWL, JOURNEY, NOBLE, any_rules, any_state
from retinue.envs.actions import Encoding
from retinue.envs.batch import Batch
from retinue.envs.chooser import choose_turns
from retinue.envs.game import engine
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import (
    CHOOSE,
    GAME,
    TURN,
    Record,
    empty_turn,
    state_from_json,
    state_to_json,
)
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.opponents import Opponent, View

PLANS, END = 26, 50
"""Plans are the actions below 26; then come 24 that give a roll; 50 ends the turn."""

# --- Drawing actions


def pick(masks: Any, numbers: Any, nvec: Sequence[int]) -> Any:
    """Return for each row of masks and of numbers from 0 to 1 a legal action, int64 (n, parts)."""
    chosen = []
    for part, share in zip(np.split(masks, np.cumsum(nvec)[:-1], axis=1), numbers.T, strict=True):
        legal = part.sum(axis=1)
        assert legal.all(), "an empty mask"
        wanted = (share * legal).astype(np.int64)
        chosen.append((part.cumsum(axis=1) > wanted[:, None]).argmax(axis=1))
    return np.stack(chosen, axis=1)


class Dealer:
    """Draws legal actions, for each game from a source of its own.

    So a game is dealt the same actions whatever else is in its batch.
    """

    def __init__(self, encoding: Encoding, seed: int, games: Iterable[int]) -> None:
        self._nvec = encoding.nvec
        self._sources = [np.random.default_rng([seed, game]) for game in games]

    def __call__(self, masks: Any) -> Any:
        """Return an action for each row: int64 (n,) for ``steps``, (n, parts) for ``turn``."""
        numbers = np.array([source.random(len(self._nvec)) for source in self._sources])
        actions = pick(masks, numbers, self._nvec)
        return actions[:, 0] if len(self._nvec) == 1 else actions


def ask(agent: Opponent, batch: Batch) -> Any:
    """Return what an agent would choose, as actions of ``turn``; games that are over pass."""
    view = View(batch.games.copy(), np.zeros(batch.num_games, np.uint64), batch.ruleset)
    turns = agent.choose(view, np.random.default_rng(0))
    turns[batch.terminated] = empty_turn()
    pairs = zip(turns, batch.games, strict=True)
    return np.array([turn_action(turn, game, batch.ruleset) for turn, game in pairs])


Trace = dict[str, Any]
"""What a caller saw and got, by name: arrays whose first axes are the decision and the game."""
SEEN = ("observations", "masks", "seats")
GOT = ("rewards", "terminated", "illegal", "seats", "observations", "seat_rewards")


def trace(
    batch: Batch, deal: Dealer, decisions: int, between: Callable[[int], object] = lambda _: None
) -> Trace:
    """Play on for some decisions, each ended match followed by the next; return what happened.

    Args:
        batch: it has been reset.
        deal: draws the actions.
        decisions: how many.
        between: is called before each decision, with its number.
    """
    rows: dict[str, list[Any]] = {}

    def note(when: str, names: Sequence[str]) -> None:
        for name in names:
            rows.setdefault(f"{name} {when}", []).append(getattr(batch, name).copy())

    for number in range(decisions):
        between(number)
        note("before", SEEN)
        batch.step(deal(batch.masks))
        note("after", GOT)
        batch.start_next(np.flatnonzero(batch.terminated))
    return {name: np.array(values) for name, values in rows.items()}


def env_trace(env: RetinueEnv, deal: Dealer, seed: int, decisions: int) -> Trace:
    """Return what :func:`trace` would of a batch that held this one environment's match."""
    rows: dict[str, list[Any]] = {}

    def note(**values: Any) -> None:
        for name, value in values.items():
            when, _, what = name.partition("_")
            rows.setdefault(f"{what} {when}", []).append([value])

    observation, info = env.reset(seed=seed)
    for _ in range(decisions):
        mask = env.action_masks()
        note(before_observations=observation, before_masks=mask, before_seats=info["seat"])
        observation, reward, terminated, _, info = env.step(deal(mask[None])[0])
        note(after_rewards=reward, after_terminated=terminated, after_seats=info["seat"])
        note(after_illegal=info["illegal_action"], after_observations=observation)
        note(after_seat_rewards=info["rewards"])
        if terminated:
            observation, info = env.reset()
    return {name: np.array(values) for name, values in rows.items()}


def check_same(first: Trace, second: Trace) -> None:
    """Check that two traces are equal in everything."""
    assert first.keys() == second.keys()
    for name, values in first.items():
        assert np.array_equal(values, second[name]), name


def as_text(shown: Any) -> str:
    """Return lists, tuples and arrays of numbers as text, to compare them."""
    return json.dumps(shown, default=lambda array: array.tolist())


def games_of(traced: Trace, games: Any) -> Trace:
    """Return the part of a trace that is about some games."""
    return {name: values[:, games] for name, values in traced.items()}


class PlainAgent:
    """An agent outside the kernels that lets a policy choose, game by game.

    Args:
        name: what it is called.
        choose: ``choose(game, rules, key, turn)``.
    """

    compiled = None

    def __init__(self, name: str, choose: Callable[..., object]) -> None:
        self.name = name
        self._choose = choose

    def choose(self, view: View, rng: np.random.Generator) -> Any:
        """Return the turns; the games, which are the agent's own copy, are spoilt."""
        turns = np.zeros(len(view.games), TURN)
        for game, key, turn in zip(view.games, view.keys, turns, strict=True):
            assert game["phase"] == CHOOSE
            self._choose(game, view.ruleset.packed, key, turn)
        view.games[:] = np.zeros(1, GAME)
        return turns


class Outside:
    """A compiled agent that kernels cannot call."""

    compiled = None

    def __init__(self, agent: Any) -> None:
        self.name, self.choose = agent.name, agent.choose


class Cheat:
    """Chooses a turn that does not exist."""

    name, compiled = "cheat", None

    def choose(self, view: Any, rng: np.random.Generator) -> Any:
        turns = np.zeros(len(view.games), TURN)
        turns["noble_steps"] = 9
        return turns


class Drawing:
    """Draws from the generator that environments hand to agents."""

    name, compiled = "drawing", None

    def choose(self, view: View, rng: np.random.Generator) -> Any:
        turns, games = np.zeros(len(view.games), TURN), view.games
        nobles = games["position"][np.arange(len(games)), games["seat"], NOBLE]
        turns["noble_steps"] = (nobles != view.ruleset.home) * rng.integers(7, size=len(turns))
        return turns


# --- Turns as actions


def step_actions(turn: Record) -> list[int]:
    """Return a turn as actions of ``steps``."""
    noble = int(turn["noble_steps"] + 6 * turn["noble_after"])
    gives = [
        PLANS + 6 * guard + value
        for guard, value in np.ndindex(4, 6)
        for _ in range(turn["rolls"][guard, value])
    ]
    return [13 * int(turn["direction"]) + noble, *gives, END]


def turn_action(turn: Record, game: Record, ruleset: Ruleset) -> list[int]:
    """Return a turn as the action of ``turn``."""
    parts = [int(turn["direction"]), int(turn["noble_steps"] + 6 * turn["noble_after"])]
    for value, held in enumerate(game["store"][game["seat"]].tolist()):
        takers = [1 + guard for guard in range(4) for _ in range(turn["rolls"][guard, value])]
        parts += takers + [0] * (held - len(takers))
    return parts + [0] * (2 + ruleset.store_capacity - len(parts))


# --- Actions as turns


def is_legal(game: Record, ruleset: Ruleset, turn: Record) -> bool:
    """Tell whether the engine accepts a turn."""
    return int(engine.judge(game, ruleset.packed, turn)) == engine.LEGAL


def plan_into(turn: Record, direction: int, noble: int) -> None:
    """Set the direction and the Noble choice of a turn."""
    turn["direction"] = direction
    turn["noble_steps"] = noble if noble <= 6 else noble - 6
    turn["noble_after"] = noble > 6


class Draft:
    """A turn that is chosen by actions of ``steps``."""

    def __init__(self, game: Record, ruleset: Ruleset) -> None:
        self._game = game.copy()
        self._ruleset = ruleset
        self.turn = empty_turn()
        self.is_planned = False

    def _with(self, action: int) -> Record | None:
        """Return the turn after an action that means something now, else None."""
        turn = self.turn.copy()
        if not self.is_planned:
            if not 0 <= action < PLANS:
                return None
            plan_into(turn, *divmod(action, 13))
        elif PLANS <= action < END:
            guard, value = divmod(action - PLANS, 6)
            turn["rolls"][guard, value] += 1
        elif action != END:
            return None
        return turn if is_legal(self._game, self._ruleset, turn) else None

    def mask(self) -> Any:
        """Return which actions are legal: whether the turn would be if it were ended at once."""
        return np.array([self._with(action) is not None for action in range(END + 1)])

    def add(self, action: int) -> tuple[bool, bool]:
        """Take an action; return whether the turn is complete and whether it was illegal."""
        after, was_planned = self._with(action), self.is_planned
        self.is_planned = True
        if after is not None:
            self.turn = after
        elif not was_planned and 0 <= action < PLANS:
            self.turn["direction"] = action // 13
        return was_planned and (after is None or action == END), after is None

    def plan_section(self) -> list[float]:
        """Return the section ``plan`` of the observation."""
        direction, turn = [0.0, 0.0], self.turn
        if self.is_planned:
            direction[turn["direction"]] = 1.0
        steps, after = int(turn["noble_steps"]), bool(turn["noble_after"])
        noble = [0.0 if after else steps / 6, steps / 6 if after else 0.0]
        totals = (turn["rolls"] @ np.arange(1, 7)).tolist()
        left = self._game["store"][self._game["seat"]] - turn["rolls"].sum(axis=0)
        shares = (left / self._ruleset.store_capacity).tolist()
        return [*direction, *noble, *(total / (total + 12) for total in totals), *shares]


def turn_of(game: Record, ruleset: Ruleset, action: Sequence[int]) -> tuple[Record, bool]:
    """Return the turn that an action of ``turn`` means and whether any part of it is illegal."""
    passive = [0] * (2 + ruleset.store_capacity)
    meant = passive.copy()
    for part, choice in enumerate(action):
        alone = passive.copy()
        alone[part] = int(choice)
        turn = _turn_of_legal(game, alone)
        if turn is not None and is_legal(game, ruleset, turn):
            meant[part] = int(choice)
    turn = _turn_of_legal(game, meant)
    assert turn is not None
    return turn, list(map(int, action)) != meant


def _turn_of_legal(game: Record, action: Sequence[int]) -> Record | None:
    """Return the turn of an action, or None if a choice means nothing at all."""
    turn = empty_turn()
    if not (0 <= action[0] <= 1 and 0 <= action[1] <= 12):
        return None
    plan_into(turn, action[0], action[1])
    held = [value for value, n in enumerate(game["store"][game["seat"]].tolist()) for _ in range(n)]
    for choice, value in zip(action[2 : 2 + len(held)], held, strict=True):
        if not 0 <= choice <= 4:
            return None
        if choice:
            turn["rolls"][choice - 1, value] += 1
    return None if any(action[2 + len(held) :]) else turn


def turn_mask(game: Record, ruleset: Ruleset) -> Any:
    """Return the mask of ``turn``: each part's choices, all other parts passive."""
    nvec = Encoding("turn", ruleset).nvec
    mask = []
    for part, choices in enumerate(nvec):
        for choice in range(choices):
            action = [0] * len(nvec)
            action[part] = choice
            turn = _turn_of_legal(game, action)
            mask.append(turn is not None and is_legal(game, ruleset, turn))
    return np.array(mask)


# --- Positions


def any_position(chance: random.Random, ruleset: Ruleset | None = None) -> tuple[Record, Ruleset]:
    """Return a crowded position at a seat's decision, under any rules unless they are given.

    Often some of its pieces may not move.
    """
    ruleset = ruleset or chance.choice([JOURNEY, BRAWL, any_rules(chance)])
    game = state_from_json(any_state(chance, ruleset), ruleset)
    if chance.random() < 0.3:
        game["position"][game["seat"], NOBLE] = ruleset.home
    if chance.random() < 0.3:
        game["credits"][game["seat"]] = chance.randint(0, 1)
    game["phase"] = CHOOSE
    return game, ruleset


def any_turn(game: Record, ruleset: Ruleset, chance: random.Random) -> Record:
    """Return a turn as random as the engine allows."""
    turn = empty_turn()
    turn["direction"] = chance.randrange(2)
    if engine.noble_may_move(game, ruleset.packed):
        turn["noble_steps"] = chance.randrange(7)
        turn["noble_after"] = turn["noble_steps"] > 0 and chance.random() < 0.5
    legal = engine.legal_guards(game, ruleset.packed)
    guards = [guard for guard in range(4) if legal >> guard & 1]
    for value, held in enumerate(game["store"][game["seat"]].tolist()):
        for _ in range(held if guards else 0):
            if chance.random() < 0.7:
                turn["rolls"][chance.choice(guards), value] += 1
    return turn


def turned(game: Record, by: int, ruleset: Ruleset) -> Record:
    """Return the same situation when every seat ``s`` is called ``s + by``."""
    state = state_to_json(game)
    for name, rows in state.items():
        if isinstance(rows, list):
            state[name] = [rows[(seat - by) % 4] for seat in range(4)]
    other = state_from_json(state, ruleset)
    for name in ("turn", "phase", "rolled", "dice", "credits_earned", "finished"):
        other[name] = game[name]
    other["seat"] = (game["seat"] + by) % 4
    order = (game["finish_order"][: game["finished"]] + by) % 4
    other["finish_order"][: len(order)] = order
    return other


def put(batch: Batch, states: Sequence[dict[str, Any]]) -> None:
    """Make a batch whose caller plays all seats go on from STATEs, at the next seat's decision."""
    assert batch.encoding.name == "steps"
    batch.reset(0)
    for index, state in enumerate(states):
        batch.games[index] = state_from_json(state, batch.ruleset)
    batch.games["phase"] = CHOOSE  # of seats that received no dice and pass
    batch.step(np.zeros(len(states), np.int64))
    batch.step(np.full(len(states), END))


def considered(
    game: Record, encoding: Encoding, actions: Sequence[Any]
) -> tuple[Record, list[Any], list[Any]]:
    """Choose a turn by actions; return it and what was seen before each: observations and masks."""
    games = np.array([game], GAME)
    observations, masks, script = [], [], iter(actions)

    def decide(seen: Any, legal: Any) -> Any:
        observations.append(seen[0].copy())
        masks.append(legal[0].copy())
        return np.array([next(script)])

    view = View(games, np.zeros(1, np.uint64), encoding.ruleset)
    turns = choose_turns(view, encoding, decide)
    assert next(script, None) is None, "the turn was complete before all actions were taken"
    return turns[0], observations, masks
