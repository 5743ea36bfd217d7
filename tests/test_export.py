"""`retinue export`: from a training run's folder to a file that plays the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from positions import JOURNEY
from retinue import cli
from retinue.agents.artifact import load_artifact, read_artifact
from retinue.agents.onnx_export import CHECKED, to_onnx
from retinue.agents.policy import Lookahead, PolicyError, load_network, load_policy
from retinue.agents.registry import make_agent
from retinue.envs.batch import Batch
from retinue.envs.game import jit
from retinue.evaluation.arena import first_share
from retinue.evaluation.policy_report import model_card
from retinue.training import export
from retinue.training.config import load_config
from retinue.training.measure import Measurement
from retinue.training.ppo import train
from retinue.training.run_folder import RunError, RunFolder

TINY = (
    *("opponents=[random, racer]", "evaluation.against=[random, racer]", "environments=16"),
    *("decisions=512", "network=[16]", "value_network=[8]", "ppo.rollout_steps=16", "candidates=8"),
    *("ppo.batch_size=64", "ppo.epochs=1", "evaluation.every=256", "evaluation.blocks=1"),
    "evaluation.final_blocks=2",
)


@pytest.fixture(scope="module", params=["candidates", "turn"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run that has ended: its folder, and what it measured."""
    config = load_config("quick", [*TINY, f"encoding={request.param}"])
    run = RunFolder.create(tmp_path_factory.mktemp("runs") / "run", config)
    return run.path, train(config, run)


@pytest.fixture
def folder(trained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the run's folder, in the one that we are in."""
    monkeypatch.chdir(tmp_path)
    for path in trained[0].rglob("*"):
        if path.suffix in {".yaml", ".json", ".txt", ".pt"}:
            copy = tmp_path / "run" / path.relative_to(trained[0])
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (tmp_path / "run" / "command.txt").write_text(
        "retinue train quick --out run\nretinue train --resume run\n"
    )
    return tmp_path / "run"


@pytest.mark.skipif(not jit.ENABLED, reason="too much for plain Python")
def test_a_run_becomes_a_file_that_plays_the_same(
    trained: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured: Measurement = trained[1]
    capsys.readouterr()
    assert cli.main(["export", "run", "--out", "mine.onnx"]) == 0
    out, err = capsys.readouterr()
    path = Path("mine.onnx")
    size = f"{path.stat().st_size:,}"
    assert out == (
        f"mine.onnx: {size} bytes; plays as the policy does in {CHECKED:,} positions. "
        "Let it play: --mode journey --agents policy:mine.onnx,...\n"
    )
    assert err == ""
    assert {each.name for each in Path().iterdir()} == {"mine.json", "mine.md", "mine.onnx", "run"}
    manifest = read_artifact(path)
    config = load_config(folder / "config.yaml")
    assert (manifest.mode, manifest.rules_digest) == ("journey", JOURNEY.digest)
    assert (manifest.encoding, manifest.candidates) == (config.encoding, 8)
    assert (manifest.hidden, manifest.value_hidden, manifest.decisions) == ((16,), (8,), 512)
    assert manifest.command == ("retinue train quick --out run", "retinue train --resume run")
    assert manifest.configuration == yaml.safe_load((folder / "config.yaml").read_text())
    assert manifest.versions == json.loads((folder / "versions.json").read_text())
    assert manifest.rating is None
    assert [
        (each.against, each.share, each.low, each.high, each.matches, each.command)
        for each in manifest.strength
    ] == [
        (name, share.value, share.low, share.high, 8, "retinue train quick --out run")
        for name, share in measured.shares.items()
    ]
    assert len(manifest.strength) == 2
    assert Path("mine.md").read_text() == model_card("mine", manifest)
    ends = []
    for agent in (make_agent("policy:mine.onnx", JOURNEY), load_policy("run", JOURNEY)):
        batch = Batch(JOURNEY, 2, seats="none", opponents=[agent, "racer"], keep_turns=True)
        batch.play_out([5, 6], [0, 1, 0, 1])
        ends.append(batch.trace.tobytes())
    assert ends[0] == ends[1]


@pytest.mark.parametrize("trained", ["turn"], indirect=True)
def test_a_policy_that_was_kept_on_the_way(folder: Path) -> None:
    assert cli.main(["export", "run", "--out", "mine.onnx", "--decisions", "256"]) == 0
    manifest = read_artifact(Path("mine.onnx"))
    assert (manifest.decisions, manifest.strength) == (256, ())
    observations = np.zeros((1, manifest.observation_size), np.float32)
    shown = [
        load_policy(source, JOURNEY).model.evaluate(observations)[0]
        for source in ("mine.onnx", "run/history/256", "run")
    ]
    assert np.abs(shown[0] - shown[1]).max() < 1e-6
    assert np.abs(shown[0] - shown[2]).max() > 1e-5


@pytest.mark.parametrize("trained", ["candidates"], indirect=True)
@pytest.mark.skipif(not jit.ENABLED, reason="too much for plain Python")
def test_a_file_that_looks_ahead_is_measured_as_it_plays(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["export", "run", "--out", "mine.onnx", "--lookahead", "top=3"]) == 0
    manifest = read_artifact(Path("mine.onnx"))
    assert manifest.lookahead == Lookahead(top=3)
    assert manifest.strength == (), "the run measured the policy alone"
    assert "tries its 3 favourites, 1 rollout(s) of each" in Path("mine.md").read_text()
    capsys.readouterr()
    found = []
    for others, seed in (("racer", 0), ("random", 0), ("racer", 5)):
        words = ["measure", "mine.onnx", "--against", others, "--matches", "11"]
        assert cli.main([*words, "--seed", str(seed)]) == 0
        found.append(capsys.readouterr().out)
    manifest = read_artifact(Path("mine.onnx"))
    racer, chance = manifest.strength
    assert (racer.against, chance.against) == ("three racer", "three random")
    assert racer.command == "retinue measure mine.onnx --against racer --matches 8 --seed 5"
    agents = [make_agent("policy:mine.onnx", JOURNEY), *[make_agent("racer", JOURNEY)] * 3]
    right = first_share(agents[0], agents[1:], JOURNEY, 2, 5)
    assert (racer.share, racer.low, racer.high, racer.matches) == (
        *(right.value, right.low, right.high),
        8,
    )
    assert found[2] == (
        f"mine.onnx: first in {right.value:.1%} ({right.low:.1%} to {right.high:.1%}) of 8 matches "
        "against three racer; par is 25%\n"
    )
    assert Path("mine.md").read_text() == model_card("mine", manifest)


def without(name: str) -> Callable[[Path], object]:
    return lambda run: (run / name).unlink()


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda run: (run / name).write_text(text)


def replace(name: str, old: str, new: str) -> Callable[[Path], object]:
    def change(run: Path) -> None:
        text = (run / name).read_text()
        assert text.count(old) == 1
        (run / name).write_text(text.replace(old, new))

    return change


@pytest.mark.parametrize("trained", ["turn"], indirect=True)
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            without("policy/policy.json"),
            "run: no training run with a policy: there is no policy/po",
        ),
        (without("config.yaml"), "run: no training run with a policy: there is no config.yaml"),
        (without("command.txt"), "run: no training run with a policy: there is no command.txt"),
        (without("rules.yaml"), "run: no training run with a policy: there is no rules.yaml"),
        (without("versions.json"), "run: no training run with a policy: there is no versions.json"),
        (without("policy/policy.pt"), "run/policy/policy.pt: not the weights of this policy"),
        (write("policy/policy.pt", "x"), "run/policy/policy.pt: not the weights of this policy"),
        (write("policy/policy.json", "{}"), "run/policy/policy.json: format: is missing"),
        (write("rules.yaml", "mode: brawl"), "run/rules.yaml: "),
        (write("config.yaml", "["), "run/config.yaml: not valid YAML"),
        (
            replace("config.yaml", "mode: journey", "mode: brawl"),
            "its mode is brawl, the policy's is",
        ),
        (
            replace("config.yaml", "encoding: turn", "encoding: steps"),
            "run: config.yaml is of another run: its encoding is steps, the policy's is turn",
        ),
        (write("command.txt", "\n"), "run/command.txt: is empty; expected the command of the run"),
        (lambda run: (run / "command.txt").write_bytes(b"\xff"), "command.txt: is not UTF-8 text"),
        (write("versions.json", "{"), "run/versions.json: not valid JSON: Expecting property name"),
        (write("versions.json", "[]"), "run: versions: Input should be an object, not []"),
        (write("evaluation.json", "["), "run/evaluation.json: not valid JSON"),
        (write("evaluation.json", "{}"), "run/evaluation.json: decisions: is missing"),
        (
            replace("evaluation.json", '"decisions": 512', '"decisions": 256'),
            "run/evaluation.json: measures the policy of 256 decisions, but the run's has 512: end",
        ),
        (
            replace("policy/policy.json", JOURNEY.digest, "0123"),
            f"with rules 0123, these are journey with rules {JOURNEY.digest}",
        ),
    ],
)
def test_a_run_that_is_damaged(
    folder: Path, damage: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(folder)
    capsys.readouterr()
    assert cli.main(["export", "run", "--out", "mine.onnx"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert [each.name for each in Path().iterdir()] == ["run"]


@pytest.mark.parametrize("trained", ["turn"], indirect=True)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "--out", "mine.pt"), "mine.pt: must end in .onnx"),
        (("run", "--out", "no/mine.onnx"), "no/mine.onnx: there is no folder no"),
        (("run", "--out", "run.onnx"), "run.onnx: is a folder"),
        (("none", "--out", "mine.onnx"), "none: no training run with a policy: there is no rules"),
        (("run",), "Missing option '--out'"),
        (("run", "--out", "mine.onnx", "--lookahead", "tops=2"), "no option 'tops': did you mean"),
        (
            ("run", "--out", "mine.onnx", "--lookahead", "top=2"),
            "run: lookahead: must be null with the encoding turn; only policies of candidates",
        ),
        (
            ("run", "--out", "mine.onnx", "--decisions", "7"),
            "run: kept no policy of 7 decisions; those kept: 256\n",
        ),
    ],
)
def test_what_cannot_be_exported_there(
    folder: Path, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("run.onnx").mkdir()
    capsys.readouterr()
    assert cli.main(["export", *words]) == 2
    assert message in capsys.readouterr().err
    assert {each.name for each in Path().iterdir()} == {"run", "run.onnx"}


@pytest.mark.parametrize("trained", ["turn"], indirect=True)
def test_a_run_that_was_interrupted_is_not_measured(folder: Path) -> None:
    (folder / "evaluation.json").unlink()
    manifest = export.export_run(folder, Path("mine.onnx"))
    assert manifest.strength == ()
    assert "First places are not measured." in Path("mine.md").read_text()


@pytest.mark.parametrize("trained", ["turn"], indirect=True)
def test_what_was_there_stays_if_the_file_would_play_otherwise(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export.export_run(folder, Path("mine.onnx"))
    before = {path: path.read_bytes() for path in Path().glob("mine.*")}
    assert len(before) == 3

    def other_network(*arguments: Any) -> Any:
        network, manifest = load_network(*arguments)
        other = network.eval().requires_grad_(False)
        content = to_onnx(other, manifest.encoding_for(JOURNEY))
        monkeypatch.setattr(export, "to_onnx", lambda network, encoding: content)
        next(iter(other.parameters())).add_(0.01)
        return other, manifest

    monkeypatch.setattr(export, "load_network", other_network)
    with pytest.raises(PolicyError, match=r"^mine\.onnx: was not written: the logits of the ONNX"):
        export.export_run(folder, Path("mine.onnx"))
    assert {path: path.read_bytes() for path in Path().glob("*mine.*")} == before
    assert load_artifact("mine.onnx", JOURNEY).encoding.name == "turn"


def test_it_is_a_run_that_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RunError, match=r"there is no rules\.yaml, config\.yaml, command\.txt, versions"
    ):
        export.export_run(tmp_path, tmp_path / "mine.onnx")
