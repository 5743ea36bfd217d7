"""Environments in other processes and batches in several Python threads."""

import multiprocessing
import subprocess
import sys
import threading
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import retinue.agents  # noqa: F401 - agents by name
from playing import END, Cheat, Dealer, Drawing, as_text
from positions import JOURNEY
from retinue.agents.registry import make_agent
from retinue.envs.actions import Encoding
from retinue.envs.batch import Batch
from retinue.envs.game.engine import IllegalTurn
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.parallel import MAX_THREADS

FORK = """
import os, warnings
import gymnasium
import numpy as np
import retinue.agents
from retinue.envs.batch import Batch
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.parallel import MAX_THREADS

def play():
    env = gymnasium.make("retinue/Journey-v0", opponents=["racer", "random"])
    _, info = env.reset(seed=3)
    env.action_space.seed(3)
    rewards = []
    for _ in range(100):
        *_, info = env.step(env.action_space.sample(mask=info["action_mask"]))
        rewards.append(float(info["rewards"].sum()))
    return rewards

batch = Batch(load_ruleset("journey"), 256, seats=range(4), threads=MAX_THREADS)
batch.reset(0)
batch.step(np.zeros(256, np.int64))  # the parent has used its thread pool
expected = play()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
    child = os.fork()
if child == 0:
    os._exit(0 if play() == expected else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_environments_work_in_a_forked_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def in_processes(mode: str, context: str, **arguments: Any) -> Any:
    """Make two environments in Gymnasium's worker processes."""
    if context not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {context}")
    with warnings.catch_warnings():
        # Newer Pythons warn of any fork beside threads.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        name = f"retinue/{mode.capitalize()}-v0"
        return gymnasium.make_vec(name, 2, "async", {"context": context}, **arguments)


def vector_trace(env: Any, mode: str, steps: int) -> list[tuple[str, bytes]]:
    """What a vector of two environments shows, with ``dict`` observations as bytes."""
    dealer, shown = Dealer(Encoding("turn", load_ruleset(mode)), 4, range(2)), []
    parts, info = env.reset(seed=6)
    rest = [info]
    for _ in range(steps):
        masks = np.array(env.call("action_masks"))
        shown.append((as_text([masks, rest]), np.hstack(list(parts.values())).tobytes()))
        parts, *rest = env.step(dealer(masks))
    return shown


@pytest.mark.parametrize(("mode", "context"), [("brawl", "fork"), ("journey", "spawn")])
def test_gymnasium_s_workers_play_whole_matches_as_plain_environments_do(
    mode: str, context: str
) -> None:
    agents = ["racer", Drawing(), make_agent("spread", JOURNEY)]
    arguments: dict[str, Any] = {"opponents": agents, "draw": "each match"}
    arguments |= {"encoding": "turn", "observation": "dict"}
    workers = in_processes(mode, context, **arguments)
    plain = SyncVectorEnv([partial(RetinueEnv, mode, **arguments)] * 2)
    shown = [vector_trace(each, mode, 260) for each in (workers, plain)]
    assert shown[0] == shown[1]
    assert sum('"places"' in text for text, _ in shown[0]) >= 4, "two matches of each"
    workers.close()


# Gymnasium logs, as warnings, the error that it then raises.
@pytest.mark.filterwarnings("ignore:.*ERROR:UserWarning")
def test_an_opponent_s_failure_in_a_worker_is_raised_here() -> None:
    env = in_processes("journey", "fork", seats=0, opponents=Cheat())
    env.reset(seed=1)
    env.step(np.zeros(2, np.int64))
    with pytest.raises(IllegalTurn, match="agent cheat chose an illegal turn"):
        env.step(np.full(2, END))
    env.close(terminate=True)


def test_batches_may_play_in_several_python_threads() -> None:
    ruleset = load_ruleset("journey")

    def play(seed: int, totals: dict[int, bytes]) -> None:
        batch = Batch(ruleset, 64, encoding="turn", seats=range(4), threads=MAX_THREADS)
        batch.reset(seed)
        action = np.zeros((64, 14), np.int64)
        action[:, 1] = 6
        for _ in range(200):
            if batch.step(action):
                batch.start_next(np.flatnonzero(batch.terminated))
        totals[seed] = batch.games.tobytes()

    alone: dict[int, bytes] = {}
    together: dict[int, bytes] = {}
    for seed in range(4):
        play(seed, alone)
    threads = [threading.Thread(target=play, args=(seed, together)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_kernels_leave_the_caller_s_thread_count_alone() -> None:
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        batch = Batch(load_ruleset("journey"), 8, seats=range(4), threads=MAX_THREADS)
        batch.reset(0)
        assert numba.get_num_threads() == 1
    finally:
        numba.set_num_threads(before)
