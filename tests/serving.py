"""A service in this process, as its clients meet it, and positions to ask it about."""

import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np

from drawn_positions import random_turn
from positions import JOURNEY
from retinue.agents.server import deciding
from retinue.agents.server.app import create_app
from retinue.agents.server.roster import Roster
from retinue.agents.server.service import Service
from retinue.agents.server.settings import Settings
from retinue.envs.game import engine
from retinue.envs.game.events import SILENT
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import Record, new_game, state_to_json

Plain = dict[str, Any]
JSON: Final = {"Content-Type": "application/json"}
PASS: Final = {
    "direction": "forward",
    "noble": {"steps": 0, "when": "before"},
    "guards": [[], [], [], []],
}
"""The turn that moves nothing."""


@contextlib.asynccontextmanager
async def serving(
    folder: Path, *, raises: bool = True, **settings: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, Service]]:
    """A service that keeps its matches in ``folder``, and a client of it."""
    service = Service(Settings(folder, **settings))
    app = create_app(service)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=raises)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://retinue", timeout=60
        ) as client:
            yield client, service


def ok(response: httpx.Response, status: int = 200) -> Any:
    """What an answer holds that must be one."""
    assert response.status_code == status, response.text
    return response.json()


def refused(response: httpx.Response, status: int, code: str | None = None) -> Plain:
    """The error of an answer that must be one, in the one form that there is."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert list(response.json()) == ["error"]
    assert set(error) == {"code", "field", "reason"}
    assert code in (None, error["code"])
    assert "\n" not in error["reason"]
    assert "Traceback" not in error["reason"]
    return dict(error)


def position(turns: int, seed: int = 1, ruleset: Ruleset = JOURNEY) -> tuple[Plain, Record]:
    """A position after some random turns, as requests have it, and its ``GAME``, rolled."""
    game, chance = new_game(ruleset), random.Random(seed)
    for _ in range(turns):
        engine.roll(game, ruleset.packed, np.uint64(seed))
        turn = random_turn(game, ruleset, chance)
        assert engine.play(game, ruleset.packed, turn, SILENT) == engine.LEGAL
    state = state_to_json(game)
    engine.roll(game, ruleset.packed, np.uint64(seed))
    rolled = game["rolled"][: game["dice"]].tolist()
    asked = {"mode": ruleset.mode, "state": state, "seat": int(game["seat"]), "rolled": rolled}
    return asked, game


def question(
    roster: Roster, agent: str, turns: int = 9, seed: int = 1, **more: Any
) -> deciding.Question:
    """A question to an agent."""
    _, game = position(turns, seed)
    return deciding.Question(roster.find(agent), JOURNEY, game, np.uint64(seed), **more)
