"""The agent that looks ahead: what it promises, and that looking ahead helps."""

import _thread
import dataclasses
import itertools
import random
import threading
import time
from typing import Any

import numpy as np
import pytest

from positions import BRAWL, HOME, JOURNEY, changed
from proposing import Watcher, late_position, played_positions
from retinue.agents.registry import AgentError, make_agent
from retinue.agents.rollouts import write_seeds
from retinue.agents.search import LEAST, Comparison, SearchAgent, Settings, rounds_of
from retinue.envs.batch import Batch
from retinue.envs.game import engine, jit
from retinue.envs.game.dice import die
from retinue.envs.game.events import SILENT
from retinue.envs.game.ruleset import MODES, Ruleset
from retinue.envs.game.state import GAME, OVER, TURN, totals
from retinue.envs.opponents import Policy, View
from retinue.envs.parallel import MAX_THREADS
from retinue.evaluation.arena import play_matches

BOTH = pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=MODES)
QUICK = "search:base=guardian,rollouts=64,top=4,candidates=4,doubt=0"
pytestmark = pytest.mark.skipif(not jit.ENABLED, reason="plays many matches ahead")


def some_games(ruleset: Ruleset, count: int) -> Any:
    """Return positions, rolls received, ``GAME`` ``(count,)``."""
    games = np.zeros(count, GAME)
    for index, (game, _) in enumerate(played_positions(ruleset)[:count]):
        games[index] = game
    return games


def choose(spec: str, games: Any, ruleset: Ruleset = JOURNEY, keys: Any = None) -> Any:
    """Return an agent's turns."""
    numbers = np.arange(len(games)) if keys is None else np.array(keys)
    view = View(games.copy(), numbers.astype(np.uint64), ruleset)
    return make_agent(spec, ruleset).choose(view, np.random.default_rng(0))


def margins(games: Any, turns: Any, ruleset: Ruleset) -> Any:
    """Return the margin of whoever moves after its turn in each game."""
    found = []
    for game, turn in zip(games.copy(), turns, strict=True):
        seat = int(game["seat"])
        engine.play_or_raise(game, ruleset, turn, SILENT.copy())
        own = totals(game)
        found.append(own[seat] - np.delete(own, seat).mean())
    return np.array(found)


# --- What it promises


@BOTH
@pytest.mark.parametrize("base", ["guardian", "greedy", "racer", "random"])
def test_whole_matches_are_legal(ruleset: Ruleset, base: str) -> None:
    short = changed(ruleset, clock_seconds=16 * ruleset.turn_seconds)
    searching = make_agent(f"search:base={base},rollouts=48,top=3,candidates=4,depth=2", short)
    played = play_matches([searching, make_agent("guardian", short)] * 2, short, range(2))
    assert (played.decisions.sum(axis=1) == 16).all()


@BOTH
def test_a_key_decides_whatever_the_batch_and_the_threads(ruleset: Ruleset) -> None:
    games = some_games(ruleset, 12)
    before = games.tobytes()
    turns = choose(QUICK, games, ruleset)
    assert turns.dtype == TURN
    assert games.tobytes() == before
    for threads in {1, MAX_THREADS}:
        again = choose(f"{QUICK},threads={threads}", games[::-1], ruleset, range(11, -1, -1))
        assert again[::-1].tobytes() == turns.tobytes()
    one_by_one = [choose(QUICK, games[i : i + 1], ruleset, [i])[0] for i in range(12)]
    assert np.array(one_by_one, TURN).tobytes() == turns.tobytes()
    other_keys = choose(QUICK, games, ruleset, range(100, 112))
    assert other_keys.tobytes() != turns.tobytes(), "its chance comes from the key"


@pytest.mark.parametrize(
    ("base", "options"),
    [
        *itertools.product(
            ["guardian", "racer", "yardstick:random=true"],
            ["rollouts=0", f"rollouts={2 * LEAST - 1}", "top=1"],
        ),
        # Not with racer: of rollouts that all gain the same there is no doubt.
        ("guardian", "doubt=1e9"),
    ],
)
def test_without_better_knowledge_it_plays_as_its_base(base: str, options: str) -> None:
    games = some_games(JOURNEY, 6)
    spec = f"search:base={base},candidates=4,{options}"
    if "rollouts" not in options:
        spec += ",rollouts=64"
    searched = choose(spec, games)
    if "random" not in base:  # which draws by a key of its own
        assert searched.tobytes() == choose(base, games).tobytes()
    assert searched.tobytes() == choose(spec.replace("=4,", "=5,"), games).tobytes()


def test_the_dice_of_the_match_are_unknown() -> None:
    """The keys that a match gives lead to other dice than the match's own."""
    watcher = Watcher(make_agent("racer", JOURNEY))
    keys: list[int] = []
    choose_turns = watcher.choose

    def note(view: View, rng: np.random.Generator) -> Any:
        keys.extend(view.keys.tolist())
        return choose_turns(view, rng)

    watcher.choose = note  # type: ignore[method-assign]
    batch = Batch(JOURNEY, 1, seats="none", opponents=[watcher], threads=1)
    batch.play_out([7], [0, 0, 0, 0])
    same = tried = 0
    for turn, key in enumerate(keys[:60]):  # nobody is Home by then
        seeds = np.zeros(20, np.uint64)
        write_seeds(np.uint64(key), 1, seeds)
        assert len(set(seeds.tolist())) == 20
        seat, own = (turn + 1) % 4, (turn + 1) // 4
        real = die(np.uint64(7), seat, own, 0)
        same += sum(die(seed, seat, own, 0) == real for seed in seeds)
        tried += 20
    assert abs(same / tried - 1 / 6) < 5 * (5 / 36 / tried) ** 0.5
    names = {field.name for field in dataclasses.fields(View)}
    assert names == {"games", "keys", "ruleset", "matches"}, "none of which holds the dice"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("base=user", "agent search: option base: unknown agent 'user': "),
        ("base=bot.py:Bot", "agent search: option base: agent 'bot.py:Bot' is a path, "),
        ("base=search", "option base must be an agent that kernels can call .*, not 'search'"),
        ("opponents=search", "option opponents must be an agent that kernels can call"),
        ("opponents=rcaer", "option opponents: unknown agent 'rcaer': did you mean racer"),
        ("rollouts=-1", "option rollouts must be a whole number from 0 to 1000000, not '-1'"),
        ("time=-1", "option time must be a number of at least 0, not '-1'"),
        ("depth=0", "option depth must be a whole number from 1 to 1000, not '0'"),
        ("top=0", "option top must be a whole number from 1 to 128, not '0'"),
        ("candidates=129", "option candidates must be a whole number from 1 to 128"),
        ("doubt=-0.1", "option doubt must be a number of at least 0"),
        ("threads=-1", "option threads must be a whole number of at least 0"),
        ("roll=3", "agent search has no option 'roll': "),
    ],
)
def test_what_cannot_be_searched_is_refused(options: str, message: str) -> None:
    with pytest.raises(AgentError, match=message) as caught:
        make_agent(f"search:{options}", JOURNEY)
    assert "\n" not in str(caught.value)


def test_other_rules_are_refused() -> None:
    view = View(some_games(BRAWL, 1), np.zeros(1, np.uint64), BRAWL)
    with pytest.raises(ValueError, match="agent search:base=racer was made for journey"):
        make_agent("search:base=racer", JOURNEY).choose(view, np.random.default_rng(0))


def test_a_policy_that_chooses_an_illegal_turn_is_named() -> None:
    def cheat(game: Any, rules: Any, key: Any, turn: Any, memory: int) -> int:
        turn.noble_steps = 7
        return 0

    settings = Settings(64, 0.0, depth=1, top=4, candidates=4, doubt=1.0, threads=1)
    base = make_agent("guardian", JOURNEY).compiled
    assert base is not None
    agent = SearchAgent("cheated", base, Policy(cheat), settings, JOURNEY)
    view = View(some_games(JOURNEY, 1), np.zeros(1, np.uint64), JOURNEY)
    with pytest.raises(engine.IllegalTurn, match="agent cheated: a policy chose an illegal turn"):
        agent.choose(view, np.random.default_rng(0))


# --- Its budget


def test_seconds_are_kept() -> None:
    games = some_games(JOURNEY, 6)
    choose("search:base=guardian,time=0.01,candidates=4", games)
    began = time.perf_counter()
    choose("search:base=guardian,time=0.2,candidates=4", games)
    taken = (time.perf_counter() - began) / len(games)
    assert 0.15 < taken < 0.5


def test_it_can_be_interrupted() -> None:
    games = some_games(JOURNEY, 1)
    choose(QUICK, games)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    began = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        choose("search:base=guardian,rollouts=1000000", games)
    assert time.perf_counter() - began < 5


def test_how_many_turns_are_compared() -> None:
    assert [rounds_of(count) for count in (1, 2, 3, 4, 5, 8, 9)] == [1, 1, 2, 2, 3, 3, 4]

    def compared(rollouts: int, seconds: float = 0.0) -> int:
        settings = Settings(rollouts, seconds, 1, top=8, candidates=4, doubt=1.0, threads=1)
        return settings.turns_compared()

    assert compared(LEAST * 8 * 3) == compared(10**6) == compared(0, 0.1) == 8
    assert compared(LEAST * 8 * 3 - 1) == 7
    assert compared(LEAST * 2) == 2
    assert compared(LEAST * 2 - 1) == compared(0) == 1


def test_the_better_half_stays_and_the_bases_own() -> None:
    turns = np.zeros(5, TURN)
    turns["noble_steps"] = range(5)
    compared = Comparison(turns)
    compared.scores = np.array([[0, 0], [3, 5], [9, 7], [1, 1], [6, 6]], float)
    compared.drop_worse_half()
    assert compared.turns["noble_steps"].tolist() == [0, 2, 4]
    assert compared.scores.tolist() == [[0, 0], [9, 7], [6, 6]]
    assert compared.best(0.0)["noble_steps"] == 2
    assert compared.best(7.9)["noble_steps"] == 2  # it is 8 better, with a standard error of 1
    assert compared.best(8.1)["noble_steps"] == 0
    compared.scores[:] = 4
    assert compared.best(0.0)["noble_steps"] == 0, "the base's own if none is better"


# --- What it finds


@BOTH
@pytest.mark.parametrize("base", ["guardian", "racer"])
def test_in_the_last_turn_of_a_match_points_count(ruleset: Ruleset, base: str) -> None:
    games = some_games(ruleset, 24)
    games["clock_seconds"] = ruleset.turn_seconds
    searched = choose(f"search:base={base},rollouts=400,top=12,doubt=0", games, ruleset)
    gained = margins(games, searched, ruleset) - margins(
        games, choose(base, games, ruleset), ruleset
    )
    assert (gained >= 0).all()
    assert (gained > 0).any()


def test_who_comes_wholly_home_does() -> None:
    chance = random.Random(0)
    came = 0
    for _ in range(200):
        game = late_position(chance, JOURNEY)
        own = choose("racer", np.array([game], GAME))
        after = game.copy()
        engine.play_or_raise(after, JOURNEY, own[0], SILENT.copy())
        if after["finished"] > game["finished"] and after["phase"] != OVER:
            came += 1
            assert (after["position"][game["seat"]] == HOME).all()
            spec = "search:base=racer,rollouts=64,depth=8,doubt=0"
            assert choose(spec, np.array([game], GAME)).tobytes() == own.tobytes()
    assert came >= 3


def test_how_the_others_play_matters() -> None:
    games = some_games(JOURNEY, 12)
    spec = f"{QUICK},rollouts=64".replace("rollouts=64,top", "top")
    as_base = choose(f"{spec},opponents=base", games)
    assert as_base.tobytes() == choose(f"{spec},opponents=guardian", games).tobytes()
    assert as_base.tobytes() != choose(f"{spec},opponents=random", games).tobytes()


@BOTH
@pytest.mark.parametrize("base", ["hunter", "racer"])
def test_what_it_prefers_is_better_in_other_rollouts_too(ruleset: Ruleset, base: str) -> None:
    agent: Any = make_agent(f"search:base={base},rollouts=200,top=4,candidates=4", ruleset)
    games = some_games(ruleset, 40)
    keys = np.arange(len(games)).astype(np.uint64)
    rng = np.random.default_rng(0)
    searched = agent.choose(View(games, keys, ruleset), rng)
    own = make_agent(base, ruleset).choose(View(games, keys, ruleset), rng)
    gains = []
    for index in range(len(games)):
        if searched[index] != own[index]:
            game = games[index : index + 1]
            compared = Comparison(np.array([own[index], searched[index]], TURN))
            agent._play(
                game, np.uint64(1000 + index), agent._cast(int(game["seat"][0])), compared, 60
            )
            gains.append(np.diff(compared.scores.mean(axis=1))[0])
    assert len(gains) >= 10
    assert np.mean(gains) > 2 * np.std(gains) / len(gains) ** 0.5
