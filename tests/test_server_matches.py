"""Hosted matches: played, watched, verified."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from positions import JOURNEY
from retinue.agents.server.service import Service
from retinue.envs.game.record import MatchReplay, verify_record
from serving import PASS, Plain, ok, refused, serving

pytestmark = pytest.mark.anyio
SEATS = ["human", "greedy", "policy:easy", "racer"]
Served = tuple[httpx.AsyncClient, Service]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "matches") as found:
        yield found


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def create(client: httpx.AsyncClient, seats: list[str], **more: Any) -> tuple[Any, Plain]:
    response = await client.post("/v1/matches", json={"mode": "journey", "seats": seats, **more})
    made = ok(response, 201)
    assert response.headers["location"] == f"/v1/matches/{made['match']['id']}"
    return made["tokens"], made["match"]


async def play_out(client: httpx.AsyncClient, match: Plain, token: str) -> Plain:
    """Play a human seat as greedy would until the match is over."""
    path = f"/v1/matches/{match['id']}"
    match = ok(await client.get(f"{path}?wait=20"))
    while match["status"] == "playing":
        due = match["due"]
        assert due["kind"] == "human"
        asked = {key: match[key] for key in ("mode", "state")}
        asked |= {"seat": due["seat"], "rolled": due["rolled"], "agent": "greedy"}
        turn = ok(await client.post("/v1/decide", json=asked))["turn"]
        body = turn | {"turn": match["turn"]}
        answer = await client.post(f"{path}/turns?wait=20", json=body, headers=bearer(token))
        found = ok(answer)
        assert found["line"]["turn"] == match["turn"]
        assert {key: found["line"][key] for key in turn} == turn
        match = found["match"]
    return match


async def record(client: httpx.AsyncClient, match: Plain, folder: Path) -> MatchReplay:
    """The record so far, verified."""
    response = await client.get(f"/v1/matches/{match['id']}/record")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/jsonl"
    assert f'filename="retinue-{match["id"]}.jsonl"' in response.headers["content-disposition"]
    path = folder / "record.jsonl"
    path.write_bytes(response.content)
    return verify_record(path)


def events(text: str) -> list[tuple[str, Any, str | None]]:
    """Server-sent events as names, data and ids."""
    found = []
    for block in text.strip().split("\n\n"):
        parts = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((parts["event"], json.loads(parts["data"]), parts.get("id")))
    return found


async def test_a_match_from_the_first_turn_to_the_last(served: Served, tmp_path: Path) -> None:
    client, service = served
    tokens, match = await create(client, SEATS)
    assert [token is not None for token in tokens] == [True, False, False, False]
    assert (match["seats"], match["status"], match["seed"]) == (SEATS, "playing", None)
    over = await play_out(client, match, tokens[0])
    assert (over["status"], over["turn"], over["due"]) == ("over", 180, None)
    assert over["seed_sha256"] == match["seed_sha256"]
    assert hashlib.sha256(str(over["seed"]).encode()).hexdigest() == over["seed_sha256"]
    replay = await record(client, match, tmp_path)
    assert replay.result is not None
    assert replay.result.model_dump(mode="json") == over["result"]
    assert (replay.header.seed, list(replay.header.agents)) == (over["seed"], SEATS)
    rules = ok(await client.get(f"/v1/matches/{match['id']}/rules"))
    assert rules == JOURNEY.model_dump(mode="json")
    assert service.hosting.playing == 0
    assert [path.suffix for path in (tmp_path / "matches").glob(f"{match['id']}*")] == [".jsonl"]


async def test_the_record_of_a_match_that_is_played_verifies_too(
    served: Served, tmp_path: Path
) -> None:
    client, _ = served
    (token, *_), match = await create(client, ["human", "racer", "racer", "racer"])
    path = f"/v1/matches/{match['id']}"
    for number in range(0, 12, 4):
        body = PASS | {"turn": number}
        ok(await client.post(f"{path}/turns?wait=20", json=body, headers=bearer(token)))
    replay = await record(client, match, tmp_path)
    assert (replay.header.seed, replay.result) == (None, None)
    assert len(list(replay)) == 12


async def test_what_is_due_is_what_the_engine_says(served: Served) -> None:
    client, _ = served
    _, match = await create(client, ["human"] * 4)
    asked = {"mode": "journey", "state": match["state"], "seat": match["due"]["seat"]}
    rolled = {"rolled": match["due"]["rolled"]}
    received = ok(await client.post("/v1/referee/roll", json=asked | rolled))
    due = match["due"]
    assert received["legal"] == due["legal"]
    assert (due["kind"], due["credits_earned"]) == ("human", received["credits_earned"])
    assert ok(await client.get(f"/v1/matches/{match['id']}")) == match


async def test_only_whose_turn_it_is_may_move(served: Served) -> None:
    client, _ = served
    tokens, match = await create(client, ["human", "racer", "human", "racer"])
    others, _ = await create(client, ["human"] * 4)
    path = f"/v1/matches/{match['id']}/turns"

    async def play(token: str | None, number: int = 0, **more: Any) -> httpx.Response:
        headers = {} if token is None else bearer(token)
        return await client.post(path, json=PASS | {"turn": number} | more, headers=headers)

    response = await play(None)
    refused(response, 401, "unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"
    for token in (others[0], "x", "", tokens[0] + "x", tokens[0][:-1], "é" * 20):
        headers = httpx.Headers({b"Authorization": f"Bearer {token}".encode()})
        body = PASS | {"turn": 0}
        response = await client.post(path, json=body, headers=headers)
        refused(response, 403 if token else 401)
    refused(await client.post(path, json=PASS | {"turn": 0}, headers={"Authorization": "x"}), 401)
    assert "another seat's" in refused(await play(tokens[2]), 403, "forbidden")["reason"]
    error = refused(await play(tokens[0], 4), 409, "conflict")
    assert (error["field"], error["reason"]) == ("turn", "turn 0 is due, not 4")
    error = refused(
        await play(tokens[0], guards=[[6, 6, 6, 6, 6], [], [], []]), 422, "illegal_turn"
    )
    assert "rolls of 6 are assigned" in error["reason"]
    assert ok(await client.get(f"/v1/matches/{match['id']}")) == match
    ok(await play(tokens[0]))
    refused(await play(tokens[0]), 409, "conflict")


async def test_one_of_two_equal_requests_is_played(served: Served) -> None:
    client, _ = served
    tokens, match = await create(client, ["human"] * 4)
    path = f"/v1/matches/{match['id']}/turns"
    body = PASS | {"turn": 0}
    found = await asyncio.gather(
        *(client.post(path, json=body, headers=bearer(tokens[0])) for _ in range(5))
    )
    assert sorted(each.status_code for each in found) == [200, 409, 409, 409, 409]
    assert ok(await client.get(f"/v1/matches/{match['id']}"))["turn"] == 1


async def test_matches_have_dice_and_tokens_of_their_own(served: Served) -> None:
    client, _ = served
    made = [await create(client, ["human"] * 4) for _ in range(6)]
    tokens = [token for each, _ in made for token in each]
    assert len(set(tokens)) == 24
    assert min(map(len, tokens)) >= 40
    assert len({match["seed_sha256"] for _, match in made}) == 6
    assert len({str(match["due"]["rolled"]) for _, match in made}) > 1


async def test_a_shorter_clock(served: Served, tmp_path: Path) -> None:
    client, _ = served
    _, match = await create(client, ["racer", "policy:hard", "racer", "greedy"], clock_seconds=200)
    over = ok(await client.get(f"/v1/matches/{match['id']}?wait=30"))
    assert (over["status"], over["turn"]) == ("over", 20)
    replay = await record(client, match, tmp_path)
    assert replay.header.start.clock_seconds == 200
    asked = {"mode": "journey", "seats": ["human"] * 4, "clock_seconds": 1801}
    error = refused(await client.post("/v1/matches", json=asked), 422)
    assert error["field"] == "clock_seconds"


async def test_matches_under_rules_of_their_own(served: Served, tmp_path: Path) -> None:
    client, _ = served
    rules = JOURNEY.model_dump(mode="json") | {"clock_seconds": 120, "blockade_penalty": 9}
    asked = {"rules": rules, "seats": ["greedy", "racer", "random", "spread"]}
    match = ok(await client.post("/v1/matches", json=asked), 201)["match"]
    over = ok(await client.get(f"/v1/matches/{match['id']}?wait=30"))
    assert (over["status"], over["turn"]) == ("over", 12)
    assert (await record(client, match, tmp_path)).ruleset.blockade_penalty == 9
    asked["seats"] = ["human", "human", "policy:hard", "human"]
    error = refused(await client.post("/v1/matches", json=asked), 422)
    assert error["field"] == "seats[2]"


# --- Watching


async def test_events_are_the_record(served: Served, tmp_path: Path) -> None:
    client, _ = served
    _, match = await create(client, ["racer", "greedy", "spread", "random"])
    response = await client.get(f"/v1/matches/{match['id']}/events")
    assert response.headers["content-type"].startswith("text/event-stream")
    told = events(response.text)
    *turns, (last, end, _) = [each for each in told if each[0] != "due"]
    replay = await record(client, match, tmp_path)
    lines = (tmp_path / "record.jsonl").read_text().splitlines()
    assert [(name, data, number) for name, data, number in turns] == [
        ("turn", json.loads(line), str(number)) for number, line in enumerate(lines[1:-1])
    ]
    assert last == "end"
    assert end == ok(await client.get(f"/v1/matches/{match['id']}"))
    assert replay.header.seed == end["seed"]


async def test_events_go_on_where_one_was(served: Served) -> None:
    client, _ = served
    _, match = await create(client, ["racer"] * 4, clock_seconds=100)
    path = f"/v1/matches/{match['id']}/events"
    everything = events((await client.get(path)).text)
    numbers = [number for name, _, number in everything if name == "turn"]
    assert numbers == [str(number) for number in range(10)]
    late = events((await client.get(f"{path}?after=6")).text)
    assert [number for name, _, number in late if name == "turn"] == ["7", "8", "9"]
    again = events((await client.get(f"{path}?after=1", headers={"Last-Event-ID": "8"})).text)
    assert [name for name, _, _ in again] == ["turn", "end"]
    nothing = events((await client.get(f"{path}?after=9")).text)
    assert [name for name, _, _ in nothing] == ["end"]
    refused(await client.get(path, headers={"Last-Event-ID": "x"}), 422)


async def test_the_due_seat_is_told_as_it_happens(served: Served) -> None:
    client, service = served
    tokens, made = await create(client, ["human", "human", "racer", "racer"])
    match = await service.hosting.find(made["id"])
    stream = service.hosting.events(match, -1)
    name, data, number = await anext(stream)
    assert (name, number) == ("due", None)
    assert json.loads(data or "") == {"turn": 0, "due": made["due"]}
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    path = f"/v1/matches/{made['id']}/turns"
    body = PASS | {"turn": 0}
    answer = ok(await client.post(path, json=body, headers=bearer(tokens[0])))
    name, data, number = await waiting
    assert (name, json.loads(data or ""), number) == ("turn", answer["line"], 0)
    name, data, _ = await anext(stream)
    assert (name, json.loads(data or "")["due"]["seat"]) == ("due", 1)
    assert service.hosting.streams == 1
    await stream.aclose()  # type: ignore[attr-defined]
    assert service.hosting.streams == 0


async def test_a_silent_stream_shows_that_it_is_alive(tmp_path: Path) -> None:
    async with serving(tmp_path, ping_seconds=0.01, streams=1) as (client, service):
        _, made = await create(client, ["human"] * 4)
        match = await service.hosting.find(made["id"])
        stream = service.hosting.events(match, -1)
        assert [(await anext(stream))[1] is None for _ in range(3)] == [False, True, True]
        response = await client.get(f"/v1/matches/{made['id']}/events")
        refused(response, 429, "too_many")
        service.hosting.close_streams()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


async def test_waiting_ends(served: Served) -> None:
    client, _ = served
    _, match = await create(client, ["human", "racer", "racer", "racer"])
    async with asyncio.timeout(5):  # a human is to move: nothing to wait for
        ok(await client.get(f"/v1/matches/{match['id']}?wait=30"))
    _, match = await create(client, ["policy:hard@search:rollouts=1600"] + ["human"] * 3)
    async with asyncio.timeout(20):
        found = ok(await client.get(f"/v1/matches/{match['id']}?wait=0"))
        assert (found["turn"], found["due"]["kind"]) == (0, "agent")
        found = ok(await client.get(f"/v1/matches/{match['id']}?wait=30"))
        assert (found["turn"], found["due"]["kind"]) == (1, "human")
