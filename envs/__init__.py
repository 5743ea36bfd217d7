"""The game and the environments over it. Importing this registers the Gymnasium environments."""

import gymnasium


def register_environments(scalar: str, vector: str) -> None:
    """Register the environments, or register them anew, to be made by classes ``module:name``."""
    for mode in ("Journey", "Brawl"):
        name = f"retinue/{mode}-v0"
        gymnasium.registry.pop(name, None)
        gymnasium.register(
            id=name,
            entry_point=scalar,
            vector_entry_point=vector,
            kwargs={"mode": mode.lower()},
        )


register_environments("retinue.envs.gym_env:RetinueEnv", "retinue.envs.vector_env:RetinueVectorEnv")
