"""Bodies of requests for the schema: real ones, made by the engine, so that each can be sent."""

import functools

import numpy as np

from retinue.agents.server.positions import rolled_of
from retinue.agents.server.schemas import Plain
from retinue.envs.game import engine
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.game.state import new_game, state_to_json

_SEED = 7


@functools.cache
def _position() -> Plain:
    """Return the first turn of a match of Journey."""
    ruleset = load_ruleset("journey")
    game = new_game(ruleset)
    state = state_to_json(game)
    engine.roll(game, ruleset.packed, np.uint64(_SEED))
    return {"mode": "journey", "state": state, "seat": 0, "rolled": rolled_of(game)}


def _turn() -> Plain:
    """Return a turn that gives the lowest roll to the first Guard."""
    lowest = min(_position()["rolled"])
    noble = {"steps": 4, "when": "before"}
    return {"direction": "forward", "noble": noble, "guards": [[lowest], [], [], []]}


def roll_bodies() -> Plain:
    """Return bodies of ``RollRequest``."""
    due = {key: _position()[key] for key in ("mode", "state", "seat")}
    return {
        "dice of the service": due,
        "dice of a seed": due | {"seed": _SEED},
        "dice from elsewhere": due | {"rolled": _position()["rolled"]},
    }


def legal_bodies() -> Plain:
    """Return bodies of ``LegalRequest``."""
    return {"what may be chosen": _position(), "a turn": _position() | {"turn": _turn()}}


def play_bodies() -> Plain:
    """Return bodies of ``PlayRequest``."""
    return {"a turn": _position() | {"turn": _turn()}}


def decide_bodies() -> Plain:
    """Return bodies of ``DecideRequest``."""
    return {
        "a trained policy": _position() | {"agent": "policy:hard", "seed": _SEED},
        "and why": _position() | {"agent": "policy:hard", "seed": _SEED, "explain": 5},
        "a strategy": _position() | {"agent": "tactician:candidates=64"},
    }


def batch_bodies() -> Plain:
    """Return bodies of ``BatchRequest``."""
    decisions = [_position() | {"agent": name} for name in ("policy:easy", "greedy")]
    return {"two positions": {"decisions": decisions}}


def match_bodies() -> Plain:
    """Return bodies of ``MatchRequest``."""
    seats = ["human", "policy:hard", "tactician", "greedy"]
    short = {"mode": "brawl", "seats": ["racer"] * 4, "clock_seconds": 200}
    return {"one human": {"mode": "journey", "seats": seats}, "a short one to watch": short}


def turn_bodies() -> Plain:
    """Return bodies of ``HostedTurnRequest``."""
    return {"the first turn": {"turn": 0} | _turn()}
