"""From the path of a class to an agent, or to one line on what is wrong."""

import sys
from pathlib import Path
from typing import Any

import pytest

import retinue.agents  # noqa: F401 - agents by name
from positions import JOURNEY
from retinue import cli
from retinue.agents import process
from retinue.agents.registry import AgentError, make_agent, make_known_agent
from retinue.agents.user import make_user_agent
from retinue.envs.gym_env import RetinueEnv
from user_bots import ask

FINE = "    def choose(self, view, rng):\n        return None\n"
FILES = {
    "fine.py": f"class Fine:\n{FINE}",
    "syntax.py": "a = 1\n\ndef f(:\n    pass\n",
    "null.py": "a = 1\0\n",
    "raising.py": "a = 1\nraise KeyError('left')\n",
    "leaving.py": "import sys\nsys.exit(4)\n",
    "needy.py": "import nowhere_to_be_found\n",
    "empty.py": "",
    "several.py": f"""
from pathlib import Path
limit = 3
def make(): pass
class Racy:
{FINE}
class Mute: pass
class Short:
    def choose(self, view): pass
class Needs:
    def __init__(self, depth, width): pass
{FINE}
class Fails:
    def __init__(self):
        raise OSError("no network")
{FINE}
class Odd:
    name = "two\\nlines"
{FINE}
""",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def imported_from(folder: Path) -> list[str]:
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    return [name for name, file in files.items() if file and Path(file).is_relative_to(folder)]


def refusal(spec: str) -> str:
    with pytest.raises(AgentError) as caught:
        make_user_agent(spec, JOURNEY, in_process=True)
    return str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("none.py:Bot", "none.py: No such file or directory"),
        ("below/none.py:Bot", "below/none.py: No such file or directory"),
        ("syntax.py:Bot", "syntax.py: line 3: invalid syntax"),
        ("raising.py:Bot", "raising.py: KeyError: 'left' (line 2)"),
        ("leaving.py:Bot", "leaving.py: SystemExit: 4 (line 2)"),
        (
            "needy.py:Bot",
            "needy.py: ModuleNotFoundError: No module named 'nowhere_to_be_found' (line 1)",
        ),
        ("empty.py:Bot", "empty.py: has no class 'Bot'; it has no class"),
        (
            "several.py:Racer",
            "several.py: has no class 'Racer'; did you mean Racy? "
            "its classes: Racy, Mute, Short, Needs, Fails, Odd",
        ),
        ("fine.py:", "fine.py: which class? give fine.py:CLASS; its classes: Fine"),
        ("fine.py", "fine.py: which class? give fine.py:CLASS; its classes: Fine"),
        ("several.py:make", "several.py: make is no class, but of type function"),
        ("several.py:limit", "several.py: limit is no class, but of type int"),
        ("several.py:Mute", "several.py:Mute: has no method choose(self, view, rng)"),
        (
            "several.py:Short",
            "several.py:Short: choose must take (self, view, rng), not (self, view)",
        ),
        (
            "several.py:Needs",
            "several.py:Needs: its constructor must take nothing or (ruleset), not (depth, width)",
        ),
        (
            "several.py:Fails",
            "several.py:Fails: its constructor failed: OSError: no network (line 19)",
        ),
        ("several.py:Odd", "several.py:Odd: its name must be a line of text"),
        ("no.such:Bot", "no.such: ModuleNotFoundError: No module named 'no'"),
        ("json.tool:Bot", "json.tool: has no class 'Bot'; it has no class"),
    ],
)
def test_what_is_no_agent_is_refused(folder: Path, spec: str, message: str) -> None:
    path = list(sys.path)
    assert refusal(spec) == message
    assert sys.path == path
    is_whole = spec.startswith(("several", "fine", "empty"))
    assert len(imported_from(folder)) == is_whole, "a module that was not wholly imported stays"


def test_null_bytes_are_refused(folder: Path) -> None:
    assert "null bytes" in refusal("null.py:Bot")


def test_a_refusal_comes_from_the_other_process_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["play", "--agents", "several.py:Short,racer,racer,racer"]
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1]) == (
        "",
        "retinue: several.py:Short: choose must take (self, view, rng), not (self, view)",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import os\nos._exit(3)\n",
            "end.py:Bot: while it was made, its process ended with exit code 3",
        ),
        ("while True: pass\n", "end.py:Bot: took more than 3 s to be made"),
    ],
)
def test_an_import_may_end_or_hang(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setattr(process, "START_LIMIT", 3.0 if "while" in text else 60.0)
    (folder / "end.py").write_text(text)
    with pytest.raises(AgentError) as caught:
        make_agent("end.py:Bot", JOURNEY)
    assert str(caught.value) == message


# --- Neighbours


def neighbours(folder: Path, noble: int) -> str:
    folder.mkdir()
    (folder / "helper.py").write_text(f"NOBLE = {noble}\n")
    (folder / "late.py").write_text(f"NOBLE = {noble}\n")
    (folder / "bot.py").write_text(
        "import numpy as np\nfrom dataclasses import dataclass\nfrom helper import NOBLE\n"
        "from retinue.envs.game.state import TURN\n\n"
        "@dataclass\nclass Bot:\n    steps: int = NOBLE\n\n"
        "    def choose(self, view, rng):\n        turns = np.zeros(len(view.games), TURN)\n"
        "        turns['noble_steps'] = self.steps\n        return turns\n\n"
        "class Late(Bot):\n    def choose(self, view, rng):\n        import late\n"
        "        self.steps = late.NOBLE\n        return super().choose(view, rng)\n"
    )
    return f"{folder / 'bot.py'}:Bot"


def test_files_of_the_same_name_do_not_clash(tmp_path: Path) -> None:
    specs = [neighbours(tmp_path / name, steps) for name, steps in (("one", 1), ("two", 2))]
    inside = [make_user_agent(spec, JOURNEY, in_process=True) for spec in specs]
    outside = [make_agent(spec.replace(":Bot", ":Late"), JOURNEY) for spec in specs]
    for agents in (inside, outside):
        assert [int(ask_under(agent)["noble_steps"][0]) for agent in agents] == [1, 2]
    assert len(imported_from(tmp_path)) == 2
    assert all(name.startswith("retinue_agent_") for name in imported_from(tmp_path))


def ask_under(agent: Any) -> Any:
    return ask(agent, ruleset=JOURNEY)


def test_a_module_is_found_in_the_current_folder(folder: Path) -> None:
    neighbours(folder / "pack", 3)
    (folder / "pack" / "bot.py").write_text(
        (folder / "pack" / "bot.py").read_text().replace("from helper", "from pack.helper")
    )
    agent = make_agent("pack.bot:Bot", JOURNEY)
    assert agent.name == "pack.bot:Bot"
    assert ask_under(agent)["noble_steps"].tolist() == [3]


# --- Nothing is imported because somebody else names it


def test_only_the_user_s_own_paths_are_imported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "trap.py").write_text("from pathlib import Path\nPath('sprung').touch()\n")
    message = "agent 'trap.py:Bot' is a path, which is only imported for --agents and make_agent"
    with pytest.raises(AgentError, match=message):
        make_known_agent("trap.py:Bot", JOURNEY)
    with pytest.raises(ValueError, match=message):
        RetinueEnv("journey", opponents="trap.py:Bot")
    for key in ("opponents", "evaluation.against"):
        assert cli.main(["train", "quick", "--set", f"{key}=[trap.py:Bot]"]) == 2
        assert message in capsys.readouterr().err
    for spec in ("trap.py", "policy:trap.py", "racer:trap.py:Bot"):
        with pytest.raises(AgentError):
            make_known_agent(spec, JOURNEY)
    assert not (folder / "sprung").exists()
