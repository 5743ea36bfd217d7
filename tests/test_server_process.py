"""``retinue serve`` as a process: its address, its end, and what is left when it is killed."""

import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from retinue.envs.game import jit
from retinue.envs.game.record import verify_record
from serving import PASS, ok, position
from serving_process import LIMIT, running

NO_TORCH = """
import asyncio, sys
from pathlib import Path
import httpx
from retinue.agents.server import examples
from retinue.agents.server.app import create_app
from retinue.agents.server.service import Service
from retinue.agents.server.settings import Settings

async def ask():
    app = create_app(Service(Settings(Path("matches"))))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            for body in examples.decide_bodies().values():
                answer = await client.post("/v1/decide", json=body, timeout=100)
                answer.raise_for_status()

asyncio.run(ask())
print("heavy:", *sorted({"torch", "stable_baselines3", "matplotlib", "pandas"} & set(sys.modules)))
"""
COMPILED_LATE = """
import asyncio, sys
from pathlib import Path
import httpx
from numba.core.dispatcher import Dispatcher
from retinue.agents.server import examples
from retinue.agents.server.app import create_app
from retinue.agents.server.service import Service
from retinue.agents.server.settings import Settings

def compiled():
    modules = [each for name, each in sys.modules.items() if name.startswith("retinue.envs.game")]
    found = [each for module in modules for each in vars(module).values()]
    return {each: len(each.signatures) for each in found if isinstance(each, Dispatcher)}

async def ask():
    app = create_app(Service(Settings(Path("matches"))))
    before = compiled()
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            async def post(path, body, **headers):
                answer = await client.post(path, json=body, headers=headers)
                return answer.raise_for_status().json()
            for name in ("roll", "legal", "play"):
                for body in getattr(examples, f"{name}_bodies")().values():
                    played = await post(f"/v1/referee/{name}", body)
            rolled = {"mode": "journey", "state": played["line"]["after"], "seat": 1}
            await post("/v1/referee/roll", rolled)
            made = await post("/v1/matches", {"mode": "brawl", "seats": ["human"] * 4})
            path = f"/v1/matches/{made['match']['id']}/turns"
            turn = examples.turn_bodies()["the first turn"] | {"guards": [[], [], [], []]}
            await post(path, turn, authorization=f"Bearer {made['tokens'][0]}")
    print("late:", *[each.__name__ for each, count in compiled().items() if count > before[each]])

asyncio.run(ask())
"""
WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from retinue.cli import main
sys.exit(main(["serve", "--port", "0"]))
"""


def create(client: httpx.Client, seats: list[str]) -> tuple[Any, Any]:
    made = ok(client.post("/v1/matches", json={"mode": "journey", "seats": seats}), 201)
    return made["tokens"], made["match"]


def play(client: httpx.Client, match: Any, token: str) -> Any:
    """Pass a human seat's turn; return the line that was acknowledged and the match."""
    path = f"/v1/matches/{match['id']}/turns?wait=30"
    headers = {"Authorization": f"Bearer {token}"}
    return ok(client.post(path, json=PASS | {"turn": match["turn"]}, headers=headers))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_every_acknowledged_turn_is_there_after_a_kill(tmp_path: Path) -> None:
    seats = ["human", "racer", "policy:easy", "random"]
    lines: list[Any] = []
    with running(tmp_path) as service:
        (token, *_), match = create(service.client, seats)
        for _ in range(6):
            answer = play(service.client, match, token)
            lines.append(answer["line"])
            match = answer["match"]
        # The agents are at it, or about to be, when the process dies.
        path = f"/v1/matches/{match['id']}/turns"
        body, headers = PASS | {"turn": match["turn"]}, {"Authorization": f"Bearer {token}"}
        lines.append(ok(service.client.post(path, json=body, headers=headers))["line"])
        service.process.kill()
        service.process.wait(LIMIT)
    record = tmp_path / "matches" / f"{match['id']}.jsonl"
    there = {json.loads(line).get("turn"): line for line in record.read_text().splitlines()[1:]}
    for line in lines:
        assert json.loads(there[line["turn"]]) == line
    with running(tmp_path) as service:
        match = ok(service.client.get(f"/v1/matches/{match['id']}?wait=30"))
        assert (match["turn"], match["due"]["kind"]) == (28, "human")
        while match["status"] == "playing":
            match = play(service.client, match, token)["match"]
    replay = verify_record(record)
    assert replay.header.seed == match["seed"] is not None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_it_ends_when_it_is_told_to(tmp_path: Path, number: int) -> None:
    with running(tmp_path) as service:
        (token, *_), match = create(service.client, ["human", "racer", "racer", "racer"])
        told: list[str] = []
        begun = threading.Event()

        def watch() -> None:
            path = f"/v1/matches/{match['id']}/events"
            with httpx.stream("GET", f"{service.client.base_url}{path}", timeout=LIMIT) as stream:
                begun.set()
                told.extend(stream.iter_lines())

        watcher = threading.Thread(target=watch)
        watcher.start()
        assert begun.wait(LIMIT)
        match = play(service.client, match, token)["match"]
        code, out, err = service.end(number)
        watcher.join(LIMIT)
        assert (code, out) == (0, "retinue: ended; all matches are on disk\n")
        assert [line for line in err.splitlines() if not line.startswith("retinue: compil")] == []
        # Live: every turn as it was played, and the stream ended with the service.
        assert [line for line in told if line.startswith("id:")] == [f"id: {n}" for n in range(4)]
    assert sum(1 for _ in verify_record(tmp_path / "matches" / f"{match['id']}.jsonl")) == 4


def test_a_client_that_leaves_disturbs_nobody(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        asked = json.dumps(position(9)[0] | {"agent": "policy:hard"}).encode()
        host, port = service.client.base_url.host, service.client.base_url.port
        for _ in range(10):
            with socket.create_connection((host, port)) as connection:
                head = f"POST /v1/decide HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json"
                connection.sendall(
                    f"{head}\r\nContent-Length: {len(asked)}\r\n\r\n".encode() + asked
                )
        with socket.create_connection((host, port)) as connection:
            connection.sendall(b"\x00\xff nonsense\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
        ok(
            service.client.post(
                "/v1/decide", content=asked, headers={"Content-Type": "application/json"}
            )
        )
        code, _, err = service.end(signal.SIGTERM)
        assert code == 0
        assert "Traceback" not in err


def command(tmp_path: Path, *words: str) -> tuple[int, str]:
    """Run a command that refuses to serve; return its exit code and its one line."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert done.stdout == ""
    return done.returncode, line


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, line = command(tmp_path, "-m", "retinue.cli", "serve", "--port", port)
    assert code == 2
    assert line.startswith(f"retinue: cannot listen at 127.0.0.1, port {port}: Address already in")
    assert line.endswith("choose another with --port (0 takes any that is free)")


@pytest.mark.parametrize("library", ["fastapi", "uvicorn", "prometheus_client", "filelock"])
def test_without_the_extra(tmp_path: Path, library: str) -> None:
    code, line = command(tmp_path, "-c", WITHOUT, library)
    assert code == 2
    assert line == (
        f"retinue: serving needs libraries that are not installed ({library}): "
        "pip install retinue[serve]"
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--agent", "mine"), "--agent mine: give NAME=AGENT, e.g. mine=policy:mine.onnx"),
        (("--agent", "a=racer", "--agent", "a=spread"), "a is given twice"),
        (("--agent", "mine=policy:none.onnx"), "none.onnx: No such file or directory"),
        (("--agent", "racer=spread"), "agent 'racer': an own name begins with a letter"),
        (("--agent", "human=spread"), "agent 'human': an own name begins with a letter"),
        (("--agent", "a/b=spread"), "agent 'a/b': an own name begins with a letter"),
        (("--matches", "/dev/null"), "/dev/null: cannot keep matches"),
        (("--host", "256.1.1.1"), "256.1.1.1: "),
        (("--threads", "1000"), "--threads must be 1 to "),
    ],
)
def test_settings_that_do_not_do(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    code, line = command(tmp_path, "-m", "retinue.cli", "serve", "--port", "0", *words)
    assert code == 2
    assert told in line


@pytest.mark.skipif(not jit.ENABLED, reason="nothing is compiled")
@pytest.mark.parametrize(
    ("program", "printed"), [(NO_TORCH, "heavy:\n"), (COMPILED_LATE, "late:\n")]
)
def test_what_is_loaded_and_compiled(tmp_path: Path, program: str, printed: str) -> None:
    """No torch to decide, and nothing that the event loop itself calls while it answers."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
