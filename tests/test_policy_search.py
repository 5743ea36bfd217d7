"""The agent that looks ahead with a trained policy: what its rollouts are worth, and what it plays.

Its policies here are formulas, so that what is right can be told; what a rollout is worth is
worked out here a second time, turn by turn.
"""

import copy
import pickle
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from formulas import MARGIN, RACING, Formula, choose, played, scores, some_games, value_of
from playing import considered
from positions import BRAWL, JOURNEY, changed
from proposing import late_position
from retinue.agents import playouts
from retinue.agents.network import CandidateNetwork, network_for
from retinue.agents.policy import (
    Model,
    PolicyAgent,
    PolicyError,
    Returns,
    TorchModel,
    load_policy,
    manifest_of,
    save_policy,
)
from retinue.agents.policy_rollouts import begin
from retinue.agents.policy_search import PolicySearchAgent
from retinue.agents.registry import AgentError, known_agents, make_agent, split_specs
from retinue.agents.search import LEAST, Comparison, Settings
from retinue.envs.actions import Encoding
from retinue.envs.facts import FACT_COUNT, FACT_NAMES
from retinue.envs.game import engine, jit
from retinue.envs.game.dice import derive
from retinue.envs.game.ruleset import MODES, Ruleset
from retinue.envs.game.state import GAME, OVER, TURN, Record, totals
from retinue.envs.opponents import View
from retinue.envs.parallel import MAX_THREADS
from retinue.evaluation.arena import play_matches

BOTH = pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=MODES)
SMALL = Settings(48, 0.0, depth=1, top=3, candidates=6, doubt=0.0, threads=1)
pytestmark = pytest.mark.skipif(not jit.ENABLED, reason="plays many matches ahead")


CERTAIN = dict(zip(FACT_NAMES, 1e6 * np.random.default_rng(0).random(FACT_COUNT), strict=True))


def searching(
    model: Model,
    ruleset: Ruleset = JOURNEY,
    returns: Returns | None = MARGIN,
    candidates: int = 12,
    **changes: Any,
) -> PolicySearchAgent:
    """Return an agent that looks ahead with a model."""
    policy = PolicyAgent(model, Encoding("candidates", ruleset, candidates), "policy:it", returns)
    return PolicySearchAgent("policy:it@search", policy, replace(SMALL, **changes))


def close_finishes(count: int) -> Any:
    """Return last decisions of matches in Journey in which all have nearly the same total."""
    chance = random.Random(3)
    games = np.array([late_position(chance, JOURNEY) for _ in range(count)], GAME)
    games["clock_seconds"] = JOURNEY.turn_seconds
    games["combat"] += np.random.default_rng(3).integers(0, 30, (count, 4)) - totals(games)
    return games


# --- What a rollout is worth


def worth(
    game: Record, turn: Record, seed: Any, agent: PolicyAgent, returns: Returns, depth: int
) -> float:
    """Return what a rollout is worth, played one turn after the other."""
    seat, ruleset = int(game["seat"]), agent.encoding.ruleset
    paid, factor, found, left = value_of(game, seat, returns), 1.0, 0.0, depth
    game = played(game, ruleset, turn)
    while game["phase"] != OVER:
        engine.roll(game, ruleset.packed, seed)
        if game["seat"] == seat:
            now = value_of(game, seat, returns)
            found += factor * (now - paid)
            paid, factor, left = now, factor * returns.discount, left - 1
            if left == 0:
                _, seen, _ = considered(game, agent.encoding, [0])
                return found + factor * float(agent.model.evaluate(seen[0][None])[1][0])  # type: ignore[index]
        game = played(game, ruleset, choose(agent, np.array([game], GAME), ruleset)[0])
    return found + factor * (value_of(game, seat, returns) - paid)


@BOTH
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("mode", ["margin", "score", "place"])
def test_a_rollout_is_worth_what_training_would_have_paid(
    ruleset: Ruleset, depth: int, mode: Any
) -> None:
    returns = Returns(mode=mode, scale=70.0, place_bonus=1.5, discount=0.8)
    model = Formula(RACING, scores)
    agent = searching(model, ruleset, returns, depth=depth)
    games, keys = some_games(ruleset, 4), np.array([5, 6, 7, 8], np.uint64)
    games["clock_seconds"][:2] = ruleset.turn_seconds * np.array([2, 6])
    searches = [Comparison(turns) for turns in agent._candidates(games)]
    agent._play(games, keys, searches, [(0, 2), (1, 3), (3, 2)])
    agent._play(games, keys, searches, [(0, 1), (3, 1)])
    playing = PolicyAgent(model, Encoding("candidates", ruleset, 6), "policy")
    for index, count in ((0, 3), (1, 3), (3, 3)):
        found = searches[index]
        assert found.scores.shape == (len(found.turns), count)
        seeds = [np.uint64(derive(keys[index], order)) for order in range(count)]
        expected = [
            [worth(games[index], turn, seed, playing, returns, depth) for seed in seeds]
            for turn in found.turns
        ]
        np.testing.assert_allclose(found.scores, expected, rtol=0, atol=1e-5)
    assert not searches[2].scores.size


def test_the_network_is_asked_once_for_each_turn_of_all_rollouts() -> None:
    model = Formula(RACING)
    agent = searching(model, rollouts=72, top=3)
    games = some_games(JOURNEY, 8)
    agent.choose(View(games, np.arange(8, dtype=np.uint64), JOURNEY), np.random.default_rng(0))
    assert model.asked == [8, *[8 * 3 * 12] * 4, *[8 * 2 * 18] * 4]


def test_so_many_rollouts_go_in_step_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    games = some_games(JOURNEY, 3)
    whole = choose(searching(Formula(RACING, scores)), games)
    monkeypatch.setattr(playouts, "AT_ONCE", 10)
    model = Formula(RACING, scores)
    assert choose(searching(model), games).tobytes() == whole.tobytes()
    assert max(model.asked) == 10


# --- What it plays


def test_it_takes_what_leads_to_the_best_value() -> None:
    """The value hates progress, which the policy likes: the search takes what has least of it."""
    section = Encoding("candidates", JOURNEY).layout()["progression"].slice
    model = Formula(RACING, lambda states: -1000 * states[:, section][:, :5].sum(axis=1))
    returns = Returns(mode="margin", scale=1e6, place_bonus=0.0, discount=1.0)
    agent = searching(model, returns=returns, top=8, rollouts=200, candidates=32)
    games = some_games(JOURNEY, 12)
    turns = choose(agent, games)
    lowest = 0
    for game, turn, tried in zip(games, turns, agent._candidates(games), strict=True):
        seat = game["seat"]
        after = [played(game, JOURNEY, each)["progression"][seat].sum() for each in [turn, *tried]]
        lowest += after[0] == min(after)
        assert after[0] <= after[1], "no more than the policy's own choice"
    assert lowest >= 11, "unless others capture it, the least is the least"


def test_the_last_turn_of_a_match_pays_by_place() -> None:
    games = close_finishes(60)
    agent = searching(
        Formula(RACING, lambda states: np.full(len(states), 1e9)), top=12, rollouts=1000
    )
    searches = [Comparison(turns) for turns in agent._candidates(games)]
    agent._play(games, np.arange(60, dtype=np.uint64), searches, [(i, 2) for i in range(60)])
    many = 0
    for game, compared, chosen in zip(games, searches, choose(agent, games), strict=True):
        seat = int(game["seat"])
        ends = [played(game, JOURNEY, turn) for turn in compared.turns]
        gains = [value_of(end, seat, MARGIN) - value_of(game, seat, MARGIN) for end in ends]
        assert compared.scores == pytest.approx(np.transpose([gains, gains]))
        assert value_of(played(game, JOURNEY, chosen), seat, MARGIN) == pytest.approx(
            max(value_of(end, seat, MARGIN) for end in ends)
        )
        many += len({int((totals(end) > totals(end)[seat]).sum()) for end in ends}) > 1
    assert many > 4, "turns that lead to different places"


@pytest.mark.parametrize(
    "changes", [{"rollouts": 0}, {"rollouts": 2 * LEAST - 1}, {"top": 1}, {"doubt": 1e9}]
)
def test_without_better_knowledge_it_plays_as_the_policy(changes: dict[str, Any]) -> None:
    games = some_games(JOURNEY, 8)
    agent = searching(Formula(RACING, scores), **changes)
    assert choose(agent, games).tobytes() == choose(agent._playouts.policy, games).tobytes()
    bold = searching(Formula(RACING, scores))
    assert choose(bold, games).tobytes() != choose(agent._playouts.policy, games).tobytes()


def test_what_the_policy_thinks_nothing_of_is_not_tried() -> None:
    games = some_games(JOURNEY, 8)
    for likes, most in ((RACING, 5), (CERTAIN, 1)):
        agent = searching(Formula(likes), top=5, rollouts=1000)
        counts = [len(turns) for turns in agent._candidates(games)]
        assert max(counts) == most
    own = choose(agent._playouts.policy, games)
    assert [turns[0] for turns in agent._candidates(games)] == list(own)


# --- Chance


@BOTH
def test_a_key_decides_whatever_the_batch_and_the_threads(ruleset: Ruleset) -> None:
    games = some_games(ruleset, 12)
    before = games.tobytes()
    turns = choose(searching(Formula(RACING, scores), ruleset), games, ruleset)
    assert turns.dtype == TURN
    assert games.tobytes() == before
    for threads in {1, MAX_THREADS}:
        agent = searching(Formula(RACING, scores), ruleset, threads=threads)
        again = choose(agent, games[::-1], ruleset, range(11, -1, -1))
        assert again[::-1].tobytes() == turns.tobytes()
    one_by_one = [choose(agent, games[i : i + 1], ruleset, [i])[0] for i in range(12)]
    assert np.array(one_by_one, TURN).tobytes() == turns.tobytes()
    assert choose(agent, games, ruleset, range(100, 112)).tobytes() != turns.tobytes()
    assert choose(agent, games[:0], ruleset).shape == (0,)


def test_its_dice_come_from_the_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def note(games: Any, starts: Any, copies: Any, rollouts: Any, *rest: Any) -> None:
        seeds.extend(rollouts["seed"].tolist())
        begin(games, starts, copies, rollouts, *rest)

    monkeypatch.setattr(playouts, "begin", note)
    agent = searching(Formula(RACING), rollouts=48, top=2)
    choose(agent, some_games(JOURNEY, 1), keys=[99])
    drawn = [int(derive(np.uint64(99), order)) for order in range(24)]
    assert seeds == drawn * 2, "the same ones for both turns"


def test_a_copy_plays_the_same_and_takes_no_addresses_along() -> None:
    games = some_games(JOURNEY, 2)
    agent = searching(TorchModel(CandidateNetwork([8], [8])))
    turns = choose(agent, games)
    assert len(agent._playouts._memory.games) > 0
    for copied in (pickle.loads(pickle.dumps(agent)), copy.deepcopy(agent)):
        assert copied.name == agent.name
        assert len(copied._playouts._memory.games) == 0
        assert choose(copied, games).tobytes() == turns.tobytes()


# --- Its budget


def test_seconds_are_kept() -> None:
    games = some_games(JOURNEY, 5)
    agent = searching(Formula(RACING, scores), time=0.2, rollouts=0)
    choose(agent, games[:1])
    began = time.perf_counter()
    choose(agent, games)
    taken = (time.perf_counter() - began) / len(games)
    assert 0.15 < taken < 0.6
    certain = searching(Formula(CERTAIN), time=5.0)
    began = time.perf_counter()
    choose(certain, games)
    assert time.perf_counter() - began < 2, "where there is nothing to compare, no time is spent"


# --- How it is asked for


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with policies, untrained, of two encodings."""
    folder = tmp_path_factory.mktemp("policies")
    torch.manual_seed(0)
    for name in ("candidates", "steps"):
        encoding = Encoding(name, JOURNEY, 8)
        network = network_for(encoding, [8], [8])
        save_policy(folder / name, network, manifest_of(encoding, (8,), (8,), 0, MARGIN))
    return folder


def test_a_policy_tells_what_it_was_paid(folders: Path) -> None:
    assert load_policy(folders / "candidates", JOURNEY).returns == MARGIN
    assert '"discount": 0.9' in (folders / "candidates" / "policy.json").read_text()


@pytest.mark.parametrize(
    "options", ["", ":time=0.01", ":rollouts=40,top=2,depth=2,candidates=4,doubt=0.5,threads=1"]
)
def test_it_is_asked_for_by_name_and_in_lists(folders: Path, options: str) -> None:
    spec = f"policy:{folders / 'candidates'}@search{options}"
    assert split_specs(f"racer,{spec},racer") == ["racer", spec, "racer"]
    agent: Any = make_agent(spec, JOURNEY)
    assert isinstance(agent, PolicySearchAgent)
    assert agent.name == spec
    given = dict(part.split("=") for part in options[1:].split(",") if part)
    for key, value in given.items():
        assert getattr(agent._settings, key) == float(value)


def test_it_is_listed() -> None:
    assert "FOLDER@search" in known_agents()["policy:FOLDER"]


def test_the_at_of_a_folder_is_its_own(tmp_path: Path, folders: Path) -> None:
    place = tmp_path / "me@home"
    place.mkdir()
    (place / "run").symlink_to(folders / "candidates")
    for suffix, kind in (("", PolicyAgent), ("@search", PolicySearchAgent)):
        spec = f"policy:{place / 'run'}{suffix}"
        agent = make_agent(spec, JOURNEY)
        assert type(agent) is kind
        assert agent.name == spec


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "candidates@serach",
            "@serach: after the @ stands search or lookahead, as in .*candidates@search",
        ),
        ("candidates@", "@: after the @ stands search or lookahead"),
        ("candidates@search:", "@search: '' is no option; give them as .*@search:rollouts=400,"),
        ("candidates@search:roll=3", "@search has no option 'roll': did you mean rollouts"),
        ("candidates@search:base=racer", "@search has no option 'base': "),
        ("candidates@search:top=0", "option top must be a whole number from 1 to 128, not '0'"),
        ("candidates@search:candidates=1", "option candidates must be a whole number from 2 to"),
        ("candidates@search:time=-1", "option time must be a number of at least 0, not '-1'"),
        ("candidates@search:threads=9999", "@search: option threads must be 0 to .*, not 9999"),
        ("steps@search", "looking ahead needs a policy with values, .*; this one's is steps"),
        ("nowhere@search", "No such file"),
    ],
)
def test_what_cannot_be_searched_is_refused(folders: Path, spec: str, message: str) -> None:
    with pytest.raises(AgentError, match=message) as caught:
        make_agent(f"policy:{folders}/{spec}", JOURNEY)
    assert "\n" not in str(caught.value)


def test_a_policy_of_unknown_rewards_or_other_rules_is_refused() -> None:
    with pytest.raises(PolicyError, match="does not tell in which rewards its values are"):
        searching(Formula(RACING), returns=None)
    without = Formula(RACING)
    without.value = lambda states: None
    with pytest.raises(PolicyError, match="policy:it: has no values, which looking ahead needs"):
        choose(searching(without), some_games(JOURNEY, 1))
    with pytest.raises(ValueError, match="agent policy:it@search was made for journey"):
        choose(searching(Formula(RACING)), some_games(BRAWL, 1), BRAWL)


@BOTH
def test_whole_matches_are_legal(ruleset: Ruleset) -> None:
    short = changed(ruleset, clock_seconds=24 * ruleset.turn_seconds)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    agent = searching(TorchModel(CandidateNetwork([8], [8])), short, top=2, rollouts=16, depth=2)
    matches = play_matches([agent, make_agent("racer", short)] * 2, short, range(3))
    assert (matches.decisions.sum(axis=1) == 24).all()
