"""The environments as made once agents have names.

A worker process imports no more than the module that an environment is made by. This one belongs to
``retinue.agents``, so that opponents can be given by name there too.
"""

from retinue.envs.gym_env import RetinueEnv
from retinue.envs.vector_env import RetinueVectorEnv

__all__ = ["RetinueEnv", "RetinueVectorEnv"]
