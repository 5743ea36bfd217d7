"""The README is true: its program runs, its commands do too, and its links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest

from retinue import cli
from retinue.envs.game import jit

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SMALL = (
    *("environments=16", "decisions=512", "network=[16]", "ppo.rollout_steps=16"),
    *("ppo.batch_size=64", "evaluation.every=256", "evaluation.blocks=1"),
    "evaluation.final_blocks=1",
)
LESS = {
    "play": ["--matches", "2"],
    "train": [word for setting in SMALL for word in ("--set", setting)],
    "bench": ["--quick", "--no-training"],
    "cross-table": ["--matches", "4", "--mode", "journey"],
    "tournament": ["--blocks", "2", "--mode", "journey"],
    "compare": ["--blocks", "1"],
    "measure": ["--matches", "8"],
    "tune": ["--generations", "1", "--population", "4", "--blocks", "1", "--candidates", "2"],
}
"""What makes a command short: options that stand last count."""
BOT = """
import numpy as np
from retinue.envs.game.state import TURN

class MyBot:
    def choose(self, view, rng):
        return np.zeros(len(view.games), TURN)
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """Return the words of each ``retinue`` command, in the order in which they stand."""
    lines = [line for block in blocks("console") for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines)
    words = [shlex.split(line[2:], comments=True) for line in lines]
    return [each[1:] for each in words if each[0] == "retinue"]


def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks("python")
    exec(compile(program, "README.md", "exec"), {})
    assert re.match(r"totals \S.* places \S", capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.skipif(not jit.ENABLED, reason="too much for plain Python")
def test_the_commands_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    (tmp_path / "bot.py").write_text(BOT)
    found = commands()
    assert {words[0] for words in found} == {
        *("bench", "compare", "cross-table", "play", "replay", "rules", "stats", "tournament"),
        *("curves", "export", "measure", "train", "tune", "vectors"),
    }
    for words in found:
        code = cli.main([*words, *LESS.get(words[0], [])])
        out, err = capsys.readouterr()
        assert (code, bool(out)) == (0, True), (words, err)
    made = {path.name for path in tmp_path.iterdir()}
    assert made >= {
        "bench.json",
        "configs",
        "matches",
        "mine.onnx",
        "mine.svg",
        "mine.yaml",
        "runs",
    }
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {
        *("cross-table", "mine", "quick", "tournament")
    }


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_to_files(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", text)
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []
