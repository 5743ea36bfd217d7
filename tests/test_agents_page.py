"""The page on agents is true: its examples run, and its numbers are those of the code."""

import re
from pathlib import Path

import pytest

import retinue.agents
from retinue import cli
from retinue.agents import user
from retinue.agents.process import START_LIMIT

PAGE = Path(retinue.agents.__file__).parents[1] / "docs" / "agents.md"
TEXT = PAGE.read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
LONGEST = 15


def bot(folder: Path) -> str:
    """Write the page's own agent to a file and return its text."""
    (text,) = (each for each in SNIPPETS if each.startswith("# bot.py"))
    (folder / "bot.py").write_text(text, encoding="utf-8")
    return str(text)


def test_its_agent_is_short_and_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    assert len(bot(tmp_path).splitlines()) <= LONGEST
    commands = re.findall(r"^\$ retinue (.*)$", TEXT, re.MULTILINE)
    (command,) = (each for each in commands if "bot.py" in each)
    assert cli.main([*command.split(), "--matches", "2"]) == 0
    out, err = capsys.readouterr()
    assert "bot.py:FirstGuard" in out
    assert "forfeited" not in err


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_its_examples_run(snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bot(tmp_path)
    exec(compile(snippet, PAGE.name, "exec"), {"__name__": "example"})


def test_its_numbers() -> None:
    assert f"by default {user.TIME_LIMIT:g}." in TEXT
    assert user.FORGIVEN == 3
    assert "three faults in one match" in TEXT.replace("\n", " ")
    assert START_LIMIT == 60
    assert "a minute for that" in TEXT


def test_its_links_lead_somewhere() -> None:
    for page, anchor in re.findall(r"\]\(([\w.]*)#([^)]+)\)", TEXT):
        text = (PAGE.parent / page).read_text("utf-8") if page else TEXT
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        assert anchor in {each.lower().replace(" ", "-") for each in headings}
