"""Tuning weights: the same whatever happens meanwhile, gone on from exactly, written as a file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from positions import BRAWL, JOURNEY, changed
from proposing import GREEDY
from retinue.agents.registry import make_agent
from retinue.agents.strategies import make_strategy
from retinue.envs.actions import MAX_CANDIDATES
from retinue.envs.facts import FACT_NAMES
from retinue.envs.game import jit
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.parallel import MAX_THREADS
from retinue.envs.strategy_file import read_strategy, shipped_strategy
from retinue.evaluation.statistics import Estimate
from retinue.training import tune
from retinue.training.tune import Tuner, prepare, spreads, tune_weights
from retinue.training.tune_config import Generation, Judgement, TuneConfig, Tuned, TuneError
from retinue.training.tune_files import Checkpoint, check_new, checkpoint_of, strategy_text

pytestmark = pytest.mark.skipif(not jit.ENABLED, reason="plays whole matches")

SHORT = changed(JOURNEY, clock_seconds=300)
TINY = TuneConfig(generations=3, candidates=8, population=4, blocks=2, judging_blocks=2, seed=5)


@pytest.fixture
def judged_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the mean meet the last champion after each generation, and follow it easily."""
    monkeypatch.setattr(tune, "JUDGED_EVERY", 1)
    monkeypatch.setattr(tune, "PAR", -1.0)


def run(config: TuneConfig = TINY, ruleset: Ruleset = SHORT, **options: Any) -> Tuned:
    return tune_weights(ruleset, options.pop("start", GREEDY), config, **options)


def told() -> tuple[list[Generation], Callable[[Generation], None]]:
    """Return a list and what fills it with generations."""
    generations: list[Generation] = []
    return generations, generations.append


# --- The search


def test_the_same_arguments_give_the_same_weights() -> None:
    (first, on_first), (second, on_second) = told(), told()
    weights = run(on_generation=on_first, threads=1)
    assert run(on_generation=on_second, threads=MAX_THREADS) == weights
    assert first == second
    assert [each.number for each in first] == [1, 2, 3]
    assert [each.judgement is not None for each in first] == [False, False, True]
    other, on_other = told()
    run(TuneConfig(**{**vars(TINY), "seed": 6}), on_generation=on_other)
    assert other[0] != first[0]


def test_progress_is_told_of_all_matches() -> None:
    progress: list[tuple[int, int]] = []
    run(on_progress=lambda *numbers: progress.append(numbers))
    total = 3 * 4 * 2 * 4
    assert progress[-1] == (total, total)
    assert progress == sorted(progress)


@pytest.mark.parametrize("after", [1, 2, 3])
def test_resumed_is_uninterrupted(tmp_path: Path, after: int, judged_often: None) -> None:
    whole, on_whole = told()
    straight = run(checkpoint=tmp_path / "whole", on_generation=on_whole)
    assert straight.champions == 4
    seen: list[Generation] = []

    def interrupt(generation: Generation) -> None:
        seen.append(generation)
        if len(seen) == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(checkpoint=tmp_path / "part", on_generation=interrupt)
    resumed = run(checkpoint=tmp_path / "part", resume=True, on_generation=seen.append, threads=1)
    assert resumed == straight
    assert seen == whole
    assert (tmp_path / "part").read_bytes() == (tmp_path / "whole").read_bytes()


def test_an_interrupted_generation_is_played_again(tmp_path: Path) -> None:
    straight = run(checkpoint=tmp_path / "whole")

    def interrupt(done: int, total: int) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(checkpoint=tmp_path / "part", on_progress=interrupt)
    assert len(Checkpoint.read(tmp_path / "part").fitness) == 1
    assert run(checkpoint=tmp_path / "part", resume=True) == straight


def test_more_generations_go_on(tmp_path: Path) -> None:
    two = TuneConfig(**{**vars(TINY), "generations": 2})
    run(two, checkpoint=tmp_path / "part")
    seen, on_generation = told()
    run(checkpoint=tmp_path / "part", resume=True, on_generation=on_generation)
    assert [each.number for each in seen] == [3]
    with pytest.raises(TuneError, match=r"^the checkpoint has 3 generations already, more than 2$"):
        run(two, checkpoint=tmp_path / "part", resume=True)


def test_fewer_generations_end_with_what_there_is(tmp_path: Path) -> None:
    def interrupt(generation: Generation) -> None:
        if generation.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(checkpoint=tmp_path / "part", on_generation=interrupt)
    two = TuneConfig(**{**vars(TINY), "generations": 2})
    assert run(two, checkpoint=tmp_path / "part", resume=True) == run(two)


def test_what_is_played() -> None:
    """Each of a generation plays the same dice from each seat against three of each champion."""
    tuner = Tuner(SHORT, GREEDY, TINY)
    assert tuner.matches == 32
    before = tuner.mean()
    generation = tuner.step()
    assert 0 <= generation.share <= 1
    assert tuner.done == 1
    (fitness,) = tuner.checkpoint.fitness
    assert len(fitness) == len(set(fitness)) == 4
    assert tuner.mean() != before


def test_a_better_mean_is_the_next_champion(judged_often: None) -> None:
    tuner = Tuner(SHORT, GREEDY, TINY)
    generation = tuner.step()
    assert generation.judgement is not None
    assert generation.judgement.better
    assert tuner.checkpoint.champions == (GREEDY, tuner.mean())
    assert str(generation).startswith("generation 1: ")
    assert str(generation).endswith(": the next champion")


def test_a_mean_that_is_not_better_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "PAR", 2.0)
    found = run()
    assert found.champions == 1
    assert found.weights == GREEDY, "the start was better"
    assert found.against_start.value == 0.25


def test_weights_get_better() -> None:
    """From weights that do nothing useful a few generations learn to score."""
    start = {"margin": 1.0, "forward_before": -30.0, "backward_before": -30.0, "kept": 10.0}
    config = TuneConfig(generations=8, candidates=8, population=12, blocks=2, judging_blocks=20)
    found = run(config, start=start)
    assert found.against_start.low > 0.25


# --- What is searched


def test_a_start_is_brought_to_the_margin() -> None:
    greedy = prepare(shipped_strategy("greedy").weights_for(JOURNEY, "greedy"))
    assert {name: weight for name, weight in greedy.items() if weight} == {"margin": 1.0}
    assert list(greedy) == list(FACT_NAMES)
    found = prepare({"margin": 0.25, "progression": 0.25, "combat": 1.25, "loss_next": 2.0})
    wanted = {"margin": 1.0, "combat": 2.0, "loss_next": 4.0, "penalties": 0.5, "bonus": -0.5}
    assert {name: weight for name, weight in found.items() if weight} == wanted


@pytest.mark.parametrize("weights", [{}, {"combat": 1.0}, {"margin": 1.0, "progression": -1.0}])
def test_a_start_without_own_points_is_refused(weights: dict[str, float]) -> None:
    message = "^the start must weigh margin and progression by more than 0 together, not 0$"
    with pytest.raises(TuneError, match=message):
        run(start=weights)


@pytest.mark.parametrize("ruleset", [SHORT, changed(BRAWL, clock_seconds=300)])
def test_spreads_are_positive(ruleset: Ruleset) -> None:
    agent = make_strategy("greedy", GREEDY, ruleset, 16)
    found = spreads(ruleset, agent)
    assert list(found) == list(FACT_NAMES)
    assert all(spread > 0 for spread in found.values())
    assert found["margin"] > 1
    assert found["time_left"] == min(found.values())


# --- Refusals


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("generations", 0, "generations must be 1 to 100,000, not 0"),
        ("candidates", MAX_CANDIDATES + 1, "candidates must be 2 to 128, not 129"),
        ("population", 57, "population must be 4 to 56, not 57"),
        ("blocks", 0, "blocks must be 1 to 10,000, not 0"),
        ("judging_blocks", 1, "judging_blocks must be 2 to 10,000, not 1"),
        ("seed", 1 << 20, "seed must be 0 to 1,048,575, not 1048576"),
        ("seed", 0.5, "seed must be 0 to 1,048,575, not 0.5"),
    ],
)
def test_numbers_out_of_range_are_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(TuneError) as caught:
        TuneConfig(**{name: value})
    assert str(caught.value) == message


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a search of one generation left as its checkpoint."""
    path = tmp_path_factory.mktemp("tune") / "left"
    run(TuneConfig(**{**vars(TINY), "generations": 1}), checkpoint=path)
    return path.read_text()


def refused(path: Path, text: str, **options: Any) -> str:
    """Return in which words it is refused to go on from such a checkpoint."""
    path.write_text(text)
    with pytest.raises(TuneError) as caught:
        run(checkpoint=path, resume=True, **options)
    assert path.read_text() == text
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nothing_to_go_on_from(tmp_path: Path) -> None:
    path = tmp_path / "none"
    with pytest.raises(TuneError) as caught:
        run(checkpoint=path, resume=True)
    message = f"{path}: there is nothing to go on from: No such file or directory"
    assert str(caught.value) == message


def test_damaged_checkpoints_are_refused(tmp_path: Path, left: str) -> None:
    path = tmp_path / "part"
    for damaged in ("", "{}", left[:-20], left.replace('"margin":', '"margn":'), "[1]"):
        assert refused(path, damaged).startswith(f"{path}: is no checkpoint, or damaged: ")
    content = json.loads(left)
    content["fitness"][0][0] += 0.25
    content["mean"][0] += 1e-9
    assert "cannot be gone on from exactly" in refused(path, json.dumps(content))
    content["fitness"][0].pop()
    message = refused(path, json.dumps(content))
    assert message == "the checkpoint is damaged: generation 1 has 3 strategies, not 4"


def test_another_searchs_checkpoint_is_refused(tmp_path: Path, left: str) -> None:
    path = tmp_path / "part"
    said = "the checkpoint is another search's, with another"
    other = TuneConfig(**{**vars(TINY), "blocks": 3})
    assert refused(path, left, config=other) == f"{said} blocks: 2 there, 3 now"
    rules = changed(SHORT, blockade_penalty=7)
    digests = f"{SHORT.digest} there, {rules.digest} now"
    assert refused(path, left, ruleset=rules) == f"{said} rules: {digests}"
    assert refused(path, left, start={"margin": 1.0}) == f"{said} start"


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "mine.yaml"
    check_new(out)
    out.touch()
    with pytest.raises(TuneError, match=r"mine\.yaml is there already: choose another file, or"):
        check_new(out)
    checkpoint_of(out).touch()
    with pytest.raises(TuneError, match=r"mine\.yaml\.checkpoint is there already: go on from it"):
        check_new(out)


# --- The file


@pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL, SHORT], ids=["journey", "brawl", "short"])
def test_the_file_is_a_strategy(tmp_path: Path, ruleset: Ruleset) -> None:
    weights = {"lead": -0.5, "margin": 1.0, "prey": 1e-7}
    tuned = Tuned(weights, Estimate(0.5, 0.4, 0.6, 100), 3)
    path = tmp_path / "mine.yaml"
    path.write_text(strategy_text(tuned, ruleset, "retinue tune --seed 3\x07", "greedy"))
    assert path.read_text().splitlines()[:3] == [
        "# retinue tune --seed 3?",
        f"# Rules {ruleset.digest} ({ruleset.mode}); champions, greedy among them: 3.",
        "# First places against three of greedy: 50.0% (40.0% to 60.0%), 400 matches; par is 25%.",
    ]
    found = read_strategy(path)
    assert found.weights_for(ruleset, "mine") == weights
    assert found.rules == (ruleset.digest,)
    agent = make_agent(f"strategy:file={path}", ruleset)
    assert agent.compiled is not None
    assert agent.compiled.memory is not None
    packed = agent.compiled.memory["weights"][0]
    np.testing.assert_allclose(packed[FACT_NAMES.index("prey")], 1e-7)


def test_a_checkpoint_is_read_as_it_was_written(tmp_path: Path) -> None:
    scales = dict.fromkeys(FACT_NAMES, 1 / 3)
    first = Checkpoint(stamp={"seed": 1}, scales=scales, champions=(GREEDY,))
    judgement = Judgement(generation=1, share=0.1, low=0.0, better=False)
    after = first.after((0.1, 1 / 3), [1e-300, -2 / 3], judgement, {"margin": 1.0})
    assert after.champions == (GREEDY,)
    better = after.after((0.2, 0.3), [1.0, 2.0], judgement.model_copy(update={"better": True}), {})
    assert better.champions == (GREEDY, {})
    for each in (first, after, better):
        each.write(tmp_path / "part")
        assert Checkpoint.read(tmp_path / "part") == each
