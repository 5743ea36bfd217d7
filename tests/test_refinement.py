"""Refinement: a policy learns from its rollouts, goes on exactly, and says what it cannot do."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from retinue.agents.network import CandidateNetwork
from retinue.agents.playouts import Playouts, turns_of
from retinue.agents.policy import load_policy
from retinue.agents.registry import AgentError
from retinue.envs.facts import FACT_COUNT
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.game.schema import SchemaError
from retinue.envs.observation import EXTRA_AT
from retinue.training.config import TrainConfig
from retinue.training.measure import Measurement
from retinue.training.ppo import check_names, make_vec_env, train
from retinue.training.refinement import Refiner, Tried, _slope, repliers
from retinue.training.run_folder import RunFolder
from test_resume import at_step, press_ctrl_c
from test_training import metrics, tiny, weights


def refined(*changes: str) -> TrainConfig:
    return tiny(
        "encoding=candidates",
        "candidates=8",
        "decisions=256",
        "refinement={decisions: 256, rollout_steps: 4, favourites: 3, others: 2, candidates: 4, "
        "batch_size: 32, epochs: 2}",
        *changes,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Measurement]:
    run = RunFolder.create(tmp_path_factory.mktemp("whole") / "run", refined())
    result = train(refined(), run)
    assert result is not None
    return run, result


def test_a_run_is_refined_after_ppo(whole: tuple[RunFolder, Measurement], tmp_path: Path) -> None:
    run, result = whole
    assert result.decisions == 512
    assert json.loads((run.policy / "policy.json").read_text())["decisions"] == 512
    assert [line["decisions"] for line in metrics(run)] == [256]
    alone = RunFolder.create(tmp_path / "alone", refined("refinement=null"))
    train(refined("refinement=null"), alone)
    ppo = torch.load(run.history / "256" / "policy.pt", weights_only=True)
    for name, tensor in weights(alone).items():  # what PPO learned is kept as it was
        torch.testing.assert_close(ppo[name], tensor, rtol=0, atol=0)
        torch.testing.assert_close(weights(run)[name], tensor, rtol=0, atol=0)
    added = set(weights(run)) - set(ppo)
    assert added
    assert all(name.startswith("opinion.") for name in added)
    ruleset = load_ruleset("journey")
    before, after = (load_policy(each, ruleset).model for each in (alone.path, run.path))
    seen = make_vec_env(refined())
    seen.seed(3)
    observations = seen.reset()
    assert not np.array_equal(before.evaluate(observations)[0], after.evaluate(observations)[0])


@pytest.mark.parametrize("step", [240, 256, 272, 400, 448])
def test_a_refinement_broken_off_anywhere_goes_on_exactly(
    step: int,
    whole: tuple[RunFolder, Measurement],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = RunFolder.create(tmp_path / "run", refined())
    with monkeypatch.context() as patch:
        at_step(step, press_ctrl_c, patch)
        assert train(refined(), run) is None
    learned = run.load_checkpoint()["decisions"]
    assert learned <= step
    assert json.loads((run.policy / "policy.json").read_text())["decisions"] == learned
    again, saved = RunFolder.open(run.path)
    assert train(saved, again, resume=True) == whole[1]
    assert metrics(run) == metrics(whole[0])
    for name, tensor in weights(whole[0]).items():
        torch.testing.assert_close(weights(run)[name], tensor, rtol=0, atol=0)


def refiner(config: TrainConfig, seed: int = 0) -> Refiner:
    torch.manual_seed(seed)
    environment = make_vec_env(config)
    environment.seed(seed)
    environment.reset()
    network = CandidateNetwork(config.network, config.value_network).eval()
    return Refiner(config, network, environment, config.decisions)


def test_what_is_tried_is_what_the_learner_likes_and_some_others() -> None:
    learner = refiner(refined("environments=64", "candidates=16"))
    logits = np.random.default_rng(0).normal(size=(64, 16)).astype(np.float32)
    masks = np.arange(16) < np.arange(1, 65)[:, None] % 16 + 1
    tried, there = learner._choose_tried(logits, masks)
    assert tried.shape == there.shape == (64, 5)
    drawn = set()
    for index in range(64):
        legal = np.flatnonzero(masks[index])
        chosen = tried[index][there[index]]
        assert len(set(chosen)) == len(chosen) == min(5, len(legal))
        assert set(chosen) <= set(legal)
        best = legal[np.argsort(-logits[index][legal])][:3]
        assert chosen[: len(best)].tolist() == best.tolist()
        drawn |= set(chosen[3:])
    assert len(drawn) > 10, "the others are to be drawn at random"


def test_candidates_are_worth_what_their_rollouts_say() -> None:
    config = refined("environments=8")
    learner = refiner(config)
    batch = learner.get_env().batch
    games, observations = batch.games.copy(), batch.observations.copy()
    torch.manual_seed(5)
    tried = learner._decide()
    torch.manual_seed(5)
    logits, masks, offers = learner._playouts.look(games)
    chosen, there = learner._choose_tried(logits, masks)
    seeds = torch.randint(1 << 62, (8,)).numpy().astype(np.uint64)
    others = repliers(config.refinement, batch.ruleset)  # type: ignore[arg-type]
    playouts = Playouts(learner._playouts.policy, 1, 4, others, 1)
    rows = observations[:, EXTRA_AT:].reshape(8, -1, FACT_COUNT)
    assert there.sum() > 20
    for game, rank in zip(*np.nonzero(there), strict=True):
        candidate = chosen[game, rank]
        np.testing.assert_allclose(tried.rows[game, rank], rows[game, candidate], rtol=1e-3)
        turn = turns_of(offers, np.array([game]), np.array([candidate]))
        worth = playouts.roll_out(games, np.array([game]), turn, seeds[[game]])
        np.testing.assert_allclose(tried.worths[game, rank], worth[0], rtol=1e-4, atol=1e-5)


def test_the_second_opinion_learns_what_rollouts_say() -> None:
    config = refined("environments=64", "candidates=16", "reward.scale=100", "refinement.epochs=8")
    learner = refiner(config)
    later = Tried.join([learner._decide() for _ in range(12)])
    learner._fit(Tried.join([learner._decide() for _ in range(60)]))
    opinion = learner.network.opinion
    assert opinion is not None
    with torch.no_grad():
        score = _slope(later, learner.network.policy) * later.scores(opinion)
        explained = 1 - later.error(score) / later.error(torch.zeros_like(score))
    assert explained > 0.1  # of positions that it did not learn from


def test_both_opinions_are_in_one_unit() -> None:
    """Where rollouts say what PPO said, in rewards, the second opinion's logits are PPO's."""
    learner = refiner(refined("environments=64", "refinement.epochs=400"))
    tried = Tried.join([learner._decide() for _ in range(4)])
    with torch.no_grad():
        told = 100 * tried.scores(learner.network.policy)
        for weights_ in learner.network.policy.layers[-1].parameters():
            weights_.mul_(100)
    agreed = Tried(tried.states, tried.rows, tried.there, 0.25 * told)
    assert _slope(agreed, learner.network.policy) == pytest.approx(0.25, rel=1e-3)
    learner._fit(agreed)
    assert learner.network.opinion is not None
    with torch.no_grad():
        opinion = agreed.scores(learner.network.opinion)
    alike = Tried(tried.states, tried.rows, tried.there, opinion)
    assert _slope(alike, learner.network.policy) == pytest.approx(1.0, abs=0.1)


def test_a_policy_that_tells_the_contrary_does_not_turn_the_second_opinion_round() -> None:
    learner = refiner(refined("environments=64"))
    tried = learner._decide()
    with torch.no_grad():
        told = tried.scores(learner.network.policy)
    against = Tried(tried.states, tried.rows, tried.there, -told)
    assert 0 < _slope(against, learner.network.policy) < 1e-5


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("encoding=turn", "refinement: is for the encoding candidates, not for turn"),
        ("refinement.favourites=0", "refinement.favourites"),
        ("refinement.speed=1", "refinement.speed"),
    ],
)
def test_impossible_refinements_are_refused(change: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(reason)):
        refined(change)


def test_repliers_must_be_agents_that_kernels_call() -> None:
    check_names(refined())
    with pytest.raises(AgentError, match="nobody"):
        check_names(refined("refinement.opponents=nobody"))
    with pytest.raises(ValueError, match=r"refinement\.opponents: must be an agent that"):
        check_names(refined("refinement.opponents=search"))
