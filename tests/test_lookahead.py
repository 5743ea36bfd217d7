"""The agent that tries a policy's favourites before it chooses: which, how, and what it then plays.

Its policies are formulas; what a trial is worth is worked out here a second time, turn by turn.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from exporting import encoding_of, put
from formulas import MARGIN, RACING, Formula, choose, played, scores, some_games, value_of
from playing import considered
from positions import BRAWL, JOURNEY, changed
from retinue.agents.lookahead import LookaheadAgent, favourites_of
from retinue.agents.network import CandidateNetwork
from retinue.agents.policy import Lookahead, PolicyAgent, PolicyError, TorchModel
from retinue.agents.registry import AgentError, make_agent, make_known_agent
from retinue.agents.search import quickened
from retinue.envs.actions import Encoding
from retinue.envs.game import engine, jit
from retinue.envs.game.dice import derive
from retinue.envs.game.ruleset import MODES, Ruleset
from retinue.envs.game.state import OVER, TURN, Record
from retinue.envs.opponents import View
from retinue.evaluation.arena import play_matches

BOTH = pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=MODES)
pytestmark = pytest.mark.skipif(not jit.ENABLED, reason="plays many matches ahead")


def looking(
    model: Any, ruleset: Ruleset = JOURNEY, *, others: str = "tactician", **settings: Any
) -> LookaheadAgent:
    """Return an agent that looks ahead with a model."""
    policy = PolicyAgent(model, Encoding("candidates", ruleset, 12), "policy:it", MARGIN)
    chosen = Lookahead(**{"top": 3, "rollouts": 2, "candidates": 6, **settings})
    theirs = make_known_agent(others, ruleset).compiled
    assert theirs is not None
    return LookaheadAgent("policy:it@lookahead", policy, chosen, quickened(theirs, 6))


def alone(agent: LookaheadAgent) -> PolicyAgent:
    """Return its policy, as it plays by itself."""
    return agent._playouts.policy


def worth(game: Record, turn: Record, seed: Any, agent: LookaheadAgent) -> float:
    """Return what a trial is worth, played one turn after the other."""
    policy = alone(agent)
    seat, ruleset = int(game["seat"]), policy.encoding.ruleset
    others = make_known_agent("tactician:candidates=6", ruleset)
    paid = value_of(game, seat, MARGIN)
    game = played(game, ruleset, turn)
    while game["phase"] != OVER:
        engine.roll(game, ruleset.packed, seed)
        if game["seat"] == seat:
            _, seen, _ = considered(game, Encoding("candidates", ruleset, 6), [0])
            value = float(policy.model.evaluate(seen[0][None])[1][0])  # type: ignore[index]
            return value_of(game, seat, MARGIN) - paid + MARGIN.discount * value
        key = [derive(seed, int(game["turn"]))]
        game = played(game, ruleset, choose(others, np.array([game]), ruleset, key)[0])
    return value_of(game, seat, MARGIN) - paid


@BOTH
def test_it_plays_the_favourite_that_trials_find_worth_most(ruleset: Ruleset) -> None:
    agent = looking(Formula(RACING, scores), ruleset)
    games = some_games(ruleset, 12)
    games["clock_seconds"][:2] = ruleset.turn_seconds * np.array([1, 3])
    logits, masks, offers = agent._playouts.look(games)
    favourites, there = favourites_of(logits, masks, 3)
    assert favourites.shape == (12, 3)
    other = 0
    for index, (game, turn) in enumerate(zip(games, choose(agent, games, ruleset), strict=True)):
        count = int(there[index].sum())
        turns = np.zeros(count, TURN)
        for name in ("direction", "noble_steps", "noble_after", "rolls"):
            turns[name] = offers[index][name][favourites[index, :count]]
        seeds = [np.uint64(derive(np.uint64(index), order)) for order in range(2)]
        worths = [np.mean([worth(game, each, seed, agent) for seed in seeds]) for each in turns]
        best = int(np.argmax(worths))
        assert turn == turns[best], worths
        other += best > 0
    assert other > 3, "else the trials would not matter"


def test_favourites_are_those_of_the_highest_logits_each_once() -> None:
    logits = np.array([[1, 5, 5, 3, 9, 4, 3], [2, 7, 7, 7, 0, 0, 0], [8, 0, 0, 0, 0, 0, 0]])
    masks = np.array([[1, 1, 1, 1, 0, 1, 1], [1, 1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0]])
    favourites, there = favourites_of(logits.astype(np.float32), masks.astype(bool), 4)
    assert favourites[0].tolist() == [1, 5, 3, 0]
    assert favourites[1, :2].tolist() == [1, 0]
    assert favourites[2, 0] == 0
    assert there.tolist() == [[True] * 4, [True, True, False, False], [True, False, False, False]]


def test_with_a_single_favourite_it_plays_as_the_policy_and_tries_nothing() -> None:
    games = some_games(JOURNEY, 8)
    model = Formula(RACING, scores)
    agent = looking(model, top=1)
    turns = choose(agent, games)
    assert model.asked == [8]
    assert turns.tobytes() == choose(alone(agent), games).tobytes()


def test_the_network_is_asked_twice_for_all_games() -> None:
    model = Formula(RACING, scores)
    choose(looking(model), some_games(JOURNEY, 8))
    assert model.asked[0] == 8
    assert len(model.asked) == 2
    assert 8 * 2 * 2 <= model.asked[1] <= 8 * 3 * 2


@BOTH
def test_a_key_decides_whatever_the_batch_and_the_threads(ruleset: Ruleset) -> None:
    games = some_games(ruleset, 12)
    before = games.tobytes()
    agent = looking(Formula(RACING, scores), ruleset)
    turns = choose(agent, games, ruleset)
    assert games.tobytes() == before
    one_by_one = [choose(agent, games[i : i + 1], ruleset, [i])[0] for i in range(12)]
    assert np.array(one_by_one, TURN).tobytes() == turns.tobytes()
    threaded = looking(Formula(RACING, scores), ruleset)
    assert threaded.threads == 1
    threaded.threads = 2
    assert choose(threaded, games, ruleset).tobytes() == turns.tobytes()
    assert choose(agent, games, ruleset, range(100, 112)).tobytes() != turns.tobytes()
    assert choose(agent, games[:0], ruleset).shape == (0,)


def test_a_copy_plays_the_same() -> None:
    games = some_games(JOURNEY, 4)
    torch.manual_seed(0)
    agent = looking(TorchModel(CandidateNetwork([8], [8])))
    turns = choose(agent, games)
    copied = pickle.loads(pickle.dumps(agent))
    assert len(copied._playouts._memory.games) == 0
    assert choose(copied, games).tobytes() == turns.tobytes()


def test_other_rules_are_refused() -> None:
    agent = looking(Formula(RACING))
    with pytest.raises(ValueError, match="agent policy:it@lookahead was made for journey"):
        choose(agent, some_games(BRAWL, 1), BRAWL)


# --- How it is asked for


def test_a_file_says_how_it_looks_ahead(tmp_path: Path) -> None:
    meant: Any = {"top": 2, "candidates": 5}
    path = put(tmp_path / "a.onnx", encoding_of("candidates"), lookahead=meant)
    agent: Any = make_agent(f"policy:{path}", JOURNEY)
    assert type(agent) is LookaheadAgent
    assert agent.name == f"policy:{path}"
    assert agent._settings == Lookahead(**meant)
    plain: Any = make_agent(f"policy:{path}@lookahead:top=1", JOURNEY)
    assert plain._settings == Lookahead(top=1)
    games = some_games(JOURNEY, 6)
    assert choose(plain, games).tobytes() == choose(alone(plain), games).tobytes()


def test_options_say_it_too(tmp_path: Path) -> None:
    path = put(tmp_path / "a.onnx", encoding_of("candidates"))
    assert type(make_agent(f"policy:{path}", JOURNEY)) is PolicyAgent
    spec = f"policy:{path}@lookahead:top=5,rollouts=3,candidates=9,opponents=hunter"
    agent: Any = make_agent(spec, JOURNEY)
    wanted = Lookahead(top=5, rollouts=3, candidates=9, opponents="hunter")
    assert (agent.name, agent._settings) == (spec, wanted)
    view = View(some_games(JOURNEY, 2), np.arange(2, dtype=np.uint64), JOURNEY)
    assert agent.choose(view, np.random.default_rng(0)).shape == (2,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("tops=3", "@lookahead has no option 'tops': did you mean top"),
        ("top=0", "option top must be a whole number from 1 to 128, not '0'"),
        ("opponents=nobody", "option opponents: unknown agent 'nobody'"),
        ("opponents=search", "option opponents must be an agent that kernels can call"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, options: str, message: str) -> None:
    path = put(tmp_path / "a.onnx", encoding_of("candidates"))
    with pytest.raises(AgentError, match=message) as caught:
        make_agent(f"policy:{path}@lookahead:{options}", JOURNEY)
    assert "\n" not in str(caught.value)


def test_a_policy_without_values_is_refused() -> None:
    policy = PolicyAgent(Formula({}), Encoding("turn", JOURNEY), "policy:it", MARGIN)
    racer = make_known_agent("racer", JOURNEY).compiled
    assert racer is not None
    with pytest.raises(PolicyError, match="looking ahead needs a policy with values"):
        LookaheadAgent("it", policy, Lookahead(), racer)


@BOTH
def test_whole_matches_are_legal(ruleset: Ruleset) -> None:
    short = changed(ruleset, clock_seconds=24 * ruleset.turn_seconds)
    torch.manual_seed(1)
    policy = PolicyAgent(
        TorchModel(CandidateNetwork([8], [8])), Encoding("candidates", short, 8), "it", MARGIN
    )
    racer = make_known_agent("racer", short).compiled
    assert racer is not None
    agent = LookaheadAgent("it", policy, Lookahead(top=2, candidates=4), racer)
    matches = play_matches([agent, make_agent("racer", short)] * 2, short, range(3))
    assert (matches.decisions.sum(axis=1) == 24).all()
