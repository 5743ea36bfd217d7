"""``retinue tune``: the file it writes, how it is gone on with, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from positions import JOURNEY, changed
from retinue import cli
from retinue.agents.registry import make_agent
from retinue.envs.game import jit
from retinue.envs.parallel import MAX_THREADS
from retinue.evaluation.arena import play_matches
from retinue.training import tune

pytestmark = pytest.mark.skipif(not jit.ENABLED, reason="plays whole matches")

SHORT = changed(JOURNEY, clock_seconds=300)


@pytest.fixture
def rule_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rule file of short matches, in the folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    Path("short.yaml").write_text(json.dumps(SHORT.model_dump(mode="json")))
    return Path("short.yaml")


def command(*more: str) -> int:
    words = ("--rules", "short.yaml", "--population", "4", "--blocks", "1", "--candidates", "8")
    return cli.main(["tune", *words, *more])


def test_the_command_writes_a_strategy(rule_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--generations", "2", "--out", "mine.yaml", "--seed", "3") == 0
    generations = capsys.readouterr().out.splitlines()
    assert generations[0].startswith("generation 1: ")
    assert generations[1].startswith("generation 2: ")
    assert generations[2].startswith("mine.yaml: ")
    assert "first places against three of greedy (par 25%)" in generations[2]
    first = Path("mine.yaml").read_text().splitlines()[0]
    assert first == (
        "# retinue tune --mode journey --start greedy --generations 2 --candidates 8 "
        "--population 4 --blocks 1 --seed 3 --out mine.yaml --rules short.yaml"
    )
    make_agent("strategy:file=mine.yaml", SHORT)
    more = ("--generations", "3", "--out", "mine.yaml", "--seed", "3", "--resume")
    assert command(*more) == 0
    assert capsys.readouterr().out.startswith("generation 3: ")


def test_an_interrupted_command_says_how_to_go_on(
    rule_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = iter([play_matches])

    def interrupt(*args: Any, **options: Any) -> Any:
        if (played := next(calls, None)) is None:
            raise KeyboardInterrupt
        return played(*args, **options)

    monkeypatch.setattr(tune, "play_matches", interrupt)
    assert command("--generations", "2", "--out", "mine.yaml") == 130
    err = capsys.readouterr().err.splitlines()[-1]
    again = err.removeprefix("retinue: interrupted; go on with: retinue ")
    assert again.endswith("--out mine.yaml --rules short.yaml --resume")
    assert not Path("mine.yaml").exists()
    monkeypatch.setattr(tune, "play_matches", play_matches)
    assert cli.main(again.split()) == 0
    assert capsys.readouterr().out.startswith("generation 2: ")
    assert Path("mine.yaml").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--start", "gredy"), "unknown strategy 'gredy': use a .yaml file or one of: backward, "),
        (("--start", "no.yaml"), "no.yaml: No such file or directory"),
        (("--candidates", "129"), "candidates must be 2 to 128, not 129"),
        (("--generations", "0"), "Invalid value for '--generations'"),
        (("--mode", "brawl"), "Invalid value: short.yaml is a journey rule file, but --mode"),
        (("--threads", "999"), f"threads must be 1 to {MAX_THREADS} here, not 999"),
        (("--resume",), "mine.yaml.checkpoint: there is nothing to go on from"),
        (("--out", "no/mine.yaml"), "no/mine.yaml: there is no folder no"),
        (("--start", "other.yaml"), "other.yaml has no weights for journey to start from"),
    ],
)
def test_bad_commands_are_refused(
    words: tuple[str, ...],
    message: str,
    rule_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("other.yaml").write_text("description: other\nbrawl: {margin: 1}\n")
    assert command("--out", "mine.yaml", *words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"retinue: {message}")
    assert err.count("\n") == 1
    assert not Path("mine.yaml").exists()
