"""Random policies and whole matches for the tests, compiled like the engine itself."""

from typing import Any, Final

import numpy as np

from retinue.envs.game import engine
from retinue.envs.game.board import (
    BACKWARD,
    FORWARD,
    GUARDS,
    HOME_PATH,
    MIDPOINT,
    NOBLE,
    PIECES,
    SEATS,
    tile,
)
from retinue.envs.game.dice import derive, draw
from retinue.envs.game.events import LOG
from retinue.envs.game.jit import jit
from retinue.envs.game.movement import next_position
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import GAME, OVER, TURN, new_game

UNIFORM: Final = 0
"""Every choice is as likely as any other of its kind."""
CROWDING: Final = 1
"""Seeks company: own Guards, enemy stacks and pieces to capture, and drives its Noble."""
POLICY_NAMES: Final = ("uniform", "crowding")

_CANDIDATE = 1000
_STYLE = 10_000
_DECISION = 20_000


@jit
def choose_uniform(game: Any, rules: Any, key: Any, turn: Any) -> None:
    """Fill ``turn`` with a uniformly random legal choice."""
    turn.direction = draw(key, 0, 2)
    turn.noble_steps = draw(key, 1, 7) if engine.noble_may_move(game, rules) else 0
    turn.noble_after = draw(key, 2, 2) if turn.noble_steps > 0 else 0
    legal = engine.legal_guards(game, rules)
    takers = 1  # the first one is nobody
    for guard in range(GUARDS):
        takers += (legal >> guard) & 1
        for value in range(6):
            turn.rolls[guard, value] = 0
    counter = 3
    for value in range(6):
        for _ in range(game.store[game.seat, value]):
            taker = draw(key, counter, takers)
            counter += 1
            for guard in range(GUARDS):
                if (legal >> guard) & 1:
                    taker -= 1
                    if taker == 0:
                        turn.rolls[guard, value] += 1


@jit
def _allure(game: Any, rules: Any, style: Any, guard: int, direction: int, steps: int) -> int:
    """Rate where a Guard would be after ``steps``, by this match's taste."""
    seat = int(game.seat)
    position = int(game.position[seat, guard])
    midpoint = int(game.midpoint[seat, guard])
    for _ in range(steps):
        if position == rules.home:
            break
        position = next_position(position, midpoint, direction)
        if position == MIDPOINT:
            midpoint = 1
    rating = steps * draw(style, 4, 2) // 4
    if position >= HOME_PATH:
        return rating + 2
    ahead = next_position(position, midpoint, direction)
    for other in range(SEATS):
        company = 0
        stack_ahead = 0
        for piece in range(PIECES):
            there = int(game.position[other, piece])
            if there < 0 or there >= HOME_PATH:
                continue
            if tile(other, there) == tile(seat, position):
                company += 1
            elif ahead < HOME_PATH and piece < GUARDS and tile(other, there) == tile(seat, ahead):
                stack_ahead += 1
        if other == seat:
            rating += company * draw(style, 1, 5)
        else:
            rating += company * draw(style, 2, 5)
            if stack_ahead > 1:
                rating += 2 * draw(style, 3, 5)
    return rating


@jit
def choose_crowding(game: Any, rules: Any, style: Any, key: Any, turn: Any) -> None:
    """Fill ``turn`` with a choice that crowds the board; ``style`` sets this match's taste."""
    choose_uniform(game, rules, key, turn)
    favourite = FORWARD if (draw(style, 0, 16) >> int(game.seat)) & 1 else BACKWARD
    if draw(key, _CANDIDATE, 4 + 12 * draw(style, 5, 3)) > 0:
        turn.direction = favourite
    if turn.noble_steps > 0 and draw(key, _CANDIDATE + 1, 4) > 0:
        turn.noble_steps = 4 + draw(key, _CANDIDATE + 2, 3)
    if draw(key, _CANDIDATE + 3, 8) == 0:
        return  # a uniformly random turn now and then
    legal = engine.legal_guards(game, rules)
    for guard in range(GUARDS):
        for value in range(6):
            turn.rolls[guard, value] = 0
    counter = _CANDIDATE + 4
    for value in range(5, -1, -1):
        for _ in range(game.store[game.seat, value]):
            best = 0
            chosen = -1
            for guard in range(GUARDS):
                if not (legal >> guard) & 1:
                    continue
                steps = value + 1
                for given in range(6):
                    steps += int(turn.rolls[guard, given]) * (given + 1)
                rating = 3 + draw(key, counter, 4)
                rating += _allure(game, rules, style, guard, int(turn.direction), steps)
                counter += 1
                if rating > best:
                    best = rating
                    chosen = guard
            if chosen >= 0:
                turn.rolls[chosen, value] += 1


@jit
def choose(game: Any, rules: Any, policy: int, seed: Any, turn: Any) -> None:
    """Fill ``turn`` for the seat to move; all chance comes from ``seed`` and the turn's number."""
    key = derive(seed, _DECISION + int(game.turn))
    if policy == UNIFORM:
        choose_uniform(game, rules, key, turn)
    else:
        choose_crowding(game, rules, derive(seed, _STYLE), key, turn)


@jit
def _play_matches(
    games: Any,
    rules: Any,
    policy: int,
    first_seed: int,
    lengths: Any,
    turns: Any,
    rolled: Any,
    legal: Any,
    after: Any,
    logs: Any,
) -> None:
    for match in range(len(games)):
        game = games[match]
        seed = np.uint64(first_seed + match)
        number = 0
        while game.phase != OVER:
            engine.roll(game, rules, seed)
            choose(game, rules, policy, seed, turns[match, number])
            rolled[match, number] = game
            legal[match, number] = engine.legal_guards(game, rules)
            if engine.noble_may_move(game, rules):
                legal[match, number] |= 1 << NOBLE
            log = logs[match, number % logs.shape[1]]
            if engine.play(game, rules, turns[match, number], log) != engine.LEGAL:
                break  # the phase tells
            after[match, number] = game
            number += 1
        lengths[match] = number


def play_matches(
    games: Any, ruleset: Ruleset, policy: int, first_seed: int, *, with_events: bool = False
) -> dict[str, Any]:
    """Play every game to its end in compiled code; return what happened, by match and turn.

    Match ``i`` has the seed ``first_seed + i``. The arrays: ``lengths``; ``turns`` (TURN);
    ``rolled`` (GAME when the turn is chosen); ``legal`` (a bit for each piece that may move);
    ``after`` (GAME after the turn); ``logs`` (LOG, empty unless asked for).
    """
    matches, longest = len(games), int(ruleset.turns)
    logs = np.zeros((matches, longest if with_events else 1), LOG)
    logs["on"] = with_events
    played = {
        "lengths": np.zeros(matches, np.int64),
        "turns": np.zeros((matches, longest), TURN),
        "rolled": np.zeros((matches, longest), GAME),
        "legal": np.zeros((matches, longest), np.int64),
        "after": np.zeros((matches, longest), GAME),
        "logs": logs,
    }
    _play_matches(games, ruleset.packed, policy, first_seed, *played.values())
    return played


def new_games(ruleset: Ruleset, matches: int) -> Any:
    """Return an array of games at the start of a match."""
    games = np.zeros(matches, GAME)
    games[:] = new_game(ruleset)
    return games
