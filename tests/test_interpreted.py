"""With ``NUMBA_DISABLE_JIT=1`` the environments run as ordinary Python and play the same match."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLAY = """
import json, sys
import gymnasium
import numpy as np
import retinue.agents

mode, encoding, decisions = sys.argv[1], sys.argv[2], int(sys.argv[3])
env = gymnasium.make(
    f"retinue/{mode}-v0", encoding=encoding, seats=(0, 2), opponents=["racer", "spread", "random"]
)
observation, info = env.reset(seed=11)
env.action_space.seed(5)
trace = []
for _ in range(decisions):
    action = env.action_space.sample(mask=info["action_mask"])
    observation, reward, terminated, _, info = env.step(action)
    trace.append([observation.round(5).tolist(), round(reward, 9), info["seat"]])
    if terminated:
        observation, info = env.reset()
print(json.dumps(trace))
"""


@pytest.mark.parametrize(
    ("mode", "encoding", "decisions"), [("Journey", "steps", 60), ("Brawl", "turn", 60)]
)
def test_interpreted_play_is_compiled_play(
    tmp_path: Path, mode: str, encoding: str, decisions: int
) -> None:
    traces = []
    for disabled in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PLAY, mode, encoding, str(decisions)],
            env={**os.environ, "NUMBA_DISABLE_JIT": disabled},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        traces.append(json.loads(done.stdout))
    assert len(traces[0]) == decisions
    assert traces[0] == traces[1]
