"""``docs/server.md`` is true: its examples are sent as they stand, and its limits hold."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retinue.agents.server.problems import CODES, ILLEGAL_TURN
from retinue.agents.server.settings import HOUR, Settings
from retinue.envs.game.record import verify_record
from serving import ok
from serving_process import LIMIT, Running, running

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8765"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("served")) as found:
        yield found


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def commands(word: str) -> list[str]:
    """The commands of the page that begin with a word, continued lines included."""
    text = "".join(blocks("console")).replace("\\\n", "")
    found = re.findall(r"^\$ (.*(?:\n(?!\$).*)*)", text, re.MULTILINE)
    return [each for each in found if each.startswith(f"{word} ")]


def run(command: str, folder: Path, url: str, **variables: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command.replace(ADDRESS, url)],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


def url_of(service: Running) -> str:
    return str(service.client.base_url).rstrip("/")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no bash")
def test_the_commands(service: Running, tmp_path: Path) -> None:
    (position,) = blocks("json")
    (tmp_path / "position.json").write_text(position)
    decide, create, look, play, record, events = commands("curl")
    decision = json.loads(run(decide, tmp_path, url_of(service)))
    assert len(decision["explanation"]["alternatives"]) in (2, 3)
    made = json.loads(run(create, tmp_path, url_of(service)))
    names = {"ID": made["match"]["id"], "TOKEN": made["tokens"][0]}
    assert json.loads(run(look, tmp_path, url_of(service), **names)) == made["match"]
    played = json.loads(run(play, tmp_path, url_of(service), **names))
    assert played["match"]["turn"] == 4
    assert run(record, tmp_path, url_of(service), **names) == ""
    assert sum(1 for _ in verify_record(tmp_path / "match.jsonl")) == 4
    assert run(events, tmp_path, url_of(service), **names).count("event: turn") == 4


def test_the_program_plays_a_match(service: Running, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks("python")
    assert len(program.splitlines()) <= 35
    exec(compile(program.replace(ADDRESS, url_of(service)), "server.md", "exec"), {})
    assert "'reason': 'clock'" in capsys.readouterr().out


def test_every_operation_is_described(service: Running) -> None:
    paths = ok(service.client.get("/openapi.json"))["paths"]
    text = PAGE.replace("/ID", "/{match_id}").replace("/MODE", "/{mode}")
    assert [path for path in paths if path not in text] == []


def test_codes_and_limits() -> None:
    codes = {*CODES.values(), ILLEGAL_TURN} - {"internal"}
    assert [code for code in sorted(codes) if f"`{code}`" not in PAGE] == []
    settings: Any = Settings(Path())
    for words in (
        f"more than {settings.body_seconds:.0f} seconds",
        f"more than {settings.body_bytes >> 20} MiB",
        f"more than {settings.batch} positions or {settings.explained:,} alternatives",
        f"{settings.in_flight:,} requests, {settings.streams:,} streams, {settings.waiting:,} "
        f"waiting positions ({settings.waiting_long} of those that take long), "
        f"{settings.matches:,} matches",
        f"for {settings.idle_seconds / HOUR:.0f} hours (`--idle`)",
        f"the newest {settings.kept:,} are kept",
        f"at most {settings.longest_wait}, answers once",
    ):
        assert words in PAGE, words


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / link).exists(), link
