"""Hostile requests: each is refused in words, by a status from 400 to 499, and opens nothing."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from retinue.agents.server import examples
from serving import JSON, ok, position, refused, serving

pytestmark = pytest.mark.anyio
LIMIT = 100_000
BATCH = 100
ASKED = examples.decide_bodies()["a strategy"]
TEXT = json.dumps(ASKED)


def with_seat(text: str) -> bytes:
    """A body in which something else stands for the seat."""
    changed = TEXT.replace('"seat": 0', f'"seat": {text}')
    assert changed != TEXT
    return changed.encode()


BODIES = {
    "nothing": b"",
    "no JSON": b"seat=0",
    "null": b"null",
    "a list": b"[]",
    "a number": b"1e400",
    "cut short": TEXT[:-1].encode(),
    "more after it": TEXT.encode() + b"{}",
    "NaN": with_seat("NaN"),
    "Infinity": with_seat("-Infinity"),
    "out of range": with_seat("1e999"),
    "a fraction": with_seat("0.0"),
    "a truth value": with_seat("false"),
    "a text": with_seat('"0"'),
    "null inside": with_seat("null"),
    "a huge number": with_seat("9" * 300),
    "a huger one": with_seat("9" * 5000),
    "a huge clock": TEXT.replace("1800", "9" * 300).encode(),
    "deep lists": b"[" * 90_000,
    "deep objects": b'{"a":' * 15_000,
    "deep inside": with_seat("[" * 9000 + "]" * 9000),
    "half a character": TEXT.replace("tactician", "\\ud800").encode(),
    "half a character as a key": b'{"\\udc00": 1}',
    "a control character": TEXT.replace("tactician", "\\u0000").encode(),
    "a bare control character": TEXT.replace("tactician", "\x00").encode(),
    "no UTF-8": TEXT.encode().replace(b"tactician", b"\xff\xfe"),
    "UTF-16": TEXT.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "a key twice": b'{"mode": "brawl", ' + TEXT.encode()[1:],
    "a key twice inside": TEXT.replace('"clock', '"combat": [0, 0, 0, 0], "clock').encode(),
    "a comment": TEXT.encode() + b"// hello",
}


_watching: list[list[str]] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        for files in _watching:
            files.append(str(arguments[0]))


sys.addaudithook(_watch)  # there is no way to take one away


@contextlib.contextmanager
def opened() -> Iterator[list[str]]:
    """The files that this process opens inside."""
    _watching.append([])
    try:
        yield _watching[-1]
    finally:
        _watching.pop()


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    limits: dict[str, Any] = {"body_bytes": LIMIT, "body_seconds": 0.3, "batch": BATCH}
    async with serving(tmp_path_factory.mktemp("matches"), **limits) as (found, _):
        for path in ("/v1/decide", "/v1/matches"):  # FastAPI reads its operations' source once
            await found.post(path)
        yield found


async def test_the_body_that_the_others_spoil(client: httpx.AsyncClient) -> None:
    ok(await client.post("/v1/decide", content=TEXT, headers=JSON))
    headers = {"Content-Type": 'Application/JSON; charset="UTF-8"'}
    ok(await client.post("/v1/decide", content=TEXT, headers=headers))


@pytest.mark.parametrize("content", BODIES.values(), ids=BODIES.keys())
async def test_bodies(client: httpx.AsyncClient, content: bytes) -> None:
    error = refused(await client.post("/v1/decide", content=content, headers=JSON), 422, "invalid")
    assert 5 < len(error["reason"]) < 500


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=latin-1",
        "application/jsonx",
        "application/json, text/plain",
    ],
)
async def test_content_types(client: httpx.AsyncClient, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    response = await client.post("/v1/decide", content=TEXT.encode(), headers=headers)
    refused(response, 415, "unsupported_media_type")


async def test_bodies_that_are_too_large(client: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(LIMIT // 1000 + 1):
            yield b" " * 1000

    for content in (b" " * (LIMIT + 1), pieces()):
        response = await client.post("/v1/decide", content=content, headers=JSON)
        assert "100,000 bytes" in refused(response, 413, "too_large")["reason"]
    response = await client.post("/v1/decide", content=b" " * LIMIT, headers=JSON)
    refused(response, 422)


async def test_bodies_that_do_not_come(client: httpx.AsyncClient) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(30)

    response = await client.post("/v1/decide", content=slow(), headers=JSON)
    assert "within 0.3 seconds" in refused(response, 408, "timeout")["reason"]


async def test_batches_that_are_too_large(client: httpx.AsyncClient) -> None:
    async def ask(count: int) -> httpx.Response:
        content = json.dumps({"decisions": [ASKED] * count}, separators=(",", ":"))
        assert len(content) < LIMIT
        return await client.post("/v1/decide/batch", content=content, headers=JSON)

    assert len(ok(await ask(BATCH))["decisions"]) == BATCH
    error = refused(await ask(BATCH + 1), 413, "too_large")
    assert (error["field"], "at most 100 at once" in error["reason"]) == ("decisions", True)
    assert refused(await ask(0), 422)["field"] == "decisions"


@pytest.mark.parametrize(
    "agent",
    [
        "nobody",
        "strategy",
        "strategy:file=SECRET",
        "strategy:candidates=4,file=SECRET",
        "policy",
        "policy:",
        "policy:SECRET",
        "policy:./hard",
        "policy:hard/",
        "policy:hard@",
        "policy:hard@@search",
        "policy:SECRET@search",
        "policy:hard@search:time=5",
        "policy:hard@search:threads=64",
        "policy:hard@search:rollouts=1601",
        "policy:hard@search:opponents=SECRET",
        "policy:hard@search:opponents=strategy:file=SECRET",
        "policy:hard@lookahead:top=100",
        "policy:hard@lookahead:opponents=policy:SECRET",
        "search:base=strategy:file=SECRET",
        "search:time=1",
        "search:base=search",
        "tactician:random=true",
        "tactician:candidates=129",
        "tactician:candidates=" + "9" * 150,
        "tactician:candidates=8,candidates=9",
        "tactician:",
        "random:x",
        "SECRET:Bot",
        "os:system",
        "http://127.0.0.1/x.onnx",
        "x" * 201,
        " tactician",
        "tactician\n",
    ],
)
async def test_only_listed_agents_are_asked_and_no_file_is_opened(
    client: httpx.AsyncClient, agent: str, tmp_path: Any
) -> None:
    secret = tmp_path / "bot.py"
    secret.write_text("raise SystemExit")
    asked = position(3)[0] | {"agent": agent.replace("SECRET", str(secret))}
    seats = {"mode": "journey", "seats": ["racer"] * 3 + [asked["agent"]]}
    with opened() as files:
        error = refused(await client.post("/v1/decide", json=asked), 422, "invalid")
        other = refused(await client.post("/v1/matches", json=seats), 422, "invalid")
    assert (error["field"], other["field"]) == ("agent", "seats[3]")
    assert not files


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/matches/0", 422),
        ("GET", "/v1/matches/" + "0" * 32, 404),
        ("GET", "/v1/matches/" + "0" * 32 + "/record", 404),
        ("GET", "/v1/matches/" + "0" * 32 + "/events", 404),
        ("GET", "/v1/matches/" + "0" * 32 + "?wait=31", 422),
        ("GET", "/v1/matches/..%2f..%2fpyproject.toml", 404),
        ("GET", "/..%2f..%2f..%2fpyproject.toml", 404),
        ("GET", "/%2e%2e/app.py", 404),
        ("GET", "/%00", 404),
        ("GET", "/v1/board?home_path_tiles=21", 422),
        ("GET", "/v1/board?home_path_tiles=many", 422),
        ("GET", "/v2/agents", 404),
        ("PUT", "/v1/decide", 405),
        ("POST", "/v1/agents", 405),
        ("DELETE", "/v1/matches/" + "0" * 32, 405),
        ("POST", "/", 405),
        ("GET", "/v1/decide", 405),
        ("GET", "/v1/referee/play", 405),
    ],
)
async def test_paths(client: httpx.AsyncClient, method: str, path: str, status: int) -> None:
    response = await client.request(method, path)
    refused(response, status)
    assert status != 405 or response.headers["allow"]


async def test_headers_of_every_answer(client: httpx.AsyncClient) -> None:
    for path in ("/", "/health", "/v1/agents", "/nothing"):
        headers = (await client.get(path)).headers
        assert "script-src 'self';" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == ("no-cache" if path == "/" else "no-store")
    page = await client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    again = await client.get("/", headers={"If-None-Match": page.headers["etag"]})
    assert again.status_code == 304


async def test_files_that_are_opened_are_noticed(tmp_path: Any) -> None:
    with opened() as files:
        (tmp_path / "x").write_text("")
    assert files == [str(tmp_path / "x")]


async def test_only_named_pages_may_ask_from_elsewhere(tmp_path: Any) -> None:
    origin = {"Origin": "https://game.example"}
    async with serving(tmp_path, origins=("https://game.example",)) as (client, _):
        allowed = "access-control-allow-origin"
        found = await client.get("/v1/agents", headers=origin)
        assert found.headers[allowed] == "https://game.example"
        found = await client.get("/v1/agents", headers={"Origin": "https://other.example"})
        assert allowed not in found.headers
        asks = origin | {"Access-Control-Request-Method": "POST"}
        asks["Access-Control-Request-Headers"] = "content-type,authorization"
        assert (await client.options("/v1/decide", headers=asks)).status_code == 200
