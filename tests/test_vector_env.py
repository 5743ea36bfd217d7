"""The native vector environment against Gymnasium's own vectors of scalar environments."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import retinue.agents  # noqa: F401 - opponents by name
from playing import Dealer
from positions import BRAWL, JOURNEY, changed
from retinue.envs.actions import ENCODINGS
from retinue.envs.common import OBSERVATIONS
from retinue.envs.game.ruleset import Ruleset
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.parallel import MAX_THREADS
from retinue.envs.vector_env import RetinueVectorEnv

NEXT_STEP, SAME_STEP, DISABLED = (
    AutoresetMode.NEXT_STEP,
    AutoresetMode.SAME_STEP,
    AutoresetMode.DISABLED,
)
RULESETS = {"journey": JOURNEY, "brawl": BRAWL}
SHORT = changed(JOURNEY, clock_seconds=240)
"""Six turns for each seat."""
EVERY_AUTORESET = pytest.mark.parametrize("autoreset", [NEXT_STEP, SAME_STEP])
EVERY_MODE = pytest.mark.parametrize("mode", RULESETS)
EVERY_ENCODING = pytest.mark.parametrize("encoding", ENCODINGS)
LINE_UP: dict[str, Any] = {"seats": [0, 2], "opponents": ["racer", "random"]}


def new_env(games: int = 3, *, rules: Ruleset = SHORT, **arguments: Any) -> RetinueVectorEnv:
    return RetinueVectorEnv(games, rules.mode, rules=rules, threads=1, **arguments)


def new_reference(games: int, autoreset: AutoresetMode, **arguments: Any) -> SyncVectorEnv:
    """Return Gymnasium's own vector of scalar environments."""
    mode = arguments["rules"].mode
    makers = [lambda: RetinueEnv(mode, **arguments) for _ in range(games)]
    return SyncVectorEnv(makers, autoreset_mode=autoreset)


def check_same(ours: Any, theirs: Any, where: str = "result") -> None:
    """Check that two nested results are equal, dtypes included; tuples of masks count as joined."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), where
        for key, value in theirs.items():
            check_same(ours[key], value, f"{where}[{key!r}]")
        return
    assert type(ours) is type(theirs), where
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs), where
        for index, value in enumerate(theirs):
            check_same(ours[index], value, f"{where}[{index}]")
    elif "action_mask'" in where and theirs.dtype == object:
        empty = np.zeros(ours.shape[1], np.int8)
        check_same(ours, np.array([empty if each is None else np.hstack(each) for each in theirs]))
    elif theirs.dtype == object:
        assert ours.dtype == object, where
        for index, value in enumerate(theirs):
            assert (ours[index] is None) == (value is None), where
            if value is not None:
                check_same(ours[index], value, f"{where}[{index}]")
    else:
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), where
        assert np.array_equal(ours, theirs), where


def play(env: RetinueVectorEnv, deal: Dealer, steps: int) -> Iterator[tuple[Any, ...]]:
    """Play drawn actions on and yield what each step gave."""
    for _ in range(steps):
        yield env.step(deal(env.action_masks()))


def compare(
    autoreset: AutoresetMode, games: int, steps: int, threads: int = 1, **arguments: Any
) -> int:
    """Play our vector and Gymnasium's side by side, compare everything; return ended matches."""
    mode = arguments["rules"].mode
    ours = RetinueVectorEnv(games, mode, autoreset_mode=autoreset, threads=threads, **arguments)
    theirs = new_reference(games, autoreset, **arguments)
    check_same(ours.reset(seed=5), theirs.reset(seed=5))
    deal = Dealer(ours.batch.encoding, 1, range(games))
    ended = 0
    for _ in range(steps):
        actions = deal(ours.action_masks())
        result = ours.step(actions)
        check_same(result, theirs.step(actions))
        ended += int(result[2].sum())
    return ended


@EVERY_AUTORESET
@EVERY_MODE
@EVERY_ENCODING
def test_whole_matches_are_those_of_scalar_environments(
    autoreset: AutoresetMode, mode: str, encoding: str
) -> None:
    steps = 800 if encoding == "steps" else 200
    rules = RULESETS[mode]
    assert compare(autoreset, 2, steps, rules=rules, encoding=encoding, **LINE_UP) >= 2


@EVERY_AUTORESET
@pytest.mark.parametrize(
    "arguments",
    [
        {"observation": "dict", "seats": 1, "opponents": ["random"]},
        {"seats": "any", "opponents": ["random", "racer"], "draw": "each match"},
        {"encoding": "turn", "reward": "place"},
        {"reward": "score", "reward_scale": 3.0, **LINE_UP},
    ],
    ids=lambda arguments: " ".join(map(str, arguments)),
)
def test_every_argument_means_what_it_means_there(
    autoreset: AutoresetMode, arguments: dict[str, Any]
) -> None:
    assert compare(autoreset, 3, 300, rules=SHORT, **arguments) >= 6


@EVERY_AUTORESET
def test_several_threads_give_the_same(autoreset: AutoresetMode) -> None:
    assert compare(autoreset, 7, 150, threads=MAX_THREADS, rules=SHORT, **LINE_UP) >= 7


def test_illegal_actions_are_told_and_mean_the_same() -> None:
    ours, theirs = new_env(), new_reference(3, NEXT_STEP, rules=SHORT)
    check_same(ours.reset(seed=1), theirs.reset(seed=1))
    rng, illegal = np.random.default_rng(3), 0
    for _ in range(60):
        actions = rng.integers(0, 51, 3)
        result = ours.step(actions)
        check_same(result, theirs.step(actions))
        illegal += int(result[4]["illegal_action"].sum())
    assert illegal > 60


def test_without_autoreset_matches_start_by_a_mask() -> None:
    ours, theirs = new_env(autoreset_mode=DISABLED), new_reference(3, DISABLED, rules=SHORT)
    check_same(ours.reset(seed=[4, 8, 1]), theirs.reset(seed=[4, 8, 1]))
    deal = Dealer(ours.batch.encoding, 1, range(3))
    restarts = 0
    for step in range(500):
        actions = deal(ours.action_masks())
        result = ours.step(actions)
        check_same(result, theirs.step(actions))
        if result[2].any():
            seeds = [7, None, 9] if step % 2 else None
            given = {"reset_mask": result[2]}
            observations, info = ours.reset(seed=seeds, options=given)
            assert info["action_mask"].any(axis=1).all(), "no mask is ever empty"
            assert np.array_equal(info["action_mask"], ours.action_masks())
            for name in ("seat", "action_mask"):
                info[name][~result[2]] = 0
            check_same((observations, info), theirs.reset(seed=seeds, options=dict(given)))
            restarts += 1
    assert restarts >= 3


def test_without_autoreset_a_match_that_is_over_is_not_played_on() -> None:
    env = new_env(2, autoreset_mode="Disabled")
    env.reset(seed=0)
    deal = Dealer(env.batch.encoding, 1, range(2))
    while not (ended := env.step(deal(env.action_masks()))[2]).any():
        pass
    over = np.flatnonzero(ended).tolist()
    before = env.batch.games.copy()
    with pytest.raises(RuntimeError, match=re.escape(f"environments {over} are over")):
        env.step(np.zeros(2, np.int64))
    assert np.array_equal(env.batch.games, before)


@pytest.mark.parametrize("autoreset", [NEXT_STEP, SAME_STEP, DISABLED])
def test_gymnasium_makes_it_and_its_mode_is_declared(autoreset: AutoresetMode) -> None:
    env = gymnasium.make_vec("retinue/Brawl-v0", num_envs=5, autoreset_mode=autoreset)
    assert isinstance(env.unwrapped, RetinueVectorEnv)
    assert (env.num_envs, env.unwrapped.batch.ruleset.mode) == (5, "brawl")
    assert env.metadata["autoreset_mode"] is autoreset
    observations, info = env.reset(seed=0)
    assert env.observation_space.contains(observations)
    assert env.action_space.contains(env.action_space.sample(mask=tuple(info["action_mask"])))


def test_by_default_the_next_step_resets() -> None:
    env = gymnasium.make_vec("retinue/Journey-v0", num_envs=2)
    assert env.metadata["autoreset_mode"] is NEXT_STEP
    assert gymnasium.make("retinue/Journey-v0").metadata.get("autoreset_mode") is None


@pytest.mark.parametrize("observation", OBSERVATIONS)
@EVERY_ENCODING
def test_observations_and_actions_belong_to_the_spaces(observation: str, encoding: str) -> None:
    env = new_env(observation=observation, encoding=encoding)
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    assert env.action_space.contains(Dealer(env.batch.encoding, 1, range(3))(env.action_masks()))
    single = RetinueEnv(rules=SHORT, observation=observation, encoding=encoding)
    assert env.single_observation_space == single.observation_space
    assert env.single_action_space == single.action_space


# --- Who plays, for each environment


@EVERY_AUTORESET
def test_each_environment_keeps_its_own_line_up_over_many_matches(
    autoreset: AutoresetMode,
) -> None:
    seats: list[Any] = [2, [0, 3], "any", (1,)]
    opponents: list[Any] = ["racer", ["random", "racer"], ["random"], ["racer", "random"]]
    env = new_env(4, opponents=["racer", "random"], autoreset_mode=autoreset)
    observations, info = env.reset(seed=30, options={"seats": seats, "opponents": opponents})
    singles = [RetinueEnv(rules=SHORT, opponents=["racer", "random"]) for _ in range(4)]
    for index, single in enumerate(singles):
        options = {"seats": seats[index], "opponents": opponents[index]}
        single.reset(seed=30 + index, options=options)
    deal = Dealer(env.batch.encoding, 1, range(4))
    over, matches = np.zeros(4, bool), np.zeros(4, int)
    for _ in range(400):
        actions = deal(env.action_masks())
        observations, rewards, ended, _, info = env.step(actions)
        for index, single in enumerate(singles):
            if over[index]:
                seen, reward, single_ended = single.reset()[0], 0.0, False
            else:
                seen, reward, single_ended, _, _ = single.step(actions[index])
            assert (reward, single_ended) == (rewards[index], ended[index])
            if single_ended and autoreset is SAME_STEP:
                assert np.array_equal(seen, info["final_obs"][index])
                seen = single.reset()[0]
            assert np.array_equal(seen, observations[index])
        matches += ended
        over = ended if autoreset is NEXT_STEP else over
        control = env.batch.control
        assert (control[0] == [0, 0, -1, 0]).all(), "three racers and the caller in seat 2"
        assert (control[1] == [-1, 1, 0, -1]).all()
        assert sorted(control[2]) == [-1, 1, 1, 1]
        assert (control[3] == [0, -1, 0, 1]).all()
    assert (matches >= 2).all()


def test_a_mask_changes_the_line_up_of_those_environments_alone() -> None:
    env = new_env(3, seats=0, opponents=["random"])
    env.reset(seed=0)
    mask = np.array([False, True, False])
    env.reset(options={"reset_mask": mask, "seats": [1, 2, 3]})
    env.reset(seed=8)
    assert (env.batch.control == -1).argmax(axis=1).tolist() == [0, 2, 0], "kept over resets"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seat": 1}, "unknown option 'seat': reset takes seats and opponents"),
        ({"seats": 1}, "seats must be a list with an entry for each of 3 matches"),
        ({"seats": [0, 1]}, "seats must be a list with an entry for each of 3 matches"),
        ({"seats": [0, 1, 4]}, "seat 4 is not one of 0, 1, 2, 3"),
        ({"seats": [0, "none", 1]}, 'seats="none" leaves the caller nothing to decide'),
        ({"opponents": "racer"}, "opponents must be a list with an entry for each"),
        (
            {"seats": [1, 1, 1], "opponents": ["racer", "hunter", "racer"]},
            "opponent 'hunter' is not one of the environment's: 'racer', 'random'",
        ),
        ({"opponents": ["racer", [], "racer"]}, "opponents must name 1 to 64 agents, not 0"),
        ({"opponents": [["racer"] * 65] * 3}, "opponents must name 1 to 64 agents, not 65"),
        ({"seats": (seat for seat in range(2))}, "seats must be a list with an entry for each"),
        ({"seats": {0: 1, 1: 2, 2: 3}}, "seats must be a list with an entry for each"),
        ({"reset_mask": [1, 0, 0]}, "reset_mask must be bool (3,) with a True, not int64 (3,)"),
        ({"reset_mask": np.zeros(3, bool)}, "with a True, not bool (3,) with 0"),
    ],
)
def test_options_that_do_not_fit_are_refused_and_change_nothing(
    options: dict[str, Any], message: str
) -> None:
    env = new_env(3, seats=0, opponents=["racer", "random"])
    env.reset(seed=0)
    env.step(np.zeros(3, np.int64))
    before = env.batch.save_matches()
    with pytest.raises(ValueError, match=re.escape(message)):
        env.reset(seed=5, options=options)
    assert env.batch.save_matches() == before


def test_without_opponents_all_seats_are_the_callers() -> None:
    env = new_env(2)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="opponents are needed for the seats that the caller"):
        env.reset(options={"seats": [0, (0, 1, 2, 3)]})
    env.reset(options={"seats": [(3, 2, 1, 0), (0, 1, 2, 3)]})


# --- Seeds and buffers


def test_seeds_differ_and_repeat() -> None:
    env = new_env(4, opponents=["random"])
    first, _ = env.reset(seed=3)
    assert len(np.unique(first, axis=0)) == 4, "sub-environments differ"
    second, _ = env.reset()
    assert not (first == second).all(axis=1).any(), "the next match differs"
    assert np.array_equal(env.reset(seed=3)[0], first)
    assert np.array_equal(env.reset(seed=np.int64(3))[0], first)
    wrapping = env.reset(seed=np.uint8(254))[0]
    assert np.array_equal(wrapping, env.reset(seed=[254, 255, 256, 257])[0])
    assert np.array_equal(env.reset(seed=[3, 4, 5, 6])[0], first)
    assert not np.array_equal(env.reset(seed=30)[0], first)
    unseeded = [new_env(4, opponents=["random"]).reset()[0] for _ in range(2)]
    assert not np.array_equal(*unseeded)


def test_a_seed_in_a_list_starts_that_environment_alone_anew() -> None:
    env, other = new_env(3), new_env(3)
    firsts, seconds = env.reset(seed=3)[0], env.reset()[0]
    other.reset(seed=3)
    mixed = other.reset(seed=[None, 4, None])[0]
    assert np.array_equal(mixed, [seconds[0], firsts[1], seconds[2]])


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        ([1, 2], "2 seeds are not one for each of 3 matches"),
        (-1, "seed -1 is negative"),
        ([1, -2, 3], "seed -2 is negative"),
        (1.5, "seed 1.5 is not an integer"),
        ([1, "2", 3], "seed '2' is not an integer"),
    ],
)
def test_seeds_that_cannot_be_are_refused(seed: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        new_env(3).reset(seed=seed)


def test_the_first_reset_is_whole() -> None:
    with pytest.raises(ValueError, match="the first reset starts every match"):
        new_env(3).reset(options={"reset_mask": np.array([True, False, True])})
    with pytest.raises(ValueError, match="the first reset needs a seed for every match"):
        new_env(3).reset(seed=[1, None, 2])
    with pytest.raises(RuntimeError, match="call reset first"):
        new_env(3).step(np.zeros(3, np.int64))


@EVERY_AUTORESET
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_what_was_given_is_never_overwritten(autoreset: AutoresetMode, observation: str) -> None:
    env = new_env(3, autoreset_mode=autoreset, observation=observation, **LINE_UP)
    given: list[Any] = [env.reset(seed=0)]
    given += play(env, Dealer(env.batch.encoding, 1, range(3)), 150)
    as_given = copy.deepcopy(given)
    list(play(env, Dealer(env.batch.encoding, 2, range(3)), 150))
    env.reset(seed=1)
    for now, before in zip(given, as_given, strict=True):
        check_same(now, before)


def test_without_copies_the_next_step_overwrites_and_the_numbers_are_the_same() -> None:
    env, copying = new_env(3, copy=False), new_env(3)
    observations, info = env.reset(seed=0)
    check_same((observations, info), copying.reset(seed=0))
    deal, again = (Dealer(env.batch.encoding, 1, range(3)) for _ in range(2))
    for _ in range(300):
        result = env.step(deal(env.action_masks()))
        check_same(result, copying.step(again(copying.action_masks())))
        assert np.shares_memory(result[0], observations)
        assert np.shares_memory(result[4]["action_mask"], info["action_mask"])


@pytest.mark.parametrize("games", [0, -1, 1.5, True, 2**21])
def test_numbers_of_matches_that_cannot_be_are_refused(games: Any) -> None:
    with pytest.raises(ValueError, match=re.escape("num_envs must be an integer, 1 to")):
        RetinueVectorEnv(games)


def test_actions_of_another_shape_change_nothing() -> None:
    env = new_env(3)
    env.reset(seed=0)
    ended = np.zeros(3, bool)
    deal = Dealer(env.batch.encoding, 1, range(3))
    while not ended.any():
        ended = env.step(deal(env.action_masks()))[2]
    before = env.batch.save_matches()
    for wrong in (np.zeros(2, np.int64), np.zeros((3, 2), np.int64), np.zeros(3)):
        with pytest.raises(ValueError, match="actions must be integers of shape"):
            env.step(wrong)
    assert env.batch.save_matches() == before, "not even a match that was due to start"
