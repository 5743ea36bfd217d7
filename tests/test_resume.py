"""Runs that were broken off: they go on as if nothing had happened, or say why they cannot."""

import io
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from rich.console import Console

from retinue.agents.policy import PolicyError, load_policy, masked_choice
from retinue.envs.game.ruleset import load_ruleset, rules_file
from retinue.envs.game.schema import SchemaError
from retinue.evaluation.statistics import Estimate
from retinue.training.callbacks import TrainingCallback
from retinue.training.checkpoint import restore
from retinue.training.config import TrainConfig, load_config, ruleset_of
from retinue.training.measure import MEASURING_SEED, Measurement, table_of
from retinue.training.ppo import (
    MATCH_SEED_SPACING,
    check_names,
    make_league,
    make_model,
    make_vec_env,
    train,
)
from retinue.training.run_folder import RunError, RunFolder
from test_training import metrics, tiny, weights

UNEVEN = tiny("decisions=600")
"""Three rollouts of 256, though the decisions asked for are passed within the third."""


def at_step(
    step: int, act: Callable[[TrainingCallback], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Do something within a rollout, just before the learner asks whether to go on."""
    on_step = TrainingCallback._on_step

    def acting(self: TrainingCallback) -> bool:
        if self.num_timesteps == step:
            act(self)
        return on_step(self)

    monkeypatch.setattr(TrainingCallback, "_on_step", acting)


def press_ctrl_c(callback: TrainingCallback) -> None:
    signal.raise_signal(signal.SIGINT)


def run_out_of_time(callback: TrainingCallback) -> None:
    callback._elapsed_before += 1e6


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Measurement]:
    run = RunFolder.create(tmp_path_factory.mktemp("whole") / "run", UNEVEN)
    result = train(UNEVEN, run)
    assert result is not None
    return run, result


@pytest.mark.parametrize("step", [16, 400, 592, 608, 768])
def test_a_run_broken_off_anywhere_goes_on_exactly(
    step: int,
    whole: tuple[RunFolder, Measurement],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = RunFolder.create(tmp_path / "run", UNEVEN)
    with monkeypatch.context() as patch:
        at_step(step, press_ctrl_c, patch)
        assert train(UNEVEN, run) is None
    assert run.load_checkpoint()["decisions"] == (step - 1) // 256 * 256
    again, saved = RunFolder.open(run.path)
    assert train(saved, again, resume=True) == whole[1]
    assert metrics(run) == metrics(whole[0])
    for name, tensor in weights(whole[0]).items():
        torch.testing.assert_close(weights(run)[name], tensor, rtol=0, atol=0)


def test_what_is_learned_is_counted_not_a_rollout_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = UNEVEN.model_copy(update={"max_minutes": 1000.0})
    run = RunFolder.create(tmp_path / "run", config)
    at_step(608, run_out_of_time, monkeypatch)
    result = train(config, run)
    assert result is not None
    assert result.decisions == run.load_checkpoint()["decisions"] == 512
    assert '"decisions": 512' in (run.policy / "policy.json").read_text()
    assert train(config, run, resume=True) == result


def test_an_early_end_leaves_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(callback: TrainingCallback) -> None:
        raise KeyError("something")

    run = RunFolder.create(tmp_path / "run", UNEVEN)
    at_step(32, fail, monkeypatch)
    with pytest.raises(KeyError):
        train(UNEVEN, run)
    assert run.load_checkpoint()["decisions"] == 0


def test_terminal_and_handler_survive_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press_twice(callback: TrainingCallback) -> None:
        press_ctrl_c(callback)
        press_ctrl_c(callback)

    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=200)
    monkeypatch.setattr("retinue.training.callbacks.Console", lambda **_: terminal)
    run = RunFolder.create(tmp_path / "a[red]run[/nothing]", UNEVEN)
    before = signal.getsignal(signal.SIGINT)
    at_step(32, press_twice, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(UNEVEN, run)
    assert signal.getsignal(signal.SIGINT) is before
    hide, show = "\x1b[?25l", "\x1b[?25h"
    assert screen.getvalue().rfind(show) > screen.getvalue().rfind(hide) >= 0
    assert "a[red]run[/nothing]" in screen.getvalue()


def test_names_in_tables_are_no_markup() -> None:
    screen = io.StringIO()
    share = Estimate(0.5, 0.4, 0.6, 3)
    table = table_of(Measurement(1, {"policy:runs/[bold]x[/y]": share}))
    Console(file=screen, width=200).print(table)
    assert "policy:runs/[bold]x[/y]" in screen.getvalue()


def test_the_time_left_is_that_of_the_nearer_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def left(*changes: str) -> str:
        nothing: Any = None
        callback = TrainingCallback(
            tiny(*changes),
            RunFolder(Path()),
            measure=nothing,
            capture=nothing,
            renew=nothing,
            league=nothing,
            clock=nothing,
            measured=0,
            elapsed=60.0,
        )
        callback._begun = time.perf_counter()
        callback._speed.rate = 10.0
        return callback._left()

    assert left("decisions=6000", "max_minutes=null") == "10.0 min left"
    assert left("decisions=6000", "max_minutes=90") == "10.0 min left"
    assert left("decisions=6000", "max_minutes=3") == "2.0 min left"
    assert left("decisions=6000", "max_minutes=0.5") == "0.0 min left"


def test_a_run_keeps_its_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = rules_file("journey").read_text(encoding="utf-8")
    mine = tmp_path / "mine.yaml"
    mine.write_text(text.replace("max_credits: ", "max_credits: 1"), encoding="utf-8")
    ruleset = load_ruleset(mine)
    assert ruleset != load_ruleset("journey")
    monkeypatch.chdir(tmp_path)
    config = tiny("rules=mine.yaml", "decisions=256")
    check_names(config)
    run = RunFolder.create(tmp_path / "run", config)
    result = train(config, run)
    assert run.ruleset().digest == ruleset.digest
    mine.unlink()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again, saved = RunFolder.open(run.path)
    assert train(saved, again, resume=True) == result


@pytest.mark.parametrize("mode", ["journey", "brawl"])
def test_rules_survive_being_written(mode: str, tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", tiny(f"mode={mode}"))
    assert run.ruleset() == load_ruleset(mode)


def test_rules_of_another_mode_are_refused(tmp_path: Path) -> None:
    config = tiny("rules=brawl")
    with pytest.raises(SchemaError, match=r"brawl is for mode brawl.* says mode journey"):
        check_names(config)
    with pytest.raises(SchemaError, match="mode brawl"):
        RunFolder.create(tmp_path / "run", config)
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def state(whole: tuple[RunFolder, Measurement]) -> dict[str, Any]:
    return whole[0].load_checkpoint()


def put_back(config: TrainConfig, state: dict[str, Any]) -> None:
    league = make_league(config, ruleset_of(config))
    environment = make_vec_env(config, league=league)
    restore(config, make_model(config, environment), environment, league, state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("environments=8", "environments is 16, but the run's is 8"),
        ("network=[16]", r"network is \[32\], but the run's is \[16\]"),
        ("encoding=steps", "encoding is turn"),
        ("candidates=8", "candidates is 32, but the run's is 8"),
        ("mode=brawl", "mode is journey"),
        ("opponents=[racer]", "opponents"),
        ("reward.scale=100.0", "reward"),
        ("league={latest: 0.5}", "league is None"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(
    change: str, message: str, state: dict[str, Any]
) -> None:
    with pytest.raises(RunError, match=message):
        put_back(tiny("decisions=600", change), state)


@pytest.mark.parametrize(
    "change",
    [
        {"stamp": None},
        {"stamp": {}},
        {"policy": {}},
        {"policy": None},
        {"optimizer": {}},
        {"elapsed": float("nan")},
        {"decisions": "many"},
        {"matches": []},
        {"matches": [torch.zeros(3, dtype=torch.uint8)] * 4},
        {"lengths": [1]},
        {"episode_starts": torch.zeros(3)},
        {"numpy_rng": ["other"]},
        {"torch_rng": torch.zeros(3)},
    ],
    ids=str,
)
def test_a_damaged_checkpoint_is_refused_in_one_line(
    change: dict[str, Any], state: dict[str, Any]
) -> None:
    with pytest.raises(RunError) as refusal:
        put_back(UNEVEN, {**state, **change})
    assert "\n" not in str(refusal.value)
    name = next(iter(change))
    if name != "stamp":
        with pytest.raises(RunError):
            put_back(UNEVEN, {key: value for key, value in state.items() if key != name})


def test_another_memory_layout_is_refused(state: dict[str, Any]) -> None:
    changed = {**state, "stamp": {**state["stamp"], "memory layout": "x"}}
    with pytest.raises(RunError, match="memory layout is x"):
        put_back(UNEVEN, changed)


def test_a_checkpoint_that_is_something_else_is_refused(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", UNEVEN)
    torch.save([1], run.path / "checkpoint.pt")
    with pytest.raises(RunError, match="not a checkpoint"):
        run.load_checkpoint()


def test_interrupted_writing_keeps_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.create(tmp_path / "run", UNEVEN)
    run.save_checkpoint({"decisions": 1})

    def save(state: Any, file: Any) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", save)
    with pytest.raises(KeyboardInterrupt):
        run.save_checkpoint({"decisions": 2})
    monkeypatch.undo()
    assert run.load_checkpoint() == {"decisions": 1}
    assert not [path for path in run.path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ppo.batch_size=1", r"ppo\.batch_size.* 2"),
        ("environments=1048576", "environments"),
        ("ppo.rollout_steps=1000000", r"ppo\.rollout_steps: .* at most"),
        ("engine_threads=5000", r"engine_threads: 5000 threads are more than the \d+"),
        ("torch_threads=257", "torch_threads"),
        ("network=[65537]", r"network\[0\]"),
        (f"opponents={yaml.safe_dump(['racer'] * 65, default_flow_style=True)}", "opponents"),
        ("seed=1048576", "seed"),
        ("candidates=129", "candidates: .*less than or equal to 128"),
        ("candidates=1", "candidates: .*greater than or equal to 2"),
        ("candidates=null", "candidates: .*integer"),
        ("ppo={epochs: 1, epochs: 2}", "'epochs' stands twice"),
    ],
)
def test_values_out_of_bounds_are_named(change: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        load_config("quick", [change])


@pytest.mark.parametrize("text", ["1e-3", "1E-3", "+1.e-3", ".1e-2", "0.001", "1.0e-3"])
def test_numbers_may_have_an_exponent(text: str, tmp_path: Path) -> None:
    assert load_config("quick", [f"ppo.learning_rate={text}"]).ppo.learning_rate == 0.001
    path = tmp_path / "mine.yaml"
    shipped = yaml.safe_dump(tiny().model_dump(mode="json"))
    path.write_text(shipped.replace("learning_rate: 0.008", f"learning_rate: {text}"))
    assert load_config(path).ppo.learning_rate == 0.001


def test_dice_of_training_and_measuring_do_not_meet() -> None:
    last = tiny(f"seed={(1 << 20) - 1}")
    environment = make_vec_env(last)
    make_model(last, environment)
    environment.reset()
    assert environment.batch.seeds.min() >= last.seed * MATCH_SEED_SPACING
    assert environment.batch.seeds.max() < MEASURING_SEED


def test_training_leaves_torchs_checks_alone() -> None:
    make_model(UNEVEN, make_vec_env(UNEVEN))
    assert torch.distributions.Distribution._validate_args


def test_an_empty_mask_is_refused() -> None:
    masks = np.array([[True, False, False, False]])
    with pytest.raises(ValueError, match="mask is empty"):
        masked_choice(np.zeros((1, 4), np.float32), masks, [2, 2])


@pytest.mark.parametrize("hidden", ["[]", "[0]", "[65537]", "[-1]"])
def test_an_impossible_network_is_refused(
    hidden: str, whole: tuple[RunFolder, Measurement], tmp_path: Path
) -> None:
    text = (whole[0].policy / "policy.json").read_text()
    compact = "".join(text.split())
    assert '"hidden":[32]' in compact
    (tmp_path / "policy.json").write_text(compact.replace("[32]", hidden))
    (tmp_path / "policy.pt").write_bytes((whole[0].policy / "policy.pt").read_bytes())
    with pytest.raises(PolicyError):
        load_policy(tmp_path, load_ruleset("journey"))


def test_training_that_diverges_says_so(tmp_path: Path) -> None:
    config = tiny("ppo.learning_rate=1e30", "ppo.final_learning_rate=1e30")
    with pytest.raises(RunError, match="training diverged"):
        train(config, RunFolder.create(tmp_path / "run", config))
