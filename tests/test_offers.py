"""The encoding ``candidates``: what is offered, what its rows say, and what choosing one plays.

What holds for all encodings is tested for all of them where the interfaces are.
"""

import copy
import pickle
import random
import re
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

from playing import Dealer, any_position, as_text, check_same, considered, is_legal, trace, turned
from positions import BRAWL, JOURNEY, any_rules, changed
from proposing import late_position, propose_for
from retinue.agents.network import CandidateNetwork
from retinue.agents.policy import PolicyAgent, TorchModel, load_policy, masked_choice
from retinue.agents.registry import make_agent
from retinue.envs.actions import MAX_CANDIDATES, Encoding
from retinue.envs.aec_env import RetinueAECEnv
from retinue.envs.batch import Batch
from retinue.envs.facts import FACT_COUNT, FACT_NAMES, FACTS, pack_weights
from retinue.envs.game import engine, jit
from retinue.envs.game.events import SILENT
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.game.state import MAX_POINTS, Record, empty_turn, totals
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.offers import guide_of
from retinue.envs.strategy_file import guiding_weights, shipped_strategy
from retinue.envs.vector_env import RetinueVectorEnv
from retinue.training.config import load_config
from retinue.training.ppo import train
from retinue.training.run_folder import RunFolder
from test_actions import FAR, check_played
from test_training import tiny
from test_vector_env import compare

pytestmark = pytest.mark.skipif(not jit.ENABLED, reason="too many turns for plain Python")

MODES = pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=["journey", "brawl"])
ALL_SEATS = (0, 1, 2, 3)
SCALES = np.array([fact.scale for fact in FACTS])
LOWS = np.array([fact.low for fact in FACTS])
CHECKED = settings(max_examples=150, database=None, deadline=None)


def new_batch(ruleset: Ruleset, games: int = 1, **changed: Any) -> Batch:
    arguments = {"encoding": "candidates", "seats": ALL_SEATS, "threads": 1, **changed}
    return Batch(ruleset, games, **arguments)


def rows_of(batch: Batch) -> Any:
    """Return the section ``candidates``, float32 ``(games, candidates, FACT_COUNT)``."""
    return batch.layout.split(batch.observations)["candidates"]


def offered(game: Record, encoding: Encoding, action: int = 0) -> tuple[Record, Any, Any]:
    """Return the turn that an action means in a game, all rows and the mask."""
    turn, observations, masks = considered(game, encoding, [action])
    return turn, encoding.layout().split(observations[0])["candidates"], masks[0]


def scaled(facts: Any) -> Any:
    signed = facts / (np.abs(facts) + SCALES)
    return np.where(LOWS < 0, signed, np.clip(facts / SCALES, 0, 1))


def shortened(ruleset: Ruleset, turns: int = 6) -> Ruleset:
    """Return rules with so many turns for each seat."""
    return changed(ruleset, clock_seconds=4 * turns * ruleset.turn_seconds)


# --- What is offered


@MODES
def test_it_is_what_the_generator_proposes(ruleset: Ruleset) -> None:
    batch = new_batch(ruleset, 2)
    batch.reset(3)
    deal, ended, fewer = Dealer(batch.encoding, 3, range(2)), 0, 0
    while not ended:
        for index in range(2):
            found = propose_for(batch.games[index], ruleset, guiding_weights(ruleset.mode))
            count = len(found.turns)
            assert batch.masks[index].tolist() == [True] * count + [False] * (64 - count)
            rows = rows_of(batch)[index]
            np.testing.assert_allclose(rows[:count], scaled(found.rows), rtol=0, atol=1e-6)
            assert not rows[count:].any()
            fewer += count < 64
        ended = batch.step(deal(batch.masks))
    assert 10 < fewer < 2 * ruleset.turns, "sometimes rows are left over"


@MODES
@pytest.mark.parametrize("candidates", [2, 64, MAX_CANDIDATES])
def test_a_candidate_is_its_turn_and_its_row_says_what_it_does(
    ruleset: Ruleset, candidates: int
) -> None:
    encoding, chance = Encoding("candidates", ruleset, candidates), random.Random(candidates)
    counts = []
    for _ in range(12):
        game, _ = any_position(chance, ruleset)
        if chance.random() < 0.3:
            game = late_position(chance, ruleset)
        found = propose_for(game, ruleset, guiding_weights(ruleset.mode), candidates)
        _, rows, mask = offered(game, encoding)
        counts.append(int(mask.sum()))
        assert counts[-1] == len(found.turns)
        for action in {0, *chance.sample(range(counts[-1]), min(5, counts[-1]))}:
            turn, _, _ = offered(game, encoding, action)
            assert turn == found.turns[action]
            check_row(rows[action], game, ruleset, turn)
        assert offered(game, encoding)[0] == empty_turn(), "the first moves nothing"
    assert candidates / 2 < max(counts) <= candidates


def check_row(row: Any, game: Record, ruleset: Ruleset, turn: Record) -> None:
    """Check what a row says about scores and stores by playing the turn."""
    assert is_legal(game, ruleset, turn)
    after, seat = game.copy(), int(game["seat"])
    engine.play(after, ruleset.packed, turn, SILENT)
    others = np.delete(totals(after), seat)
    expected = {
        "progression": after["progression"][seat].sum() - game["progression"][seat].sum(),
        "bonus": after["bonus"][seat] - game["bonus"][seat],
        "home_guards": (after["position"][seat, :4] == ruleset.home).sum(),
        "noble_home": after["position"][seat, 4] == ruleset.home,
        "margin": totals(after)[seat] - others.mean(),
        "lead": totals(after)[seat] - others.max(),
        "time_left": after["clock_seconds"] / ruleset.clock_seconds,
    }
    shown = dict(zip(FACT_NAMES, row.tolist(), strict=True))
    for name, value in expected.items():
        fact = FACTS[FACT_NAMES.index(name)]
        seen = value / (abs(value) + fact.scale) if fact.low < 0 else min(value / fact.scale, 1)
        assert shown[name] == pytest.approx(seen, abs=1e-6), name
    if max(shown["combat"], shown["penalties"]) < 1:  # not cut
        fought = shown["combat"] * 600 - shown["penalties"] * 100
        gained = after["combat"][seat] - game["combat"][seat]
        assert fought == pytest.approx(gained, abs=1e-3)


@given(seed=st.integers(0, 2**32))
@CHECKED
def test_all_seats_are_offered_the_same_under_any_rules(seed: int) -> None:
    chance = random.Random(seed)
    game, ruleset = any_position(chance)
    encoding = Encoding("candidates", ruleset, 16)
    action = chance.randrange(16)
    turn, seen, masks = considered(game, encoding, [action])
    assert is_legal(game, ruleset, turn)
    assert encoding.layout().flat_space().contains(seen[0])
    if not masks[0][action]:
        assert turn == empty_turn()
    for by in (1, 2, 3):
        same, observations, legal = considered(turned(game, by, ruleset), encoding, [action])
        assert same == turn
        assert np.array_equal(observations, seen)
        assert np.array_equal(legal, masks)


def test_the_largest_scores_stay_in_their_bounds() -> None:
    game, _ = any_position(random.Random(4), JOURNEY)
    encoding = Encoding("candidates", JOURNEY)
    for points in (MAX_POINTS, -MAX_POINTS, 10**11, -(10**11)):  # beyond what 32 bits hold
        game["combat"][game["seat"]] = points
        game["progression"][:] = MAX_POINTS
        _, seen, _ = considered(game, encoding, [0])
        assert encoding.layout().flat_space().contains(seen[0])
        lead = encoding.layout().split(seen[0])["candidates"][0, FACT_NAMES.index("lead")]
        assert lead * np.sign(points) == pytest.approx(1, abs=1e-4)


@MODES
def test_the_mode_s_weights_guide_whatever_the_numbers_of_the_rules(ruleset: Ruleset) -> None:
    weights = getattr(shipped_strategy("tactician"), ruleset.mode)
    chance = random.Random(5)
    drawn = [any_rules(chance) for _ in range(30)]
    others = [rules for rules in drawn if rules.mode == ruleset.mode]
    for rules in (ruleset, *others[:4]):
        guide = guide_of(Encoding("candidates", rules, 7))
        assert guide["weights"][0].tolist() == pack_weights(weights).tolist()
        assert guide["count"] == 7
        batch = new_batch(rules, 3, candidates=7)
        batch.reset(1)
        traced = trace(batch, Dealer(batch.encoding, 1, range(3)), 40)
        assert not traced["illegal after"].any()
    assert len(others) > 4


# --- What choosing plays


@MODES
def test_a_candidate_is_played_and_nothing_else(ruleset: Ruleset) -> None:
    batch = new_batch(shortened(ruleset), candidates=9)
    batch.reset(6)
    deal, played, ended = Dealer(batch.encoding, 6, [0]), 0, 0
    while not ended:
        before, action = batch.games[0].copy(), deal(batch.masks)
        turn, _, _ = offered(before, batch.encoding, int(action[0]))
        ended = batch.step(action)
        assert not batch.illegal[0]
        check_played(batch, before, turn)
        played += 1
    assert played == 24


@pytest.mark.parametrize("action", [-1, -9, 64, 99, "unused", *FAR])
def test_an_illegal_action_moves_nothing_and_is_told(action: Any) -> None:
    batch = new_batch(JOURNEY)
    batch.reset(2)
    while batch.masks[0].all():
        batch.step(np.array([1]))
    before = batch.games[0].copy()
    batch.step(np.array([batch.masks[0].sum() if action == "unused" else action]))
    assert batch.illegal[0]
    check_played(batch, before, empty_turn())
    batch.step(np.array([0]))
    assert not batch.illegal[0]


@MODES
def test_at_the_end_nothing_is_offered(ruleset: Ruleset) -> None:
    batch = new_batch(shortened(ruleset), candidates=8)
    batch.reset(7)
    deal = Dealer(batch.encoding, 7, [0])
    while not batch.step(deal(batch.masks)):
        assert rows_of(batch)[0].any()
    assert batch.masks[0].tolist() == [True] + [False] * 7
    assert not rows_of(batch).any()
    assert not batch.illegal[0]
    batch.start_next(np.array([0]))
    assert rows_of(batch)[0].any()


# --- Other hands


@pytest.mark.parametrize("autoreset", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("candidates", [5, MAX_CANDIDATES])
def test_scalar_and_vector_offer_the_same(autoreset: AutoresetMode, candidates: int) -> None:
    arguments: dict[str, Any] = {
        "encoding": "candidates",
        "candidates": candidates,
        "seats": "any",
        "opponents": ["racer"],
        "observation": "dict",
    }
    rules = shortened(BRAWL)
    assert compare(autoreset, 3, 40, threads=2, rules=rules, **arguments) >= 15


def test_every_interface_takes_their_number() -> None:
    arguments: dict[str, Any] = {"encoding": "candidates", "candidates": 12}
    size = 281 + 12 * FACT_COUNT
    table, env = RetinueAECEnv(**arguments), RetinueEnv(**arguments)
    vector = RetinueVectorEnv(3, **arguments)
    spaces: dict[str, tuple[Any, Any]] = {
        "scalar": (env.action_space, env.observation_space),
        "vector": (vector.single_action_space, vector.single_observation_space),
        "aec": (table.action_space("red"), table.observation_spaces["red"]["observation"]),
    }
    for name, (actions, observations) in spaces.items():
        assert actions == gymnasium.spaces.Discrete(12), name
        assert observations.shape == (size,), name
    observation, info = env.reset(seed=4)
    assert np.array_equal(vector.reset(seed=4)[0][0], observation)
    table.reset(seed=4)
    for action in (3, 0, 11, 5, 99):
        agent, seen = table.agent_selection, table.last()[0]
        assert np.array_equal(seen["observation"], observation)
        assert np.array_equal(seen["action_mask"], info["action_mask"])
        assert info["action_mask"].shape == (12,)
        for other in {*table.agents} - {agent}:
            idle = table.observe(other)
            assert not idle["action_mask"].any()
            assert not idle["observation"][281:].any()
            assert idle["observation"][:281].any()
        if action < 12:
            table.step(action)
        else:
            with pytest.raises(ValueError, match=re.escape("must be in Discrete(12): 99")):
                table.step(action)
        observation, _, _, _, info = env.step(action)


def test_looking_changes_nothing() -> None:
    batch, plain = (new_batch(JOURNEY, 2, encoding=name) for name in ("candidates", "turn"))
    batch.reset(5)
    plain.reset(5)
    saved, seen = batch.save_matches(), batch.observations.copy()
    for index, seat in np.ndindex(2, 4):
        shown = batch.look(index, seat)
        assert np.array_equal(shown[:281], plain.look(index, seat)[:281])
        assert not shown[281:].any()
    assert batch.save_matches() == saved
    assert np.array_equal(batch.observations, seen)


def test_drawing_tries_the_candidate_on_a_copy() -> None:
    arguments: dict[str, Any] = {"candidates": 6, "opponents": ["racer"], "seats": 1}
    plain, drawn = (
        RetinueEnv(encoding="candidates", render_mode=mode, **arguments) for mode in (None, "ansi")
    )
    plain.reset(seed=3)
    _, info = drawn.reset(seed=3)
    for _ in range(8):
        action = int(info["action_mask"].sum()) - 1
        turn, _, _ = offered(plain.game, plain.batch.encoding, action)
        shown = [env.step(action) for env in (plain, drawn)]
        assert as_text(shown[0]) == as_text(shown[1])
        info = shown[1][-1]
        assert "Last, " in drawn.render()
        before, last = drawn.batch.last_move(0)  # type: ignore[misc]
        assert before["seat"] != 1 or last == turn
    assert plain.game == drawn.game


# --- A policy's seat


def test_a_policy_plays_as_an_agent_what_it_plays_as_the_caller() -> None:
    ruleset = shortened(BRAWL)
    torch.set_num_threads(1)
    encoding, racer = Encoding("candidates", ruleset, 10), make_agent("racer", ruleset)
    network = CandidateNetwork([16], [16])
    torch.manual_seed(1)
    for weights in network.parameters():
        torch.nn.init.normal_(weights)
    model = TorchModel(network)
    batch = new_batch(ruleset, 3, candidates=10, seats=2, opponents=[racer])
    batch.reset(9)
    ended, chosen = 0, set()
    while not ended:
        logits, _ = model.evaluate(batch.observations)
        actions = masked_choice(logits, batch.masks, [10])
        chosen |= {*actions.ravel().tolist()}
        ended = batch.step(actions.ravel())
    assert ended == 3
    assert len(chosen) > 1
    agents = [PolicyAgent(model, encoding, "policy"), racer]
    other = Batch(ruleset, 3, seats="none", opponents=agents, threads=1)
    other.play_out([9, 10, 11], [1, 1, 0, 1])
    assert np.array_equal(other.final_totals, batch.final_totals)


def test_it_is_trained_and_loaded_like_the_others(tmp_path: Path) -> None:
    config = tiny("encoding=candidates", "candidates=8", "decisions=512", "evaluation.blocks=1")
    run = RunFolder.create(tmp_path / "run", config)
    assert train(config, run) is not None
    assert load_config(run.path / "config.yaml") == config
    policy = load_policy(run.path, JOURNEY)
    assert policy.encoding == Encoding("candidates", JOURNEY, 8)
    batch = Batch(JOURNEY, 2, seats="none", opponents=[policy], threads=1)
    batch.play_out([1, 2], [0, 0, 0, 0])
    assert batch.terminated.all()


# --- Copies


@pytest.mark.parametrize("copier", ["pickle", "deepcopy", "save_matches"])
def test_copies_go_on_exactly(copier: str) -> None:
    rules, agents = shortened(JOURNEY), [make_agent("racer", JOURNEY)]
    batch = new_batch(rules, 3, candidates=20, seats="any", opponents=agents)
    batch.reset(8)
    trace(batch, Dealer(batch.encoding, 1, range(3)), 8)
    if copier == "pickle":
        twin = pickle.loads(pickle.dumps(batch))
    elif copier == "deepcopy":
        twin = copy.deepcopy(batch)
    else:
        twin = new_batch(rules, 3, candidates=20, seats="any", opponents=agents)
        twin.load_matches(batch.save_matches())
    assert twin.encoding == batch.encoding
    traces = [trace(each, Dealer(each.encoding, 2, range(3)), 20) for each in (batch, twin)]
    check_same(*traces)
    assert traces[0]["terminated after"].any()


# --- Refusals


@pytest.mark.parametrize("candidates", [1, 0, -64, 129, 2**40, True, 64.0, "64", None])
def test_numbers_of_candidates_that_cannot_be_are_refused(candidates: Any) -> None:
    message = f"candidates must be an integer, 2 to 128, not {candidates!r}"
    for make in (RetinueEnv, RetinueAECEnv, RetinueVectorEnv):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            make(encoding="candidates", candidates=candidates)
