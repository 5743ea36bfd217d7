"""The Gymnasium environment: what checkers, wrappers, learners and readers of its page meet."""

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import yaml
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.env_checker import check_env as check_for_sb3
from stable_baselines3.common.monitor import Monitor

from playing import END, Dealer, as_text
from positions import BRAWL, JOURNEY, changed
from retinue.agents.registry import make_agent
from retinue.envs.actions import ENCODINGS
from retinue.envs.common import OBSERVATIONS
from retinue.envs.game.ruleset import MODES
from retinue.envs.game.state import OVER
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.render import BoardPicture
from retinue.envs.render_text import SEAT_WORDS

IDS = {mode: f"retinue/{mode.capitalize()}-v0" for mode in MODES}
EVERY_ENCODING = pytest.mark.parametrize("encoding", ENCODINGS)
EVERY_OBSERVATION = pytest.mark.parametrize("observation", OBSERVATIONS)


@pytest.fixture(autouse=True)
def _no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


def new_env(**arguments: Any) -> RetinueEnv:
    return RetinueEnv(**{"opponents": ["racer", "random", "spread"], "seats": 0, **arguments})


def played(env: Any, seed: int | None, steps: int) -> list[tuple[Any, ...]]:
    """What an environment shows when the first legal actions of a fixed source are taken."""
    dealer = Dealer(env.unwrapped.batch.encoding, 3, [0])
    observation, info = env.reset(seed=seed)
    shown: list[tuple[Any, ...]] = [(observation, info)]
    terminated = False
    while len(shown) <= steps and not terminated:
        action = dealer(env.unwrapped.action_masks()[None])[0]
        shown.append(env.step(action))
        terminated = shown[-1][2]
    return shown


# --- What others check


@pytest.mark.parametrize("mode", MODES)
@EVERY_ENCODING
@EVERY_OBSERVATION
@pytest.mark.parametrize("opponents", [[], ["racer", "random"]], ids=["alone", "opponents"])
def test_the_checkers_find_nothing(
    mode: str, encoding: str, observation: str, opponents: list[str]
) -> None:
    arguments: dict[str, Any] = {"encoding": encoding, "observation": observation}
    env = gymnasium.make(IDS[mode], opponents=opponents, **arguments)
    # Drawing is checked once: it is the same for all, and windows show four pictures a second.
    drawn = (mode, encoding, observation) == ("journey", "steps", "flat")
    check_env(env.unwrapped, skip_render_check=not drawn)
    check_for_sb3(env)


def test_the_checkers_find_nothing_with_agents_given_as_objects() -> None:
    env = gymnasium.make(IDS["journey"], opponents=[make_agent("racer", JOURNEY)])
    env.reset(seed=1)
    check_env(env.unwrapped)


def test_the_modes_have_their_own_rules() -> None:
    made = {mode: gymnasium.make(IDS[mode], encoding="turn") for mode in MODES}
    rules = {mode: env.unwrapped.ruleset for mode, env in made.items()}  # type: ignore[attr-defined]
    assert rules == {"journey": JOURNEY, "brawl": BRAWL}
    assert [len(env.action_space.nvec) for env in made.values()] == [14, 19]  # type: ignore[attr-defined]


def test_a_vector_of_environments_plays() -> None:
    env = gymnasium.make_vec(
        IDS["brawl"], num_envs=2, vectorization_mode="sync", opponents=["racer"], encoding="turn"
    )
    observations, _ = env.reset(seed=1)
    assert not np.array_equal(observations[0], observations[1])
    env.action_space.seed(1)
    ends = sum(env.step(env.action_space.sample())[2].sum() for _ in range(120))
    assert ends >= 2


# --- Matches and seeds


@EVERY_ENCODING
def test_a_seed_makes_the_same_match_and_no_seed_another(encoding: str) -> None:
    env = new_env(encoding=encoding, seats=None, draw="each match")
    first = as_text(played(env, 5, 1000))
    second = as_text(played(env, None, 1000))
    third = as_text(played(env, None, 1000))
    assert len({first, second, third}) == 3
    again, unseeded = (new_env(encoding=encoding, seats=None, draw="each match") for _ in "12")
    assert as_text(played(unseeded, None, 1000)) not in (first, second, third)
    assert [as_text(played(again, seed, 1000)) for seed in (5, None)] == [first, second]
    assert as_text(played(env, 5, 1000)) == first
    assert as_text(played(env, 6, 1000)) not in (first, second, third)


def test_a_reset_in_the_middle_starts_a_fresh_match() -> None:
    env = new_env()
    played(env, 1, 60)
    _, info = env.reset()
    assert env.game["turn"] == 0
    assert info["illegal_action"] is False
    assert info["rewards"].tolist() == [0, 0, 0, 0]


def test_reset_reverts_no_argument() -> None:
    env = new_env(
        encoding="turn",
        observation="dict",
        seats=(1, 2),
        reward="score",
        reward_scale=7,
        rules=changed(JOURNEY, clock_seconds=200),
    )

    def settings() -> tuple[Any, ...]:
        spaces = env.action_space, env.observation_space
        return *spaces, env.seats, env.ruleset, env.batch.reward, env.batch.opponents

    env.reset(seed=3)
    before = settings()
    with pytest.raises(ValueError, match="unknown option 'mode': reset takes seats and opponents"):
        env.reset(seed=4, options={"mode": "brawl", "seats": 0})
    for seed, options in ((None, None), (4, {}), (3, {})):
        env.reset(seed=seed, options=options)
        assert settings() == before
        assert len(played(env, seed, 99)) == 11, "ten turns for two seats of four"


def test_a_copy_in_the_middle_of_a_match_goes_on_alike() -> None:
    env = new_env(encoding="turn")
    played(env, 8, 9)
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        action = [0, 0] + [1] * 12
        assert as_text(twin.step(action)) == as_text(copy.deepcopy(env).step(action))


# --- What it returns


@EVERY_ENCODING
def test_info_says_what_the_page_says(encoding: str) -> None:
    env = new_env(encoding=encoding, seats=(0, 2), observation="dict")
    shown = played(env, 2, 2000)
    always = {"seat", "action_mask", "rewards", "illegal_action"}
    for row in shown:
        info = row[-1]
        assert info["seat"] in (0, 2)
        assert info["rewards"].dtype == np.float64
        assert info["rewards"].shape == (4,)
        assert info["illegal_action"] is False
        masks = info["action_mask"] if encoding == "turn" else (info["action_mask"],)
        assert [len(mask) for mask in masks] == list(env.batch.encoding.nvec)
        assert {mask.dtype for mask in masks} == {np.dtype(np.int8)}
        assert isinstance(masks, tuple)
    assert all(row[-1].keys() == always for row in shown[:-1])
    assert shown[-1][-1].keys() == always | {"totals", "places"}
    for name in ("totals", "places"):
        assert shown[-1][-1][name].dtype == np.int64
        assert shown[-1][-1][name].shape == (4,)
    assert {row[-1]["seat"] for row in shown} == {0, 2}
    assert all(row[3] is False for row in shown[1:]), "never truncated"


def test_an_illegal_action_is_told_and_does_no_harm() -> None:
    env = new_env()
    env.reset(seed=2)
    assert env.step(99)[-1]["illegal_action"] is True
    assert env.step(-1)[-1]["illegal_action"] is True
    assert env.game["turns_taken"][0] == 1
    assert env.step(3)[-1]["illegal_action"] is False


@EVERY_ENCODING
@EVERY_OBSERVATION
def test_what_was_returned_is_never_overwritten(encoding: str, observation: str) -> None:
    env = new_env(encoding=encoding, observation=observation, seats=None, opponents=None)
    dealer, texts, masks = Dealer(env.batch.encoding, 5, [0]), [], []
    shown: list[tuple[Any, ...]] = [env.reset(seed=1)]
    for _ in range(200):
        texts.append(as_text(shown[-1]))
        masks.append((env.action_masks(), env.action_masks().tolist()))
        if len(shown[-1]) == 5 and shown[-1][2]:
            shown.append(env.reset())
        else:
            shown.append(env.step(dealer(env.action_masks()[None])[0]))
    assert [as_text(each) for each in shown[:-1]] == texts
    assert all(mask.tolist() == was for mask, was in masks)
    assert len(set(texts)) > 100


def test_the_dict_holds_the_parts_of_the_flat_vector() -> None:
    flat, parts = (played(new_env(observation=kind), 6, 300) for kind in OBSERVATIONS)
    layout = new_env().layout
    for (vector, *rest), (named, *others) in zip(flat, parts, strict=True):
        assert list(named) == [section.name for section in layout.sections]
        assert np.array_equal(np.concatenate(list(named.values())), vector)
        for name, values in layout.split(vector).items():
            assert np.array_equal(named[name], values.ravel())
        assert as_text(rest) == as_text(others)


@EVERY_ENCODING
def test_the_space_draws_legal_actions_by_the_mask(encoding: str) -> None:
    env = gymnasium.make(IDS["brawl"], encoding=encoding, opponents=["racer"])
    _, info = env.reset(seed=3)
    env.action_space.seed(3)
    terminated, steps = False, 0
    while not terminated:
        action = env.action_space.sample(mask=info["action_mask"])
        _, _, terminated, truncated, info = env.step(action)
        assert not info["illegal_action"]
        assert not truncated
        steps += 1
    assert steps >= 45


@EVERY_ENCODING
def test_wrappers_show_the_masks(encoding: str) -> None:
    env = gymnasium.make(IDS["journey"], encoding=encoding, max_episode_steps=1000)
    wrapped = Monitor(RecordEpisodeStatistics(env))
    _, info = wrapped.reset(seed=4)
    masks = wrapped.get_wrapper_attr("action_masks")()
    assert masks.dtype == np.bool_
    joined = np.concatenate(info["action_mask"]) if encoding == "turn" else info["action_mask"]
    assert np.array_equal(masks, joined)
    assert np.array_equal(get_action_masks(wrapped), masks)
    assert is_masking_supported(wrapped)
    masks[:] = False
    assert wrapped.get_wrapper_attr("action_masks")().any(), "a copy is handed out"


def test_the_end_of_the_clock_is_terminated_and_a_limit_is_truncated() -> None:
    rules = changed(JOURNEY, clock_seconds=60)  # six turns
    env = gymnasium.make(IDS["journey"], rules=rules, encoding="turn")
    flags = [row[2:4] for row in played(env, 1, 99)[1:]]
    assert flags == [(False, False)] * 5 + [(True, False)]
    limited = TimeLimit(new_env(encoding="turn"), 5)
    assert [row[2:4] for row in played(limited, 1, 5)[1:]] == [(False, False)] * 4 + [(False, True)]
    assert limited.unwrapped.game["phase"] != OVER  # type: ignore[attr-defined]


@pytest.mark.parametrize("opponents", [[], ["racer"]], ids=["alone", "opponents"])
def test_before_the_first_reset_no_action_is_taken(opponents: list[str]) -> None:
    env = RetinueEnv(encoding="turn", opponents=opponents)
    with pytest.raises(RuntimeError, match="reset"):
        env.step([0] * 14)


def test_a_match_that_is_over_takes_no_action() -> None:
    env = new_env(encoding="turn", rules=changed(JOURNEY, clock_seconds=40))
    assert played(env, 1, 9)[-1][2] is True
    with pytest.raises(RuntimeError, match="is over"):
        env.step([0] * 14)


# --- Drawing


def test_the_board_as_text() -> None:
    env = gymnasium.make(IDS["journey"], render_mode="ansi", opponents=["racer"])
    env.reset(seed=1)
    first = env.render()
    assert isinstance(first, str)
    assert all(name in first.upper() for name in ("GREEN", "RED", "BLUE", "YELLOW"))
    env.step(3)
    assert env.render() != first, "the drafted turn is shown"


def test_the_board_as_a_picture() -> None:
    env = new_env(render_mode="rgb_array", rules=changed(JOURNEY, clock_seconds=40))
    env.reset(seed=1)
    pictures = [env.render()]
    for action in (6, END):
        terminated = env.step(action)[2]
        pictures.append(env.render())
    assert terminated
    assert {(picture.dtype, picture.ndim) for picture in pictures} == {(np.dtype(np.uint8), 3)}
    assert len({picture.tobytes() for picture in pictures}) == 3
    env.close()


@pytest.mark.parametrize("mode", MODES)
def test_whole_matches_are_drawn_with_their_last_moves(mode: str) -> None:
    drawn, told = (
        new_env(mode=mode, encoding="turn", render_mode=kind) for kind in ("rgb_array", "ansi")
    )
    dealer = Dealer(drawn.batch.encoding, 3, [0])
    plain, pictures, terminated = BoardPicture(drawn.ruleset), [], False
    drawn.reset(seed=2)
    told.reset(seed=2)
    while not terminated:
        action = dealer(drawn.action_masks()[None])[0]
        terminated = drawn.step(action)[2]
        told.step(action)
        picture, text = drawn.render(), told.render()
        move = drawn.batch.last_move(0)
        assert move is not None
        assert f"Last, {SEAT_WORDS[move[0]['seat']]}: " in text
        assert not np.array_equal(picture, plain.draw(drawn.game, drawn.batch.turns[0]))
        pictures.append(picture.tobytes())
    assert len(set(pictures)) == len(pictures) >= 20


def test_a_window_opens_and_closes() -> None:
    env = new_env(render_mode="human", encoding="turn")
    env.reset(seed=1)
    env.step([0] * 14)
    assert env.render() is None
    env.close()


def test_drawing_without_a_mode_warns() -> None:
    env = new_env()
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


# --- Arguments

REFUSED: dict[str, dict[str, Any]] = {
    "unknown mode 'yourney': use journey, brawl or a .yaml": {"mode": "yourney"},
    "no.yaml: No such file": {"rules": "no.yaml"},
    "these are the rules of brawl, but the environment is journey": {"rules": BRAWL},
    "unknown encoding 'words': use steps, turn, candidates": {"encoding": "words"},
    "unknown observation 'box': use flat or dict": {"observation": "box"},
    "unknown render_mode 'text': use ansi, rgb_array, human": {"render_mode": "text"},
    "unknown reward 'wins': use score, margin, place": {"reward": "wins"},
    "reward scale must be a number above 0, not -1": {"reward_scale": -1},
    "unknown draw 'lots': use 'in order' or 'each match'": {"draw": "lots"},
    "seat 5 is not one of 0, 1, 2, 3": {"seats": 5},
    "opponents are needed": {"seats": 1, "opponents": ()},
    "the caller plays all seats": {"seats": (0, 1, 2, 3)},
    "an environment needs a seat for its caller": {"seats": "none"},
    "unknown agent 'raser': did you mean racer": {"opponents": ["raser"]},
}


@pytest.mark.parametrize("message", REFUSED)
def test_arguments_that_cannot_be_are_refused(message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        new_env(**REFUSED[message])


@pytest.mark.parametrize(
    "seats", [(0, 2), [2, 0], {0, 2}, range(0, 3, 2), np.array([0, 2]), [np.uint64(0), np.int8(2)]]
)
def test_seats_may_be_any_kind_of_collection(seats: Any) -> None:
    env = RetinueEnv(seats=seats, opponents="racer")
    env.reset(seed=1)
    assert env.seats == (0, 2)


def test_seats_by_default_and_opponents_in_one_word() -> None:
    alone = RetinueEnv()
    alone.reset(seed=1)
    assert alone.seats == (0, 1, 2, 3)
    env = RetinueEnv(opponents="racer")
    seats = set()
    for seed in range(20):
        env.reset(seed=seed)
        seats.add(env.seats)
    assert seats == {(0,), (1,), (2,), (3,)}
    assert [agent.name for agent in env.batch.opponents] == ["racer"]


def test_a_rule_file_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    rules = JOURNEY.model_dump(mode="json")
    rules |= {"home_path_tiles": 20, "store_capacity": 36, "dice": [[30, 6], [36, 0]]}
    own.write_text(yaml.safe_dump(rules), encoding="utf-8")
    env = gymnasium.make(IDS["journey"], rules=own, encoding="turn", opponents=["racer"])
    check_env(env.unwrapped, skip_render_check=True)
    assert len(env.action_space.nvec) == 38  # type: ignore[attr-defined]
    assert played(env, 1, 999)[-1][2] is True


NAMED = "import gymnasium, {module}\ngymnasium.make('retinue/Journey-v0', opponents=['racer'])"


def test_agents_have_names_once_they_are_imported() -> None:
    def run(module: str) -> subprocess.CompletedProcess[str]:
        code = [sys.executable, "-W", "error", "-c", NAMED.format(module=module)]
        return subprocess.run(code, capture_output=True, text=True, check=False, timeout=300)

    assert (
        "to use agent 'racer' by its name, import retinue.agents first"
        in run("retinue.envs").stderr
    )
    after = run("retinue.agents")
    assert after.returncode == 0, after.stderr
