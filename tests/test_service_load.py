"""The load test of the service, on a small scale: it measures what it says."""

import json
import socket
from pathlib import Path

import pytest

from positions import BRAWL, JOURNEY
from retinue import cli
from retinue.agents.server.bodies import parse
from retinue.agents.server.positions import position_of
from retinue.agents.server.schemas import DecideRequest
from retinue.evaluation.service_load import LoadError, measure_load, request_bodies
from serving_process import Running, running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> object:
    with running(tmp_path_factory.mktemp("served")) as found:
        yield found


def test_positions_are_real_and_differ() -> None:
    bodies = request_bodies(BRAWL, "racer", 300)
    assert len(set(bodies)) > 280
    positions = [position_of(parse(body, DecideRequest)) for body in bodies]
    assert all(ruleset is BRAWL for _, ruleset in positions)
    assert len({int(game["turn"]) for game, _ in positions}) > 100


def test_a_service_under_load(service: Running) -> None:
    load = measure_load(str(service.client.base_url), "racer", JOURNEY, 8, 1.5)
    asked = 'retinue_requests_total{method="POST",path="/v1/decide",status="200"} '
    text = service.client.get("/metrics").text
    counted = float(text.split(asked)[1].split("\n")[0])
    assert len(load.delays) + 1 == counted > 50
    assert 0 < load.delays.min() <= load.delays.max() < load.seconds < 10
    assert load.rate == pytest.approx(len(load.delays) / load.seconds)
    assert len(load.health) >= 3
    assert "8 clients" in str(load)


def test_the_command(service: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, out = str(service.client.base_url), tmp_path / "load.json"
    words = ["--agent", "greedy", "--clients", "4", "--seconds", "1", "--json", str(out)]
    assert cli.main(["bench-serve", url, *words]) == 0
    figures = json.loads(out.read_text())
    assert f"{figures['decisions_per_second']:,.0f} decisions/s" in capsys.readouterr().out
    assert figures["median_ms"] <= figures["p99_ms"]


def test_what_cannot_be_asked(service: Running, capsys: pytest.CaptureFixture[str]) -> None:
    url = str(service.client.base_url)
    with pytest.raises(LoadError, match=r"^422: .*there is no agent .nobody"):
        measure_load(url, "nobody", JOURNEY, 2, 1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for address in (f"http://127.0.0.1:{port}", "https://127.0.0.1", "nonsense"):
        assert cli.main(["bench-serve", address, "--agent", "racer"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"retinue: {address}: ")
