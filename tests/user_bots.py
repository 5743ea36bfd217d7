"""Agents of a user's own, well and badly behaved, as the text of one file."""

from pathlib import Path
from typing import Any

import numpy as np

from positions import JOURNEY, changed
from retinue.agents.registry import make_agent
from retinue.agents.user import UserAgent
from retinue.envs.game import engine
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import GAME, new_game
from retinue.envs.opponents import View

SHORT = changed(JOURNEY, clock_seconds=200)
"""Twenty turns, five for each seat."""

BOTS = """
import os
import re
import signal
import sys
import time

import numpy as np
from retinue.envs.game.state import TURN


class Stays:
    def choose(self, view, rng):
        self.act(view, rng)
        return np.zeros(len(view.games), TURN)

    def act(self, view, rng):
        pass


class Raises(Stays):
    def act(self, view, rng):
        raise ZeroDivisionError("no\\nway")


class Twice(Stays):
    def act(self, view, rng):
        if view.games["turns_taken"].max() < 2:
            raise ValueError


class Exits(Stays):
    def act(self, view, rng):
        sys.exit(3)


class Dies(Stays):
    def act(self, view, rng):
        os._exit(7)


class Crashes(Stays):
    def act(self, view, rng):
        os.kill(os.getpid(), signal.SIGSEGV)


class Hangs(Stays):
    def act(self, view, rng):
        print("pid", os.getpid())
        while True:
            pass


class Stuck(Stays):
    def act(self, view, rng):
        print("pid", os.getpid())
        re.match("(a+)+$", "a" * 50 + "b")  # no other thread can run


class Slow(Stays):
    def act(self, view, rng):
        time.sleep(0.2)


class Prints(Stays):
    def act(self, view, rng):
        print("noise of Python")
        os.write(1, b"noise below\\n")
        assert sys.stdin.read() == ""


class Lists(Stays):
    def choose(self, view, rng):
        return [0]


class TwoTurns(Stays):
    def choose(self, view, rng):
        return np.zeros(2, TURN)


class Numbers(Stays):
    def choose(self, view, rng):
        return np.zeros(1)


class Nine:
    def choose(self, view, rng):
        turns = np.zeros(len(view.games), TURN)
        turns["noble_steps"] = 9
        return turns


class Draws:
    name = "drawing lots"
    compiled = "ignored"

    def __init__(self, ruleset):
        self.most = ruleset.store_capacity

    def choose(self, view, rng):
        assert self.most == view.ruleset.store_capacity
        turns = np.zeros(len(view.games), TURN)
        turns["noble_steps"] = rng.integers(7, size=len(turns))
        return turns


class Unsteady(Draws):
    name = None

    def choose(self, view, rng):
        turns = super().choose(view, rng)
        fate = rng.random()
        if fate < 0.3:
            raise ValueError("bad luck")
        if fate < 0.33:
            os._exit(1)
        turns["noble_steps"] += 6 * (fate < 0.6)
        return turns
"""


def line_of(code: str) -> int:
    """Return the number of the line that holds some code."""
    return BOTS[: BOTS.index(code)].count("\n") + 1


def bots(folder: Path) -> Path:
    """Write the file of agents and return its path."""
    path = folder / "bots.py"
    path.write_text(BOTS, encoding="utf-8")
    return path


def made(path: Path, name: str, time_limit: float = 30.0, ruleset: Ruleset = SHORT) -> UserAgent:
    """Return an agent of the file."""
    agent = make_agent(f"{path}:{name}", ruleset, time_limit=time_limit)
    assert isinstance(agent, UserAgent)
    return agent


def view_of(keys: Any, ruleset: Ruleset = SHORT) -> View:
    """Return a view of the first turn, once for each key."""
    games = np.zeros(len(keys), GAME)
    games[:] = new_game(ruleset)
    for game in games:
        engine.roll(game, ruleset.packed, np.uint64(1))
    return View(games, np.array(keys, np.uint64), ruleset)


def ask(agent: Any, keys: Any = (0,), ruleset: Ruleset = SHORT) -> Any:
    """Return an agent's turns."""
    return agent.choose(view_of(keys, ruleset), np.random.default_rng(0))
