"""What the page on frontends says over HTTP, and the JavaScript example against the service."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from javascript import VECTORS, copy_example, node, run_script
from retinue.envs import document
from retinue.envs.game import jit
from retinue.envs.game.record import verify_record

PAGE = Path(__file__).resolve().parents[1] / "docs" / document.FRONTENDS
DEFAULT = "http://127.0.0.1:8765"
START, LIMIT = 300, 300

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not jit.ENABLED, reason="too much for plain Python"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service of its own."""
    folder = tmp_path_factory.mktemp("service")
    log = folder / "log.txt"
    command = [sys.executable, "-m", "retinue.cli", "serve", "--port", "0"]
    with log.open("w") as file:
        process = subprocess.Popen(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + START
        while not (found := re.search(r"(http://\S+:\d+) serves", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, "the service did not start"
            time.sleep(0.1)
        yield found[1]
    finally:
        process.terminate()
        process.wait(60)


def program(language: str, service: str) -> str:
    """Return the page's program in a language, for the address of a service."""
    text = PAGE.read_text(encoding="utf-8")
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found.count(DEFAULT) == 1
    return str(found.replace(DEFAULT, service))


def run(folder: Path, *words: str) -> str:
    """Run a program and return what it printed."""
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_python_program_plays_a_match(service: str, tmp_path: Path) -> None:
    (tmp_path / "play.py").write_text(program("python", service))
    out = run(tmp_path, sys.executable, "-W", "error", "play.py")
    found = verify_record(tmp_path / "match.jsonl")
    assert found.result is not None
    assert out == f"totals {list(found.result.totals)}\n"
    assert found.header.agents == ("human", "greedy", "racer", "policy:easy")
    assert found.header.seed is not None


def test_the_javascript_program_plays_a_match(service: str, tmp_path: Path) -> None:
    (tmp_path / "play.mjs").write_text(program("javascript", service))
    out = run(tmp_path, node(), "play.mjs")
    places = [int(place) for place in re.findall(r"\d", out)]
    assert out.startswith("places [ ")
    assert min(places) == 1
    assert len(places) == 4


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="needs curl")
def test_the_requests_by_curl(service: str, tmp_path: Path) -> None:
    (tmp_path / "ask.sh").write_text(program("bash", service))
    out = run(tmp_path, "bash", "-euo", "pipefail", "ask.sh")
    assert '"policy:hard"' in out
    # The turn that is chosen is told of even if it is none of the three likeliest.
    assert len(re.findall(r'"probability": ?[\d.]+', out)) in {3, 4}
    assert len(re.findall(r'"chosen": ?true', out)) == 1
    found = verify_record(tmp_path / "brawl.jsonl")
    assert found.result is not None
    assert found.header.agents == ("racer", "greedy", "policy:easy", "random")


@pytest.mark.parametrize(("mode", "seat"), [("journey", 0), ("brawl", 2)])
def test_the_example_plays_a_match(service: str, tmp_path: Path, mode: str, seat: int) -> None:
    """It checks each state that the service reports with rules of its own, and the dice."""
    example = copy_example(tmp_path / "examples")
    shutil.copytree(VECTORS, tmp_path / "vectors")  # as beside it in the documentation
    done = run_script(
        example,
        *("play.mjs", "--url", service, "--mode", mode, "--seat", str(seat)),
        *("--opponents", "racer,greedy,random"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, *rows = done.stdout.splitlines()
    turns, own = re.fullmatch(  # type: ignore[union-attr]
        rf"(\d+) turns, (\d+) of them by turn in seat {seat}; (?:clock|finished)", first
    ).groups()
    assert 1 < int(own) < int(turns)
    names = ["racer", "greedy", "random"]
    names.insert(seat, "human")
    assert [re.fullmatch(r"[1-4]\. (.*): -?\d+ points", row)[1] for row in rows] == names  # type: ignore[index]


def test_the_example_says_why_it_is_refused(service: str, tmp_path: Path) -> None:
    example = copy_example(tmp_path)
    policy = VECTORS / "policy-journey-turn.onnx"
    done = run_script(
        example,
        *("play.mjs", "--url", service, "--policy", policy, "--opponents", "nobody,racer,racer"),
    )
    assert done.returncode == 1
    assert re.fullmatch(r"/v1/matches: 422, seats\[1\]: .*nobody.*\n", done.stderr)
