"""The league: who is met, how often, for how long; who is admitted; resuming; sharpening."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from retinue.agents.network import network_for
from retinue.agents.registry import make_agent
from retinue.envs.actions import Encoding
from retinue.envs.batch import Batch
from retinue.envs.facts import FACT_COUNT
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.game.schema import SchemaError
from retinue.envs.kernels import MAX_OPPONENTS
from retinue.envs.observation import EXTRA_AT
from retinue.training.candidate_policy import Extractor
from retinue.training.config import SPARE_PLACES, LeagueConfig, TrainConfig
from retinue.training.league import League
from retinue.training.ppo import train
from retinue.training.run_folder import RunFolder
from test_offers import shortened
from test_resume import at_step, press_ctrl_c
from test_training import metrics, tiny, weights

JOURNEY = load_ruleset("journey")
ENCODING = Encoding("turn", JOURNEY)
SCRIPTED = [make_agent(name, JOURNEY) for name in ("racer", "random", "spread")]


def network(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return network_for(ENCODING, [4], [4]).eval()


def new_league(**changes: Any) -> tuple[League, Batch]:
    """Return a league and a batch that meets it."""
    config = LeagueConfig(**{"latest": 0.25, "snapshots": 0.5, "most": 3, **changes})
    league = League(config, SCRIPTED, ENCODING, network, 1)
    batch = Batch(
        JOURNEY,
        4,
        encoding="turn",
        seats="any",
        opponents=league.agents,
        draw="each match",
        threads=1,
    )
    league.deal(batch)
    batch.reset(1)
    return league, batch


def admit(league: League, batch: Batch, *, verdict: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the league test a learner with an outcome that we choose."""

    def compare(one: Any, other: Any, ruleset: Any, test: Any, **_: Any) -> None:
        test.add([1.0 if verdict else 0.0] * 40)

    monkeypatch.setattr("retinue.training.league.compare", compare)
    return league.update(network(), batch, league._next_test)


def shares(league: League) -> dict[str, float]:
    counts = Counter(agent.name for agent in league.pool())
    return {name: count / MAX_OPPONENTS for name, count in counts.items()}


def end_all(batch: Batch) -> None:
    """Let every match under way end, and start the next ones."""
    batch.start_next(np.arange(batch.num_games))


def test_without_a_league_there_are_scripted_agents_in_the_shares_of_their_names() -> None:
    league = League(None, SCRIPTED * 2, ENCODING, network, 1)
    assert league.agents == tuple(SCRIPTED * 2)
    found = Counter(agent.name for agent in league.pool())
    assert set(found) == {"racer", "random", "spread"}
    assert max(found.values()) - min(found.values()) <= 2
    assert sum(found.values()) == MAX_OPPONENTS


def test_seats_are_shared_as_the_configuration_says(monkeypatch: pytest.MonkeyPatch) -> None:
    league, batch = new_league()
    assert set(shares(league)) == {"racer", "random", "spread"}  # nobody else is there yet
    admit(league, batch, verdict=True, monkeypatch=monkeypatch)
    found = shares(league)
    snapshot, latest = f"copy {league.snapshots[0].place}", f"copy {league.latest}"
    assert snapshot != latest
    assert found[snapshot] == 0.5
    assert found[latest] == 0.25
    assert sum(found[name] for name in ("racer", "random", "spread")) == 0.25


def test_harder_snapshots_are_met_oftener(monkeypatch: pytest.MonkeyPatch) -> None:
    league, batch = new_league(hardness=2.0)
    for _ in range(2):
        admit(league, batch, verdict=True, monkeypatch=monkeypatch)
        end_all(batch)
    easy, hard = (len(SCRIPTED) + each.place for each in league.snapshots)
    league._met[[easy, hard]] = 98.0
    league._beaten[easy], league._beaten[hard] = 79.0, 49.0
    assert league.rates[easy] == pytest.approx(0.8)
    assert league.rates[hard] == pytest.approx(0.5)
    found = shares(league)
    ratio = found[league.agents[hard].name] / found[league.agents[easy].name]
    assert ratio == pytest.approx((0.5 / 0.2) ** 2, rel=0.25)  # in entries of 64


def test_results_are_noted_for_whoever_sat_there() -> None:
    league, batch = new_league()
    batch.seats[:] = 2
    batch.control[:] = [[0, 1, -1, 2]] * 4
    batch.final_places[:] = [[1, 3, 2, 4], [1, 3, 2, 4], [2, 2, 2, 1], [4, 4, 4, 4]]
    league.note(batch, np.array([0, 2]))
    assert league._met[:3].tolist() == [2, 2, 2]
    assert league._beaten[:3].tolist() == [0.5, 1.5, 1.0]
    assert league.results() == {"racer": 0.375, "random": 0.625, "spread": 0.5}


def test_a_copy_keeps_its_place_until_its_matches_are_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    league, batch = new_league(latest=1.0, snapshots=0.0)
    league.update(network(1), batch, 0)
    end_all(batch)
    first = league.latest
    at = len(SCRIPTED) + first
    assert (batch.control == at).sum() == 12  # all others' seats
    mine = league.places[first].network
    for seed in range(2, 12):
        league.update(network(seed), batch, 0)
        assert league.latest != first
        assert league.places[first].network is mine
    end_all(batch)  # its last matches are over
    assert (batch.control == at).sum() == 0
    league.update(network(99), batch, 0)
    league.update(network(99), batch, 0)
    assert any(place.network is not None for place in league.places)
    assert first in league._free(batch) or league.places[first].network is not mine


def test_only_the_stronger_are_admitted_and_the_easiest_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    league, batch = new_league()
    told = admit(league, batch, verdict=False, monkeypatch=monkeypatch)
    assert told.startswith("No new snapshot: 0% ")
    assert "against racer" in told
    assert league.snapshots == []
    for number in range(3):
        end_all(batch)
        told = admit(league, batch, verdict=True, monkeypatch=monkeypatch)
        assert told.startswith(f"Snapshot {number + 1} of at most 3: 100% ")
    seats = [len(SCRIPTED) + each.place for each in league.snapshots]
    league._met[seats] = 100.0
    league._beaten[seats] = [50.0, 90.0, 99.0]  # the last one is whom the next has to beat
    easiest, champion = league.snapshots[1], league.snapshots[2]
    end_all(batch)
    told = admit(league, batch, verdict=True, monkeypatch=monkeypatch)
    assert f"against the snapshot of {champion.decisions:,} decisions" in told
    assert len(league.snapshots) == 3
    assert easiest not in league.snapshots
    assert champion in league.snapshots


def test_a_league_that_leaves_nothing_or_seats_too_many_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"latest \+ snapshots = 1\.5 must be at most 1"):
        tiny("league={latest: 0.75, snapshots: 0.75}")
    many = [f"league={{most: {32}}}", f"opponents={['racer'] * (MAX_OPPONENTS - 32)}"]
    with pytest.raises(SchemaError, match=f"{SPARE_PLACES} more places"):
        tiny(*many)


def test_an_empty_place_says_so() -> None:
    league, _ = new_league()
    nothing: Any = None
    with pytest.raises(RuntimeError, match="copy 2 is asked to play, but the place is empty"):
        league.places[2].choose(nothing, nothing)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> TrainConfig:
    """Six rollouts of 256, in matches of ten turns: copies' places are needed again."""
    rules = shortened(JOURNEY, 10).model_dump(mode="json")
    path = tmp_path_factory.mktemp("rules") / "short.yaml"
    path.write_text(yaml.safe_dump(rules))
    return tiny(
        f"rules={path}",
        "decisions=1536",
        "opponents=[random]",
        "league={latest: 0.4, snapshots: 0.4, most: 2, every: 300, margin: 0.4, error: 0.4, "
        "blocks: 16}",
        "evaluation.every=600",
        "evaluation.against=[random]",
    )


@pytest.fixture(scope="module")
def whole(config: TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = RunFolder.create(tmp_path_factory.mktemp("league") / "run", config)
    assert train(config, run) is not None
    return run


@pytest.mark.parametrize("step", [700, 1100])
def test_a_broken_off_league_goes_on_exactly(
    step: int,
    config: TrainConfig,
    whole: RunFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = RunFolder.create(tmp_path / "run", config)
    with monkeypatch.context() as patch:
        at_step(step // 16 * 16, press_ctrl_c, patch)
        assert train(config, run) is None
    again, saved = RunFolder.open(run.path)
    assert train(saved, again, resume=True) is not None
    assert metrics(run) == metrics(whole)
    for name, tensor in weights(whole).items():
        torch.testing.assert_close(weights(run)[name], tensor, rtol=0, atol=0)
    mine, theirs = run.load_checkpoint()["league"], whole.load_checkpoint()["league"]
    assert theirs["tests"] > 2
    assert any(theirs["met"])
    places = [each.pop("places") for each in (mine, theirs)]
    assert mine == theirs
    for one, other in zip(*places, strict=True):
        assert (one is None) == (other is None)
        for name in one or {}:
            torch.testing.assert_close(one[name], other[name], rtol=0, atol=0)


# --- Temperature


def test_a_policy_by_itself_is_as_sharp_as_the_learner_became() -> None:
    """Logits and values, which weigh candidates by how likely they are."""
    learner = Extractor([8], [8])
    observations = torch.rand(5, EXTRA_AT + 6 * FACT_COUNT)
    plain_logits, plain_values = learner.copy([8], [8])(observations)
    learner.temperature = 0.05
    sharp_logits, sharp_values = learner.copy([8], [8])(observations)
    torch.testing.assert_close(sharp_logits, plain_logits / 0.05)
    torch.testing.assert_close(learner(observations), (sharp_logits, sharp_values))
    assert not torch.allclose(sharp_values, plain_values, atol=1e-4)


def test_the_learner_is_sharpened_as_the_configuration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(
        "encoding=candidates",
        "candidates=4",
        "ppo.temperature=1.0",
        "ppo.final_temperature=0.5",
        "evaluation.every=100000",
        "evaluation.against=[random]",
    )
    seen: list[float] = []
    act = Extractor.score

    def score(self: Extractor, states: Any, rows: Any) -> Any:
        seen.append(self.temperature)
        return act(self, states, rows)

    monkeypatch.setattr(Extractor, "score", score)
    train(config, RunFolder.create(tmp_path / "run", config))
    assert list(dict.fromkeys(seen)) == [1.0, 0.875, 0.75, 0.625]  # four rollouts and updates


def test_other_encodings_have_no_temperature() -> None:
    with pytest.raises(SchemaError, match=r"ppo\.temperature.* must be 1 with encoding turn"):
        tiny("ppo.final_temperature=0.5")
