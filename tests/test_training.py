"""Training end to end: configuration, run folder, exact resuming, policies as agents."""

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from retinue.agents.policy import PolicyError, TorchModel, load_policy
from retinue.agents.registry import AgentError, make_agent
from retinue.envs.actions import ENCODINGS
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.game.schema import SchemaError
from retinue.envs.opponents import View
from retinue.training.benchmark import benchmark_training
from retinue.training.callbacks import Speed
from retinue.training.config import TrainConfig, dump_config, load_config
from retinue.training.measure import Measurement, Measurer
from retinue.training.ppo import make_model, make_vec_env, policy_of, train
from retinue.training.run_folder import RunError, RunFolder, free_folder

TINY = (
    "encoding=turn",
    "engine_threads=1",
    "opponents=[random, racer, racer]",
    "evaluation.against=[random, racer]",
    "value_network=[32]",
    "environments=16",
    "decisions=1024",
    "network=[32]",
    "ppo.rollout_steps=16",
    "ppo.batch_size=64",
    "ppo.epochs=2",
    "evaluation.every=256",
    "evaluation.blocks=2",
    "evaluation.final_blocks=3",
)


def tiny(*changes: str) -> TrainConfig:
    return load_config("quick", [*TINY, *changes])


def weights(run: RunFolder) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = torch.load(run.policy / "policy.pt", weights_only=True)
    return state


def metrics(run: RunFolder) -> list[dict[str, Any]]:
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    return [{**json.loads(line), "seconds": 0, "time": 0} for line in lines]


@pytest.mark.parametrize("encoding", ["steps", "turn"])
def test_a_run_leaves_everything_in_its_folder(tmp_path: Path, encoding: str) -> None:
    config = tiny(f"encoding={encoding}")
    run = RunFolder.create(tmp_path / "run", config)
    result = train(config, run)
    assert result is not None
    assert result.decisions == 1024
    assert set(result.shares) == {"three random", "three racer"}
    assert load_config(run.path / "config.yaml") == config
    assert "retinue" in (run.path / "command.txt").read_text()
    assert json.loads((run.path / "versions.json").read_text())["torch"] == torch.__version__
    assert [line["decisions"] for line in metrics(run)] == [256, 512, 768]
    assert json.loads((run.path / "evaluation.json").read_text()) == result.as_dict()
    assert list(run.tensorboard.iterdir())


def interrupt_at(decisions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C while the learner is measured after so many decisions."""
    measure = Measurer.during

    def during(self: Measurer, agent: Any, done: int) -> Measurement:
        if done == decisions:
            signal.raise_signal(signal.SIGINT)
        return measure(self, agent, done)

    monkeypatch.setattr(Measurer, "during", during)


def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny()
    whole = RunFolder.create(tmp_path / "whole", config)
    undisturbed = train(config, whole)
    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        interrupt_at(512, patch)
        run = RunFolder.create(tmp_path / "run", config)
        assert train(config, run) is None
    assert signal.getsignal(signal.SIGINT) is before
    assert run.load_checkpoint()["decisions"] == 512
    again, saved = RunFolder.open(run.path)
    resumed = train(saved, again, resume=True)
    assert resumed == undisturbed
    assert metrics(run) == metrics(whole)
    for name, tensor in weights(whole).items():
        torch.testing.assert_close(weights(run)[name], tensor, rtol=0, atol=0)


def test_a_finished_run_resumes_to_the_same_result(tmp_path: Path) -> None:
    config = tiny()
    run = RunFolder.create(tmp_path / "run", config)
    assert train(config, run) == train(config, run, resume=True)


def test_seeds_decide_what_is_learned(tmp_path: Path) -> None:
    runs = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        config = tiny(f"seed={seed}", "decisions=256")
        runs[name] = RunFolder.create(tmp_path / name, config)
        train(config, runs[name])
    first, second, other = (weights(runs[name])["layers.0.weight"] for name in "abc")
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_time_can_be_limited(tmp_path: Path) -> None:
    config = tiny("max_minutes=0.001", "decisions=100000000")
    result = train(config, RunFolder.create(tmp_path / "run", config))
    assert result is not None
    assert result.decisions < 100_000


@pytest.mark.parametrize("encoding", ["turn", "candidates"])
def test_the_agent_chooses_what_the_learner_would(encoding: str) -> None:
    """Exported weights and masks give the actions of MaskablePPO's own predict.

    It takes the largest float32 probability, in which choices may tie whose logits do not: then
    either is right.
    """
    config = tiny("decisions=256", f"encoding={encoding}", "candidates=8")
    environment = make_vec_env(config)
    model = make_model(config, environment)
    model.learn(256)
    policy = TorchModel(policy_of(model, config, environment.batch.encoding))
    observations = environment.reset()
    same = 0
    for _ in range(40):
        masks = environment.action_masks()
        expected, _ = model.predict(observations, deterministic=True, action_masks=masks)
        logits = torch.as_tensor(policy.evaluate(observations)[0])
        logits = logits.masked_fill(~torch.as_tensor(masks), -torch.inf)
        parts = torch.split(logits, list(environment.batch.encoding.nvec), dim=1)
        for part, theirs in zip(
            parts, torch.as_tensor(expected.reshape(16, -1)).unbind(1), strict=True
        ):
            probabilities = part.softmax(1)
            taken = probabilities.gather(1, theirs[:, None])[:, 0]
            torch.testing.assert_close(taken, probabilities.amax(1), rtol=0, atol=1e-7)
            same += int((theirs == part.argmax(1)).sum())
        observations, *_ = environment.step(expected)
    assert same > 0.99 * 40 * 16 * len(environment.batch.encoding.nvec)


def test_a_policy_plays_by_name_and_refuses_other_rules(tmp_path: Path) -> None:
    config = tiny("decisions=256")
    run = RunFolder.create(tmp_path / "run", config)
    train(config, run)
    journey = load_ruleset("journey")
    agent = make_agent(f"policy:{run.path}", journey)
    assert agent.name == f"policy:{run.path}"
    environment = make_vec_env(config)
    environment.reset()
    games = environment.batch.games.copy()
    view = View(games, np.arange(16, dtype=np.uint64), journey)
    turns = agent.choose(view, np.random.default_rng(0))
    assert turns.shape == (16,)
    with pytest.raises(AgentError, match="was trained for journey"):
        make_agent(f"policy:{run.path}", load_ruleset("brawl"))
    with pytest.raises(AgentError, match="was trained for journey"):
        make_agent(f"policy:{run.path}", journey.model_copy(update={"max_credits": 3}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "policy.json").unlink(), "No such file"),
        (lambda folder: (folder / "policy.json").write_text("{"), "policy.json"),
        (lambda folder: (folder / "policy.pt").write_bytes(b"x"), "not the weights"),
        (lambda folder: (folder / "policy.pt").unlink(), "not the weights"),
        (
            lambda folder: (folder / "policy.json").write_text(
                (folder / "policy.json")
                .read_text()
                .replace('"observation_version": 1', '"observation_version": 99')
            ),
            "observation version 99",
        ),
    ],
)
def test_a_damaged_policy_is_refused(tmp_path: Path, damage: Any, message: str) -> None:
    config = tiny("decisions=256")
    run = RunFolder.create(tmp_path / "run", config)
    train(config, run)
    damage(run.policy)
    with pytest.raises(PolicyError, match=message):
        load_policy(run.policy, load_ruleset("journey"))


def test_no_checkpoint_or_weights_can_run_code(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    config = tiny()
    run = RunFolder.create(tmp_path / "run", config)
    torch.save({"decisions": Evil()}, run.path / "checkpoint.pt")
    with pytest.raises(RunError, match="not a checkpoint"):
        run.load_checkpoint()
    assert not (tmp_path / "ran").exists()


def test_folders_are_not_overwritten(tmp_path: Path) -> None:
    config = tiny()
    RunFolder.create(tmp_path / "run", config)
    with pytest.raises(RunError, match="exists already"):
        RunFolder.create(tmp_path / "run", config)
    with pytest.raises(RunError, match="no checkpoint"):
        RunFolder.open(tmp_path / "run")
    assert free_folder(tmp_path / "run") == tmp_path / "run-2"
    assert free_folder(tmp_path / "new") == tmp_path / "new"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ppo.epoch=3", r"ppo\.epoch: unknown key; did you mean epochs"),
        ("ppo.epochs=many", r"ppo\.epochs: .*integer"),
        ("ppo.epochs=0", r"ppo\.epochs"),
        ("ppo.discount=1.5", r"ppo\.discount"),
        ("ppo.learning_rate=.nan", r"ppo\.learning_rate"),
        ("environments=3", r"batch_size: .* must divide"),
        ("mode=chess", "mode"),
        ("seed=-1", "seed"),
        ("opponents=[]", "opponents"),
        ("learner.x=1", "no section 'learner'"),
        ("ppo", "key=value"),
        ("ppo.epochs=[", "not valid YAML"),
    ],
)
def test_bad_settings_are_named(change: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        load_config("quick", [change])


def test_configurations_survive_being_written(tmp_path: Path) -> None:
    config = tiny("max_minutes=null")
    path = tmp_path / "config.yaml"
    path.write_text(dump_config(config))
    assert load_config(path) == config


def test_unknown_opponents_are_refused_before_training() -> None:
    with pytest.raises(AgentError, match="did you mean racer"):
        make_vec_env(tiny("opponents=[racerr]"))


def test_a_run_that_slows_down_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("retinue.training.callbacks.time.perf_counter", lambda: clock[0])
    speed = Speed()
    reports = []
    for decisions in (6000, 5000, 2000, 2000, 6000, 1000):
        clock[0] += 61
        reports.append(speed.update(decisions, 0.0))
    assert reports == [False, False, True, False, False, True]


def test_time_spent_measuring_is_no_slowness(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("retinue.training.callbacks.time.perf_counter", lambda: clock[0])
    speed = Speed()
    clock[0] = 61
    speed.update(6100, 0.0)
    clock[0] = 261
    assert speed.update(6100, 139.0) is False
    assert speed.rate == pytest.approx(100)


def test_training_speed_is_measured_against_a_free_environment() -> None:
    rows = {row.name: row for row in benchmark_training("journey", quick=True)}
    assert list(rows) == [
        f"train{part}/{encoding}" for encoding in ENCODINGS for part in ("/free", "", "/ratio")
    ]
    for encoding in ENCODINGS:
        free, real, ratio = (rows[f"train{part}/{encoding}"] for part in ("/free", "", "/ratio"))
        assert ratio.median == pytest.approx(real.median / free.median)
