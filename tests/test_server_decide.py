"""Decisions over HTTP: the same turns as the agents choose, and why."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from positions import BRAWL, JOURNEY, changed
from retinue.agents.registry import make_agent
from retinue.agents.server import examples
from retinue.agents.server.deciding import key_of
from retinue.agents.zoo import residents
from retinue.envs.game.record import turn_to_json
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.opponents import View
from serving import Plain, ok, position, refused, serving

pytestmark = pytest.mark.anyio
BOT = """
import numpy as np
from retinue.envs.game.state import TURN

class Still:
    def choose(self, view, rng):
        return np.zeros(len(view.games), TURN)
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(tmp_path_factory.mktemp("matches")) as (found, _):
        yield found


def chosen(agent: str, game: Any, ruleset: Ruleset = JOURNEY, seed: int = 7) -> Plain:
    """The turn that an agent chooses when it is asked here."""
    view = View(np.array([game]), np.array([key_of(seed)], np.uint64), ruleset)
    turns = make_agent(agent, ruleset).choose(view, np.random.default_rng(0))
    return turn_to_json(turns[0])


@pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=["journey", "brawl"])
@pytest.mark.parametrize(
    "agent", ["random", "racer", "tactician", "hunter:candidates=9", "policy:easy", "policy:hard"]
)
async def test_the_turn_is_the_agent_s_own(
    client: httpx.AsyncClient, agent: str, ruleset: Ruleset
) -> None:
    for turns in (0, 23, 90):
        asked, game = position(turns, 3, ruleset)
        answer = ok(await client.post("/v1/decide", json=asked | {"agent": agent, "seed": 7}))
        expected = chosen(agent, game, ruleset)
        assert answer == {"agent": agent, "turn": expected, "explanation": None}


async def test_chance_is_the_seed_s_or_drawn(client: httpx.AsyncClient) -> None:
    asked = position(30)[0] | {"agent": "random"}
    seeded = [
        ok(await client.post("/v1/decide", json=asked | {"seed": seed}))["turn"]
        for seed in (1, 1, 2)
    ]
    assert seeded[0] == seeded[1] != seeded[2]
    drawn = [str(ok(await client.post("/v1/decide", json=asked))["turn"]) for _ in range(8)]
    assert len(set(drawn)) > 1


async def test_many_at_once_get_what_each_gets_alone(client: httpx.AsyncClient) -> None:
    asked = [
        position(turns, turns)[0] | {"agent": agent, "seed": turns}
        for turns in range(0, 60, 5)
        for agent in ("policy:hard", "greedy")
    ]
    alone = [ok(await client.post("/v1/decide", json=each)) for each in asked]
    together = await asyncio.gather(*(client.post("/v1/decide", json=each) for each in asked))
    assert [ok(each) for each in together] == alone
    batch = ok(await client.post("/v1/decide/batch", json={"decisions": asked}))
    assert batch == {"decisions": alone}


async def test_rules_as_a_document(client: httpx.AsyncClient) -> None:
    asked, _ = position(12)
    rules = ok(await client.get("/v1/rules/journey"))["rules"]
    assert rules == JOURNEY.model_dump(mode="json")
    by_document = {key: value for key, value in asked.items() if key != "mode"} | {"rules": rules}
    for agent in ("tactician", "policy:medium"):
        same = [
            ok(await client.post("/v1/decide", json=each | {"agent": agent}))
            for each in (asked, by_document)
        ]
        assert same[0] == same[1]
    other = by_document | {"rules": changed(JOURNEY, blockade_penalty=3).model_dump(mode="json")}
    assert ok(await client.post("/v1/decide", json=other | {"agent": "greedy"}))
    for agent in ("tactician", "policy:hard", "policy:hard@search", "policy:easy@lookahead"):
        error = refused(await client.post("/v1/decide", json=other | {"agent": agent}), 422)
        assert error["field"] == "agent"
        assert "these are journey with rules" in error["reason"] or error["reason"] == (
            f"{agent} does not play under these rules"
        )
        assert "/" not in error["reason"]


# --- Why


async def test_a_policy_explains_itself(client: httpx.AsyncClient) -> None:
    asked, _ = position(41)
    for agent in ("policy:easy", "policy:hard"):
        request = asked | {"agent": agent, "seed": 1, "explain": 128}
        answer = ok(await client.post("/v1/decide", json=request))
        why = answer["explanation"]
        shown = why["alternatives"]
        shares = [each["probability"] for each in shown]
        assert len(shown) == why["candidates"] > 20
        assert sum(shares) == pytest.approx(1, abs=1e-5)
        assert shares == sorted(shares, reverse=True)
        assert [each["turn"] for each in shown if each["chosen"]] == [answer["turn"]]
        assert isinstance(why["value"], float)
        assert why["unit"]["mode"] == "margin"
        for each in shown[:5]:
            request = asked | {"turn": each["turn"]}
            played = ok(await client.post("/v1/referee/play", json=request))
            assert each["after"] == played["totals"]


async def test_few_alternatives_and_the_chosen_one(client: httpx.AsyncClient) -> None:
    asked = position(41)[0] | {"agent": "policy:hard", "seed": 1}
    everything, few = [
        ok(await client.post("/v1/decide", json=asked | {"explain": count})) for count in (128, 1)
    ]
    all_shown = everything["explanation"]["alternatives"]
    expected = [each for rank, each in enumerate(all_shown) if rank == 0 or each["chosen"]]
    assert few["explanation"]["alternatives"] == expected
    assert few["turn"] == everything["turn"]


async def test_others_do_not_explain_themselves(client: httpx.AsyncClient) -> None:
    asked = position(5)[0] | {"agent": "tactician", "explain": 5}
    assert ok(await client.post("/v1/decide", json=asked))["explanation"] is None


# --- Who may be asked


async def test_all_that_are_listed_can_be_asked(client: httpx.AsyncClient) -> None:
    listed = ok(await client.get("/v1/agents"))
    names = [each["name"] for each in listed["agents"]]
    assert {"random", "tactician", "search", "policy:hard", "policy:easy@search"} <= set(names)
    assert set(listed["suggested"]) < set(names)
    for each in listed["agents"]:
        if each["kind"] == "search":
            continue  # they take their time; others ask them
        for mode in each["modes"]:
            asked, _ = position(3, ruleset={"journey": JOURNEY, "brawl": BRAWL}[mode])
            options = [f"{one['name']}={one['default']}" for one in each["options"]]
            name = f"{each['name']}:{','.join(options)}" if options else each["name"]
            answer = ok(await client.post("/v1/decide", json=asked | {"agent": name, "explain": 1}))
            assert (answer["explanation"] is not None) == each["explains"]


async def test_strength_is_what_was_measured(client: httpx.AsyncClient) -> None:
    listed = ok(await client.get("/v1/agents"))["agents"]
    strength = {each["name"]: each["strength"] for each in listed}
    for resident in residents():
        rows = strength[f"policy:{resident.level}"][resident.mode]
        assert [each["share"] for each in rows] == [
            each.share for each in resident.manifest.strength
        ]


@pytest.mark.parametrize(
    "agent",
    [
        "search:rollouts=16,base=racer",
        "policy:easy@search:rollouts=16",
        "policy:easy@lookahead:top=2",
    ],
)
async def test_what_takes_long_is_asked_alone(client: httpx.AsyncClient, agent: str) -> None:
    asked = position(20)[0] | {"agent": agent, "seed": 1}
    first = ok(await client.post("/v1/decide", json=asked))
    assert ok(await client.post("/v1/decide", json=asked)) == first
    quick = asked | {"agent": "racer"}
    response = await client.post("/v1/decide/batch", json={"decisions": [quick, asked]})
    error = refused(response, 422)
    assert (error["field"], "takes long" in error["reason"]) == ("decisions[1].agent", True)


async def test_an_agent_of_the_operator_s(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(BOT)
    own = {"mine": f"{tmp_path / 'bot.py'}:Still", "plain": "greedy:candidates=4"}
    async with serving(tmp_path / "matches", agents=own) as (client, _):
        asked, game = position(20)
        answer = ok(await client.post("/v1/decide", json=asked | {"agent": "mine"}))
        assert answer["turn"]["guards"] == [[], [], [], []]
        answer = ok(await client.post("/v1/decide", json=asked | {"agent": "plain"}))
        assert answer["turn"] == chosen("greedy:candidates=4", game)
        for name in ("mine:x=1", own["mine"], "mine@search"):
            refused(await client.post("/v1/decide", json=asked | {"agent": name}), 422)
        batch = {"decisions": [asked | {"agent": "plain"}] * 2}
        ok(await client.post("/v1/decide/batch", json=batch))
        batch["decisions"][1] = asked | {"agent": "mine"}
        refused(await client.post("/v1/decide/batch", json=batch), 422)
        listed = ok(await client.get("/v1/agents"))["agents"]
        assert [each["name"] for each in listed if each["kind"] == "own"] == ["mine", "plain"]
        assert str(tmp_path) not in str(listed)


async def test_examples_are_answered(client: httpx.AsyncClient) -> None:
    schema = ok(await client.get("/openapi.json"))
    asked = 0
    for path, operations in schema["paths"].items():
        body = operations.get("post", {}).get("requestBody")
        if body is None or "{" in path:
            continue
        for each in body["content"]["application/json"]["examples"].values():
            response = await client.post(path, json=each["value"])
            assert response.status_code in (200, 201), (path, response.text)
            asked += 1
    assert asked == 12
    assert set(examples.turn_bodies()["the first turn"]) >= {"turn", "guards"}
