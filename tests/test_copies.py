"""Copies of environments: made in the middle of a match or a turn, they go on exactly alike."""

import copy
import hashlib
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import gymnasium
import numpy as np
import pytest
from stable_baselines3.common.monitor import Monitor

import retinue.agents  # noqa: F401 - agents by name
from playing import Dealer, as_text
from positions import JOURNEY, NOBLE, changed
from retinue.envs.actions import ENCODINGS
from retinue.envs.batch import Batch
from retinue.envs.game.engine import IllegalTurn
from retinue.envs.game.state import OVER, TURN
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.opponents import View
from retinue.envs.render import Window
from retinue.envs.vector_env import RetinueVectorEnv

SHORT, SHORTEST = (changed(JOURNEY, clock_seconds=seconds) for seconds in (240, 120))
"""Six turns for each seat, and three."""


class Counting:
    """Plays by what it has counted and by the environment's chance; fails when told to."""

    name, compiled = "counting", None
    calls, mood = 0, "good"

    def choose(self, view: View, rng: np.random.Generator) -> Any:
        if self.mood == "raising":
            raise ZeroDivisionError("counting")
        self.calls += 1
        turns, games = np.zeros(len(view.games), TURN), view.games
        nobles = games["position"][np.arange(len(games)), games["seat"], NOBLE]
        steps = (self.calls + rng.integers(2, size=len(turns))) % 7
        turns["noble_steps"] = (
            9 if self.mood == "illegal" else (nobles != view.ruleset.home) * steps
        )
        return turns


def pickled(protocol: int, env: Any) -> Any:
    return pickle.loads(pickle.dumps(env, protocol))


COPIERS: dict[str, Callable[[Any], Any]] = {
    **{f"protocol {n}": partial(pickled, n) for n in range(pickle.HIGHEST_PROTOCOL + 1)},
    "cloudpickle": lambda env: cloudpickle.loads(cloudpickle.dumps(env)),
    "deepcopy": copy.deepcopy,
}
CASES: dict[str, dict[str, Any]] = {
    "compiled, a whole Journey": {"opponents": ["racer", "random", "spread"], "seats": 0},
    "python, a whole Brawl": {"opponents": Counting(), "mode": "brawl", "encoding": "turn"},
    "drawn": {"opponents": ["racer", Counting()], "draw": "each match", "rules": SHORT},
    "two seats": {"opponents": "racer", "seats": (0, 2), "observation": "dict", "rules": SHORT},
    "all seats": {"reward": "place", "encoding": "turn", "observation": "dict", "rules": SHORT},
    "ansi": {"opponents": ["racer", Counting()], "render_mode": "ansi", "rules": SHORT},
    "rgb_array": {"opponents": ["racer"], "render_mode": "rgb_array", "rules": SHORTEST},
    "candidates": {"opponents": "racer", "encoding": "candidates", "candidates": 8, "rules": SHORT},
    "human": {"opponents": [Counting()], "render_mode": "human", "rules": SHORTEST},
}


@pytest.fixture(autouse=True)
def _quick_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows need no display here, and do not wait between pictures."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    defaults = Window.__init__.__defaults__
    assert defaults is not None
    monkeypatch.setattr(Window.__init__, "__defaults__", (*defaults[:-1], 0))


def in_the_middle(env: Any) -> dict[str, Any]:
    """Play into a match, in ``steps`` to the second given roll of a turn; return the last info."""
    _, info = env.reset(seed=8)
    env.action_space.seed(3)
    batch = env.unwrapped.batch
    drafts = batch.encoding.name == "steps"
    given = decisions = 0
    while decisions < 3 or (drafts and given < 2):
        *_, terminated, _, info = env.step(env.action_space.sample(mask=info["action_mask"]))
        assert not terminated
        given = batch.turns[0]["rolls"].sum()
        decisions += 1
    return info  # type: ignore[no-any-return]


def goes_on(env: Any, info: dict[str, Any], matches: int = 2) -> list[str]:
    """What an environment shows to its match's end and over the next ones; its space draws."""
    shown, drawn = [], ""
    while matches:
        action = env.action_space.sample(mask=info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(action)
        masks = env.unwrapped.action_masks()
        if env.render_mode is not None:
            drawn = hashlib.sha256(np.array(env.render()).tobytes()).hexdigest()
        shown.append(as_text([action, observation, reward, terminated, truncated, masks, drawn]))
        if terminated:
            matches -= 1
            observation, info = env.reset()
            shown.append(as_text([observation, info]))
    return shown


@pytest.mark.parametrize("case", CASES)
def test_copies_in_the_middle_of_a_turn_go_on_alike(case: str) -> None:
    env = RetinueEnv(**CASES[case])
    info = in_the_middle(env)
    if env.render_mode is not None:
        env.render()
    drawn = env.render_mode in ("rgb_array", "human")  # which takes its time
    names = ["protocol 5", "deepcopy"] if drawn else COPIERS
    copies = {name: COPIERS[name](env) for name in names}
    first, expected = goes_on(copies.pop("deepcopy"), info), goes_on(env, info)
    assert first == expected
    for name, twin in copies.items():
        assert goes_on(twin, info) == expected, name
    assert as_text(env.reset(seed=8)) != expected[-1]
    env.close()


@pytest.mark.parametrize("copier", ["protocol 5", "deepcopy"])
def test_a_wrapped_environment_is_copied_with_its_wrappers(copier: str) -> None:
    made = gymnasium.make("retinue/Journey-v0", opponents=["racer"], max_episode_steps=100)
    env: Any = made if copier == "protocol 5" else Monitor(made)
    info = in_the_middle(env)
    twin = COPIERS[copier](env)
    flags = []
    for each in (env, twin):
        each.action_space.seed(1)
        seen, truncated = info, False
        shown = []
        while not truncated:
            action = each.action_space.sample(mask=seen["action_mask"])
            *_, truncated, seen = step = each.step(action)
            seen.get("episode", {}).pop("t", None)
            shown.append(as_text(step))
        flags.append(shown)
    assert flags[0] == flags[1]
    assert len(flags[0]) < 100


def test_copies_at_the_edges_of_a_match() -> None:
    fresh = RetinueEnv(opponents="racer", rules=SHORT)
    for copier in COPIERS.values():
        with pytest.raises(RuntimeError, match="call reset"):
            copier(fresh).step(0)
    env = copy.deepcopy(fresh)
    _, info = env.reset(seed=4)
    env.action_space.seed(4)
    for name, copier in COPIERS.items():
        assert goes_on(copier(env), info, 1) == goes_on(copy.deepcopy(env), info, 1), name
    while env.game["phase"] != OVER:
        *_, info = env.step(env.action_space.sample(mask=info["action_mask"]))
    twins = [copier(env) for copier in COPIERS.values()]
    for twin in twins:
        with pytest.raises(RuntimeError, match="is over"):
            twin.step(0)
    assert len({as_text(each.reset()) for each in (env, *twins)}) == 1


@pytest.mark.parametrize(
    ("mood", "error"), [("raising", ZeroDivisionError), ("illegal", IllegalTurn)]
)
def test_a_copy_does_not_play_a_failed_opponent_s_turn(mood: str, error: type[Exception]) -> None:
    agent = Counting()
    env = RetinueEnv(opponents=agent, seats=0, encoding="turn")
    env.reset(seed=1)
    healthy = env.batch.save_matches()
    agent.mood = mood
    with pytest.raises(error):
        env.step([0] * 14)
    agent.mood = "good"
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        with pytest.raises(RuntimeError, match="an opponent failed"):
            twin.step([0] * 14)
        assert twin.reset()[1]["seat"] == 0
        twin.step([0] * 14)
    env.batch.load_matches(healthy)
    env.step([0] * 14)


def test_another_match_s_start_does_not_hide_a_failure() -> None:
    agent = Counting()
    batch = Batch(JOURNEY, 2, encoding="turn", opponents=[agent])
    batch.reset(1)
    agent.mood = "illegal"
    with pytest.raises(IllegalTurn):
        batch.step(np.zeros((2, 14), np.int64))
    agent.mood = "good"
    batch.start_next(np.array([1]))
    with pytest.raises(RuntimeError, match="an opponent failed"):
        batch.step(np.zeros((2, 14), np.int64))
    batch.start_next(np.array([0]))
    batch.step(np.zeros((2, 14), np.int64))


# --- In another process

WAKING = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    named = pickle.load(file)  # nothing was imported for it
    sys.path.insert(0, sys.argv[2])
    own = pickle.load(file)
from test_copies import goes_on
pickle.dump([goes_on(*named), goes_on(*own)], sys.stdout.buffer)
"""


def test_pickles_go_on_alike_in_another_process(tmp_path: Path) -> None:
    pairs = []
    for case in ("compiled, a whole Journey", "drawn"):
        env = RetinueEnv(**CASES[case])
        pairs.append((env, in_the_middle(env)))
    path, folder = tmp_path / "envs.pickle", str(Path(__file__).parent)
    path.write_bytes(b"".join(map(pickle.dumps, pairs)))
    code = [sys.executable, "-c", WAKING, str(path), folder]
    done = subprocess.run(code, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert pickle.loads(done.stdout) == [goes_on(*pair) for pair in pairs]


# --- Many matches


def vector_goes_on(env: RetinueVectorEnv, steps: int) -> list[str]:
    """What a vector shows."""
    dealer = Dealer(env.batch.encoding, 5, range(env.num_envs))
    return [as_text([env.step(dealer(env.action_masks())), env.batch.masks]) for _ in range(steps)]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("copies_arrays", [True, False])
@pytest.mark.parametrize("autoreset_mode", ["NextStep", "SameStep"])
def test_copies_of_a_vector_go_on_alike(
    autoreset_mode: str, copies_arrays: bool, encoding: str
) -> None:
    env = RetinueVectorEnv(
        5,
        rules=SHORT,
        opponents=["racer", Counting()],
        draw="each match",
        encoding=encoding,
        candidates=8,
        copy=copies_arrays,
        autoreset_mode=autoreset_mode,
        threads=1,
    )
    env.reset(seed=2)
    dealer, ended = Dealer(env.batch.encoding, 4, range(5)), np.zeros(5, bool)
    # One match is started later: where an action is a turn all would end together.
    for decision in range(200):
        if decision == 3:
            env.reset(options={"reset_mask": np.arange(5) == 1})
        _, _, ended, _, _ = env.step(dealer(env.action_masks()))
        if ended.any():
            break
    assert ended.any()
    assert not ended.all()
    twins = [copier(env) for copier in COPIERS.values()]
    expected = vector_goes_on(env, 80)
    assert all(vector_goes_on(twin, 80) == expected for twin in twins)
    assert sum('"places"' in step for step in expected) >= 2
