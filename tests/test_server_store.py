"""Hosted matches on disk: whatever was acknowledged is there again, and secrets stay secret."""

import asyncio
import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from retinue.agents.server.store import Store, StoreError
from retinue.envs.game.record import verify_record
from serving import PASS, Plain, ok, refused, serving
from test_server_matches import bearer, create, play_out

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def begun(client: httpx.AsyncClient, turns: int, seats: Any = ("human",) * 4) -> Any:
    """A match of which some turns were played, and its tokens."""
    tokens, match = await create(client, list(seats))
    for number in range(turns):
        token = tokens[match["due"]["seat"]]
        path = f"/v1/matches/{match['id']}/turns?wait=20"
        body = PASS | {"turn": number}
        match = ok(await client.post(path, json=body, headers=bearer(token)))["match"]
    return tokens, match


def files(folder: Path, match: Plain) -> tuple[Path, Path]:
    """The record and the secret of a match."""
    return folder / f"{match['id']}.jsonl", folder / f"{match['id']}.secret"


async def test_a_match_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as (client, _):
        tokens, match = await begun(client, 7)
        path = f"/v1/matches/{match['id']}"
        before = ok(await client.get(path))
    async with serving(tmp_path) as (client, service):
        assert service.hosting.playing == 1
        assert ok(await client.get(path)) == before, "the same dice, the same turn due"
        body = PASS | {"turn": 7}
        refused(await client.post(f"{path}/turns", json=body, headers=bearer(tokens[0])), 403)
        ok(await client.post(f"{path}/turns", json=body, headers=bearer(tokens[3])))
        over = await play_on(client, tokens, path)
    verify_record(files(tmp_path, match)[0])
    assert over["seed"] is not None


async def play_on(client: httpx.AsyncClient, tokens: list[str], path: str) -> Plain:
    """Pass until the match is over."""
    match = ok(await client.get(path))
    while match["status"] == "playing":
        token = tokens[match["due"]["seat"]]
        body = PASS | {"turn": match["turn"]}
        answer = await client.post(f"{path}/turns?wait=20", json=body, headers=bearer(token))
        match = ok(answer)["match"]
    return dict(match)


async def test_agents_play_the_same_after_a_restart(tmp_path: Path) -> None:
    """Their chance is the match's own, so nothing that was in memory matters."""
    async with serving(tmp_path / "a") as (client, _):
        tokens, match = await begun(client, 0, ("human", "random", "random", "random"))
    record, secret = files(tmp_path / "a", match)
    (tmp_path / "b").mkdir()
    for each in (record, secret):
        (tmp_path / "b" / each.name).write_bytes(each.read_bytes())
    ends = []
    for folder in ("a", "b"):
        async with serving(tmp_path / folder) as (client, _):
            ends.append(await play_out(client, match, tokens[0]))
    assert ends[0] == ends[1]


async def test_what_is_secret_is_kept_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as (client, _):
        tokens, match = await begun(client, 3)
        record, secret = files(tmp_path, match)
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        kept = json.loads(secret.read_text())
        for text in (record.read_text(), secret.read_text()):
            assert not any(token in text for token in tokens)
        assert json.loads(record.read_text().splitlines()[0])["seed"] is None
        answers = [
            (await client.get(f"/v1/matches/{match['id']}{path}")).text
            for path in ("", "/record", "/rules")
        ]
        assert not any(str(kept["seed"]) in text for text in answers)


@pytest.mark.parametrize("torn", [b'{"turn": 3, "seat"', b"{", b'{"turn": 3}' + b" " * 4096])
async def test_a_line_that_was_not_wholly_written_goes(tmp_path: Path, torn: bytes) -> None:
    async with serving(tmp_path) as (client, _):
        _, match = await begun(client, 3)
        before = ok(await client.get(f"/v1/matches/{match['id']}"))
    record, _ = files(tmp_path, match)
    whole = record.read_bytes()
    record.write_bytes(whole + torn)
    async with serving(tmp_path) as (client, _):
        assert ok(await client.get(f"/v1/matches/{match['id']}")) == before
        assert record.read_bytes() == whole


@pytest.mark.parametrize("step", ["no result", "no seed", "secret left"])
async def test_an_end_that_was_interrupted_is_finished(tmp_path: Path, step: str) -> None:
    async with serving(tmp_path) as (client, _):
        tokens, match = await begun(client, 0, ("human", "racer", "racer", "racer"))
        record, secret = files(tmp_path, match)
        kept = secret.read_bytes()
        over = await play_out(client, match, tokens[0])
    header, *lines = record.read_text().splitlines()
    if step != "secret left":
        header = json.dumps(json.loads(header) | {"seed": None})
    if step == "no result":
        lines.pop()
    record.write_text("".join(f"{line}\n" for line in (header, *lines)))
    secret.write_bytes(kept)
    async with serving(tmp_path) as (client, service):
        assert service.hosting.playing == 1
        assert ok(await client.get(f"/v1/matches/{match['id']}?wait=20")) == over
        assert not secret.exists()
        assert service.hosting.playing == 0
    replay = verify_record(record)
    assert (replay.header.seed, replay.result is None) == (over["seed"], False)


async def test_a_damaged_record_is_not_played_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as (client, _):
        _, match = await begun(client, 3)
    record, _ = files(tmp_path, match)
    record.write_text(record.read_text().replace('"turn": 1,', '"turn": 2,'))
    async with serving(tmp_path) as (client, _):
        response = await client.get(f"/v1/matches/{match['id']}")
        assert str(tmp_path) not in refused(response, 503, "unavailable")["reason"]
    assert "line 3: turn is 2, but replaying gives 1" in caplog.text


async def test_a_turn_that_cannot_be_kept_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as (client, _):
        tokens, match = await begun(client, 2)
        path = f"/v1/matches/{match['id']}"
        record, _ = files(tmp_path, match)
        before = record.read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", _full)
            body = PASS | {"turn": 2}
            response = await client.post(f"{path}/turns", json=body, headers=bearer(tokens[2]))
            refused(response, 503, "unavailable")
            asked = {"mode": "journey", "seats": ["human"] * 4}
            refused(await client.post("/v1/matches", json=asked), 503)
        assert record.read_bytes() == before
        assert len(list(tmp_path.glob("*.secret"))) == 1
        assert ok(await client.get(path)) == match
        ok(await client.post(f"{path}/turns", json=body, headers=bearer(tokens[2])))


def _full(descriptor: int) -> None:
    raise OSError(28, "No space left on device")


async def test_one_service_to_a_folder(tmp_path: Path) -> None:
    async with serving(tmp_path):
        with pytest.raises(StoreError, match="another service keeps its matches there"):
            Store(tmp_path)
    Store(tmp_path).close()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot keep matches"):
        Store(tmp_path / "file")


# --- What expires


async def aged(folder: Path, match: Plain, seconds: float) -> None:
    record, _ = files(folder, match)
    then = time.time() - seconds
    os.utime(record, (then, then))


async def test_idle_matches_expire(tmp_path: Path) -> None:
    async with serving(tmp_path) as (client, _):
        tokens, match = await begun(client, 5)
        _, fresh = await begun(client, 5)
    await aged(tmp_path, match, 25 * 3600)
    async with serving(tmp_path) as (client, service):
        await service.hosting.sweep()
        path = f"/v1/matches/{match['id']}"
        found = ok(await client.get(path))
        assert (found["status"], found["due"], found["result"]) == ("expired", None, None)
        body = PASS | {"turn": 5}
        response = await client.post(f"{path}/turns", json=body, headers=bearer(tokens[1]))
        refused(response, 410, "expired")
        record, secret = files(tmp_path, match)
        assert not secret.exists()
        replay = verify_record(record)
        assert replay.header.seed == found["seed"] is not None
        assert len(list(replay)) == 5
        assert "event: end" in (await client.get(f"{path}/events")).text
        assert ok(await client.get(f"/v1/matches/{fresh['id']}"))["status"] == "playing"
        assert service.hosting.playing == 1


async def test_a_match_that_is_played_does_not_expire(tmp_path: Path) -> None:
    async with serving(tmp_path, idle_seconds=1.0) as (client, service):
        tokens, match = await begun(client, 1)
        await asyncio.sleep(0.7)
        path = f"/v1/matches/{match['id']}"
        body = PASS | {"turn": 1}
        ok(await client.post(f"{path}/turns", json=body, headers=bearer(tokens[1])))
        await asyncio.sleep(0.7)
        await service.hosting.sweep()
        assert ok(await client.get(path))["status"] == "playing"
        await asyncio.sleep(0.5)
        await service.hosting.sweep()
        assert ok(await client.get(path))["status"] == "expired"


async def test_limits_on_matches(tmp_path: Path) -> None:
    asked = {"mode": "journey", "seats": ["human"] * 4}
    async with serving(tmp_path, matches=2) as (client, _):
        for _ in range(2):
            ok(await client.post("/v1/matches", json=asked), 201)
        refused(await client.post("/v1/matches", json=asked), 429, "too_many")
    async with serving(tmp_path, matches=2, idle_seconds=0.0) as (client, service):
        await service.hosting.sweep()
        ok(await client.post("/v1/matches", json=asked), 201)


async def test_the_oldest_records_go(tmp_path: Path) -> None:
    foreign = tmp_path / "match-000001.jsonl"
    foreign.write_text("somebody's own")
    async with serving(tmp_path, kept=2) as (client, service):
        _, playing = await begun(client, 1)
        await aged(tmp_path, playing, 3600)
        ended = []
        for age in (400, 100, 300, 200):
            _, match = await create(client, ["racer"] * 4, clock_seconds=40)
            ok(await client.get(f"/v1/matches/{match['id']}?wait=20"))
            await aged(tmp_path, match, age)
            ended.append(match)
        await service.hosting.sweep()
        there = [files(tmp_path, match)[0].exists() for match in ended]
        assert there == [False, True, False, True]
        assert files(tmp_path, playing)[0].exists()
        assert foreign.exists()


async def test_matches_leave_the_memory_and_come_back(tmp_path: Path) -> None:
    async with serving(tmp_path, rest_seconds=0.0) as (client, service):
        _, match = await begun(client, 4)
        held = await service.hosting.find(match["id"])
        await service.hosting.sweep()
        found = ok(await client.get(f"/v1/matches/{match['id']}"))
        assert found == match
        assert await service.hosting.find(match["id"]) is not held


@pytest.mark.slow
async def test_a_thousand_matches_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as (client, service):
        asked = {"mode": "journey", "seats": ["human", "racer", "greedy", "spread"]}
        made = []
        for _ in range(20):
            some = [client.post("/v1/matches", json=asked) for _ in range(50)]
            made += [ok(each, 201) for each in await asyncio.gather(*some)]
        assert service.hosting.playing == 1000

        async def play(each: Plain) -> Plain:
            path = f"/v1/matches/{each['match']['id']}/turns?wait=30"
            body, headers = PASS | {"turn": 0}, bearer(each["tokens"][0])
            return dict(ok(await client.post(path, json=body, headers=headers))["match"])

        found = await asyncio.gather(*map(play, made))
        assert {(each["turn"], each["due"]["kind"]) for each in found} == {(4, "human")}
        ok(await client.get("/health"))
