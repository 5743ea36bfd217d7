"""Micro-batches: what waits together is asked together, and nobody spoils another's answer."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from positions import JOURNEY
from retinue.agents.server.deciding import Decider
from retinue.agents.server.problems import ProblemError
from retinue.agents.server.roster import Cast, Roster
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import TURN
from retinue.envs.opponents import View
from serving import ok, position, question, refused, serving

pytestmark = pytest.mark.anyio
SPOILT = 66
"""The seat's turns taken in a position that the agent below cannot bear."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Slow:
    """An agent that answers when it is let, and notes what it was asked."""

    name = "slow"
    compiled = None

    def __init__(self) -> None:
        self.may = threading.Event()
        self.asked: list[int] = []
        self.keys: list[list[int]] = []

    def choose(self, view: View, rng: np.random.Generator) -> Any:
        self.asked.append(len(view.games))
        self.keys.append(view.keys.tolist())
        assert self.may.wait(30)
        if (view.games["turns_taken"][:, 0] == SPOILT).any():
            raise RuntimeError("spoilt")
        turns = np.zeros(len(view.games), TURN)
        turns["noble_steps"] = view.keys % 7
        return turns


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """The agent that every name but racer means."""
    agent = Slow()
    make = Roster.make

    def made(self: Roster, cast: Cast, ruleset: Ruleset) -> Any:
        return make(self, cast, ruleset) if cast.name == "racer" else agent

    monkeypatch.setattr(Roster, "make", made)
    return agent


@pytest.fixture
async def decider(slow: Slow) -> AsyncIterator[Decider]:
    found = Decider(Roster({}, 1.0), (20, 2), 8, lambda name, count: None)
    found.start()
    yield found
    slow.may.set()
    await found.stop()


async def until(holds: Any) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.005)


async def test_what_comes_meanwhile_is_asked_together(slow: Slow, decider: Decider) -> None:
    roster = Roster({}, 1.0)
    first = asyncio.create_task(decider.ask([question(roster, "greedy", seed=0)]))
    await until(lambda: slow.asked == [1])
    rest = [
        asyncio.create_task(decider.ask([question(roster, "greedy", seed=seed)]))
        for seed in range(1, 11)
    ]
    other = asyncio.create_task(decider.ask([question(roster, "hunter", seed=12)]))
    await until(lambda: decider.waiting == 11)
    slow.may.set()
    answers = await asyncio.gather(first, *rest)
    await other
    assert slow.asked == [1, 8, 1, 2], "eight at most, and then the turn of another agent"
    assert slow.keys[1] == list(range(1, 9))
    assert [each[0].turn["noble_steps"] for each in answers] == [seed % 7 for seed in range(11)]


async def test_others_rules_are_another_batch(slow: Slow, decider: Decider) -> None:
    roster = Roster({}, 1.0)
    brawl = question(roster, "greedy", seed=2)
    questions = [question(roster, "greedy", seed=1), brawl, question(roster, "greedy", seed=3)]
    brawl.group = ("greedy", "another digest")
    slow.may.set()
    answers = await decider.ask(questions)
    assert sorted(slow.asked) == [1, 2]
    assert [each.turn["noble_steps"] for each in answers] == [1, 2, 3]


async def test_what_spoils_one_answer_spoils_no_other(slow: Slow, decider: Decider) -> None:
    roster = Roster({}, 1.0)
    bad = question(roster, "greedy", seed=4)
    bad.game["turns_taken"][0] = SPOILT
    asked = [
        asyncio.create_task(decider.ask([each]))
        for each in (question(roster, "greedy", seed=3), bad, question(roster, "greedy", seed=5))
    ]
    await until(lambda: len(slow.asked) == 1)
    slow.may.set()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert str(found[1]) == "spoilt"
    assert [each[0].turn["noble_steps"] for each in found if isinstance(each, list)] == [3, 5]


async def test_what_takes_long_holds_up_nobody_else(slow: Slow, decider: Decider) -> None:
    roster = Roster({}, 1.0)
    long = asyncio.create_task(decider.ask([question(roster, "search")]))
    await until(lambda: slow.asked == [1])
    (answer,) = await decider.ask([question(roster, "racer")])
    assert answer.turn["rolls"].sum() > 0
    assert not long.done()
    waiting = [asyncio.create_task(decider.ask([question(roster, "search")])) for _ in range(2)]
    await until(lambda: decider.waiting == 2)
    with pytest.raises(ProblemError, match="2 positions wait"):
        await decider.ask([question(roster, "search")])
    slow.may.set()
    await asyncio.gather(long, *waiting)
    assert slow.asked == [1, 1, 1], "one at a time"


async def test_matches_among_agents_come_last(slow: Slow, decider: Decider) -> None:
    roster = Roster({}, 1.0)
    order: list[str] = []

    async def ask(name: str, *, urgent: bool) -> None:
        await decider.ask([question(roster, name)], urgent=urgent, must_wait=True)
        order.append(name)

    tasks = [asyncio.create_task(ask("greedy", urgent=True))]
    await until(lambda: slow.asked == [1])
    tasks.append(asyncio.create_task(ask("hunter", urgent=False)))
    await until(lambda: decider.waiting == 1)
    tasks.append(asyncio.create_task(ask("guardian", urgent=True)))
    await until(lambda: decider.waiting == 2)
    slow.may.set()
    await asyncio.gather(*tasks)
    assert order == ["greedy", "guardian", "hunter"]


# --- Through the service


async def test_health_and_others_are_answered_meanwhile(slow: Slow, tmp_path: Path) -> None:
    async with serving(tmp_path) as (client, service):
        asked = position(9)[0] | {"agent": "greedy"}
        tasks = [asyncio.create_task(client.post("/v1/decide", json=asked)) for _ in range(5)]
        await until(lambda: slow.asked and service.decider.waiting == 4)
        health = ok(await client.get("/health"))
        assert (health["status"], health["waiting"]) == ("ok", 4)
        assert b"retinue_waiting 4.0" in (await client.get("/metrics")).content
        assert ok(await client.post("/v1/referee/legal", json=position(9)[0]))
        slow.may.set()
        for each in await asyncio.gather(*tasks):
            ok(each)
        text = (await client.get("/metrics")).text
        assert 'retinue_decisions_total{agent="greedy"} 5.0' in text
        assert 'retinue_batch_size_bucket{le="1.0"} 1.0' in text
        assert 'retinue_requests_total{method="POST",path="/v1/decide",status="200"} 5.0' in text


async def test_too_many_are_told_to_come_again(slow: Slow, tmp_path: Path) -> None:
    async with serving(tmp_path, in_flight=3, waiting=1) as (client, service):
        asked = position(9)[0] | {"agent": "greedy"}

        async def ask() -> httpx.Response:
            return await client.post("/v1/decide", json=asked)

        busy = [asyncio.create_task(ask())]
        await until(lambda: slow.asked)
        busy.append(asyncio.create_task(ask()))
        await until(lambda: service.decider.waiting == 1)
        error = await ask()
        assert "1 positions wait" in refused(error, 429, "too_many")["reason"]
        assert error.headers["retry-after"] == "1"
        batch = {"decisions": [asked] * 2}
        refused(await client.post("/v1/decide/batch", json=batch), 429)
        busy.append(asyncio.create_task(_hang(client)))
        await asyncio.sleep(0.05)
        error = await ask()
        assert "3 requests are being answered" in refused(error, 429)["reason"]
        ok(await client.get("/health"))
        slow.may.set()
        busy[2].cancel()
        for each in busy[:2]:
            ok(await each)
        ok(await ask())


async def _hang(client: httpx.AsyncClient) -> httpx.Response:
    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(60)

    json = {"Content-Type": "application/json"}
    return await client.post("/v1/decide", content=never(), headers=json)


async def test_a_fault_of_an_agent_s_is_told_without_its_traceback(
    slow: Slow, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slow.may.set()
    asked = position(9)[0] | {"agent": "greedy"}
    async with serving(tmp_path, raises=False) as (client, _):
        slow.choose = lambda view, rng: 1 / 0  # type: ignore[method-assign]
        response = await client.post("/v1/decide", json=asked)
        error = refused(response, 500, "internal")
        assert error["reason"] == "a fault of the service's, which has been logged"
    assert "ZeroDivisionError" in caplog.text


def test_keys_of_matches_are_apart() -> None:
    roster = Roster({}, 1.0)
    assert question(roster, "racer").group == ("racer", JOURNEY.digest)


@pytest.mark.parametrize("name", ["policy:hard", "policy:easy"])
async def test_a_policy_shares_a_batch_among_threads_and_plays_the_same(name: str) -> None:
    turns = []
    for threads in (1, 2):
        roster = Roster({}, 1.0, threads)
        assert roster.make(roster.find(name), JOURNEY).threads == threads  # type: ignore[attr-defined]
        decider = Decider(roster, (20, 2), 8, lambda name, count: None)
        decider.start()
        answers = await decider.ask([question(roster, name, seed=seed) for seed in range(6)])
        await decider.stop()
        turns.append([answer.turn.tobytes() for answer in answers])
    assert turns[0] == turns[1]
