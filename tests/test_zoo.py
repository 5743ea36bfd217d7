"""The zoo: what `policy:` means, how its opponents are listed, and their cards."""

import re
from pathlib import Path
from typing import Any

import pytest

from exporting import RETURNS, content_of, encoding_of, manifest_for, network_of, put
from positions import BRAWL, JOURNEY, changed
from retinue import cli
from retinue.agents import zoo
from retinue.agents.artifact import load_artifact, read_artifact
from retinue.agents.policy import PolicyError, load_policy, manifest_of, save_policy
from retinue.agents.registry import AgentError, make_agent
from retinue.envs.game.ruleset import load_ruleset
from retinue.evaluation.policy_report import card_path, model_card, write_card
from retinue.evaluation.tournament_report import write_tables
from summaries import EIGHT, made

TURN = encoding_of("turn")
STRENGTH: dict[str, Any] = {
    "against": "three racer",
    "share": 0.5,
    "low": 0.4125,
    "high": 0.5875,
    "matches": 1000,
    "command": "retinue train quick | tee log",
}
RATING = {"value": 120.4, "low": 100.2, "high": 140.6, "against": "nine agents, racer 0"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty zoo, and an empty folder to be in."""
    (tmp_path / "zoo").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setattr(zoo, "FOLDER", tmp_path / "zoo")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path / "zoo"


def save_run(folder: Path) -> None:
    """Leave the policy of a training run in a folder."""
    save_policy(folder / "policy", network_of(TURN), manifest_of(TURN, (32, 16), (16,), 5, RETURNS))


# --- What stands after `policy:`


def test_a_level_is_that_of_the_mode(folder: Path) -> None:
    put(folder / "journey-hard.onnx", TURN)
    put(folder / "brawl-hard.onnx", encoding_of("turn", BRAWL))
    for rules in (JOURNEY, BRAWL):
        agent: Any = make_agent("policy:hard", rules)
        assert agent.name == "policy:hard"
        assert agent.encoding == encoding_of("turn", rules)
        assert zoo.zoo_path("hard", rules.mode) == folder / f"{rules.mode}-hard.onnx"


def test_a_level_is_no_folder_and_a_path_is_no_level(folder: Path) -> None:
    save_run(Path("hard"))
    with pytest.raises(AgentError, match="the zoo has no 'hard' for journey; its levels for"):
        make_agent("policy:hard", JOURNEY)
    assert make_agent("policy:./hard", JOURNEY).name == "policy:./hard"
    assert make_agent(f"policy:{Path.cwd() / 'hard'}", JOURNEY).compiled is None
    assert load_policy(Path("hard/policy"), JOURNEY).encoding == TURN
    assert zoo.as_path(Path("hard")) == "./hard"
    assert load_policy(zoo.as_path(Path("hard")), JOURNEY).encoding == TURN
    assert zoo.as_path(Path("runs/hard")) == "runs/hard"


def test_other_names_are_folders_here(folder: Path) -> None:
    save_run(Path("mine"))
    assert make_agent("policy:mine", JOURNEY).name == "policy:mine"


@pytest.mark.parametrize("name", ["hrad", "Hard", "journey-hard", "hard:x"])
def test_other_names_that_are_nothing(folder: Path, name: str) -> None:
    put(folder / "journey-hard.onnx", TURN)
    put(folder / "journey-easy.onnx", TURN)
    words = f"policy:{name}: neither a folder nor a level of the zoo; its levels for "
    with pytest.raises(AgentError, match=f"^{words}journey: easy, hard$"):
        make_agent(f"policy:{name}", JOURNEY)
    with pytest.raises(AgentError, match=f"^{words}brawl: none yet$"):
        make_agent(f"policy:{name}", BRAWL)


def test_paths_that_are_nothing(folder: Path) -> None:
    for path in ("runs/none", "./hard", "hard/"):
        with pytest.raises(AgentError, match=r"policy\.json: No such file .*; expected a trained"):
            make_agent(f"policy:{path}", JOURNEY)
    with pytest.raises(AgentError, match=r"^hard\.onnx: No such file .*; expected an ONNX file"):
        make_agent("policy:hard.onnx", JOURNEY)


def test_levels_that_are_missing_or_do_not_fit(folder: Path) -> None:
    put(folder / "journey-easy.onnx", TURN)
    assert zoo.levels_of("journey") == ["easy"]
    assert zoo.levels_of("brawl") == []
    with pytest.raises(AgentError, match=r"the zoo has no 'hard' for journey; .* journey: easy$"):
        make_agent("policy:hard", JOURNEY)
    with pytest.raises(AgentError, match=r"the zoo has no 'easy' for brawl; .* brawl: none yet$"):
        make_agent("policy:easy", BRAWL)
    with pytest.raises(AgentError, match=r"journey-easy\.onnx: was trained for journey with rules"):
        make_agent("policy:easy", changed(JOURNEY, max_credits=3))


# --- Who is there


def test_the_command_lists_who_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["agents"]) == 0
    without = capsys.readouterr().out
    assert "zoo" not in without.split("Your own")[1]
    other = STRENGTH | {"against": "racer + spread + random", "share": 0.75, "high": 1.0}
    put(folder / "journey-hard.onnx", TURN, strength=[STRENGTH, other], rating=RATING)
    put(folder / "brawl-hard.onnx", encoding_of("turn", BRAWL), strength=[other])
    put(folder / "journey-easy.onnx", TURN)
    (folder / "journey-best.onnx").write_text("no level's")
    assert [(each.mode, each.level) for each in zoo.residents()] == [
        ("journey", "easy"),
        ("journey", "hard"),
        ("brawl", "hard"),
    ]
    assert cli.main(["agents"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(without)
    lines = [" ".join(line.split()) for line in shown.removeprefix(without).splitlines()]
    assert lines[-4:] == [
        "policy:easy journey not measured",
        "policy:hard journey 120 (100 to 141) three racer 50.0% (41.2-58.8)",
        "racer + spread + random 75.0% (41.2-100.0)",
        "policy:hard brawl racer + spread + random 75.0% (41.2-100.0)",
    ]


def test_a_tournament_s_rating_is_noted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(folder / "journey-hard.onnx", TURN, strength=[STRENGTH])
    summary = made(EIGHT, pinned="random")
    write_tables(summary, folder / "cup")
    hunter = {each.name: each for each in summary.agents}["hunter"].rating
    rate = ["rate", str(path), "--tournament", str(folder / "cup"), "--agent"]
    assert cli.main([*rate, "hunter"]) == 0
    noted = read_artifact(path).rating
    assert noted is not None
    assert (noted.value, noted.low, noted.high) == (hunter.value, hunter.low, hunter.high)
    assert noted.against.endswith(f"among {', '.join(EIGHT)}; random is 0")
    assert f"Rating {hunter.value:.0f}" in card_path(path).read_text()
    assert read_artifact(path).strength  # which stays
    assert cli.main([*rate, "nobody"]) == 2
    assert "no agent 'nobody' took part; tactician, hunter," in capsys.readouterr().err
    other = put(folder / "brawl-hard.onnx", encoding_of("turn", BRAWL))
    assert cli.main(["rate", str(other), *rate[2:], "hunter"]) == 2
    assert "a tournament of journey with rules adc7cd607e510d34" in capsys.readouterr().err
    assert read_artifact(other).rating is None


def test_a_damaged_manifest_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder / "journey-hard.onnx", TURN).with_suffix(".json").write_text("{}")
    assert cli.main(["agents"]) == 2
    assert "journey-hard.json: format: is missing" in capsys.readouterr().err


# --- Cards


def test_a_card_says_what_the_manifest_says(folder: Path) -> None:
    manifest = manifest_for(TURN, content_of(TURN), strength=[STRENGTH], rating=RATING)
    card = model_card("journey-hard", manifest)
    for words in (
        "# journey-hard\n",
        "A policy for Journey that",
        f"under the rules `{JOURNEY.digest}` only",
        "| sees | 293 numbers, observation version 1 |",
        "| chooses | actions of `turn`, 75 choices in all |",
        "| hidden layers | 32 and 16 |",
        f"SHA-256 `{manifest.sha256}`",
        "\nRating 120, 95% interval 100 to 141: nine agents, racer 0.\n",
        "| `three racer` | 50.0% | 41.2% to 58.8% | 1,000 | `retinue train quick \\| tee log` |",
        "1,234 decisions",
        "$ retinue train quick\n$ retinue train --resume runs/quick\n",
        "```yaml\nmode: journey\nseed: 0\nnetwork:\n- 32\n- 16\n```",
        "Versions: retinue 1, torch 2.",
        "$ retinue play --mode journey --agents policy:journey-hard.onnx,",
        "MIT, as Retinue itself.",
    ):
        assert words in card, words
    assert "not measured" not in card
    assert not re.search(r"[{}]", card)


def test_a_card_of_candidates_that_nobody_measured() -> None:
    encoding = encoding_of("candidates", BRAWL)
    card = model_card("b", manifest_for(encoding, b""))
    assert "| chooses | one of 16 proposed turns |" in card
    assert "| hidden layers | 32 and 16; of the value 16 |" in card
    assert "First places are not measured." in card
    assert "Rating" not in card


def test_a_card_is_made_again_when_the_manifest_has_changed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(Path("mine.onnx"), TURN)
    assert cli.main(["model-card", "mine.onnx"]) == 0
    assert capsys.readouterr().out == "mine.md: written\n"
    before = card_path(path).read_text()
    assert before == model_card("mine", read_artifact(path))
    put(path, TURN, strength=[STRENGTH])
    assert cli.main(["model-card", "mine.onnx"]) == 0
    assert "50.0%" not in before
    assert "50.0%" in card_path(path).read_text()


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("none.onnx", "none.json: No such file or directory; expected the manifest of none.onnx"),
        ("none.json", "none.json: must end in .onnx"),
    ],
)
def test_a_card_of_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], file: str, message: str
) -> None:
    assert cli.main(["model-card", file]) == 2
    assert capsys.readouterr().err == f"retinue: {message}\n"
    assert list(Path().iterdir()) == []


# --- What is shipped


def faults(shipped: Path) -> list[str]:
    """Return what is wrong with the files of a zoo."""
    found, known = [], {"README.md"}
    for mode in ("journey", "brawl"):
        for level in zoo.LEVELS:
            path = shipped / f"{mode}-{level}.onnx"
            if not path.exists():
                continue
            known |= {path.name, path.with_suffix(".json").name, card_path(path).name}
            try:
                load_artifact(path, load_ruleset(mode))
            except PolicyError as error:
                found.append(str(error))
                continue
            if not read_artifact(path).strength:
                found.append(f"{path.name}: not measured")
            card = card_path(path)
            if not card.exists() or card.read_text() != model_card(path.stem, read_artifact(path)):
                found.append(f"{card.name}: not that of the manifest")
    return found + [path.name for path in sorted(shipped.iterdir()) if path.name not in known]


def test_the_shipped_zoo_is_right() -> None:
    assert zoo.FOLDER.is_dir()
    assert faults(zoo.FOLDER) == []


def test_what_would_be_wrong_with_a_zoo_is_noticed(folder: Path) -> None:
    write_card(put(folder / "journey-hard.onnx", TURN, strength=[STRENGTH]))
    assert faults(folder) == []
    put(folder / "journey-hard.onnx", TURN, strength=[STRENGTH | {"matches": 4}])
    assert faults(folder) == ["journey-hard.md: not that of the manifest"]
    write_card(put(folder / "journey-hard.onnx", TURN))
    write_card(put(folder / "brawl-easy.onnx", TURN, strength=[STRENGTH]))
    (folder / "stray.onnx").write_text("")
    assert [each.replace(f"{folder}/", "").split(" for ")[0] for each in faults(folder)] == [
        "journey-hard.onnx: not measured",
        "brawl-easy.onnx: was trained",
        "stray.onnx",
    ]
