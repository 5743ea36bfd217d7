"""Environments in forked processes and batches in several Python threads."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from retinue.envs.batch import Batch
from retinue.envs.game.ruleset import load_ruleset
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
