"""The game and the environments over it. Importing this registers the Gymnasium environments."""

import gymnasium

for _mode in ("Journey", "Brawl"):
    gymnasium.register(
        id=f"retinue/{_mode}-v0",
        entry_point="retinue.envs.gym_env:RetinueEnv",
        vector_entry_point="retinue.envs.vector_env:RetinueVectorEnv",
        kwargs={"mode": _mode.lower()},
    )
