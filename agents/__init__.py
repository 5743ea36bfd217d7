"""Players: whatever chooses turns, scripted, searching or learned.

Importing this lets environments take agents by their names.
"""

from retinue.agents.registry import make_known_agent
from retinue.envs import register_environments
from retinue.envs.opponents import set_resolver

set_resolver(make_known_agent)
register_environments(
    "retinue.agents.environments:RetinueEnv", "retinue.agents.environments:RetinueVectorEnv"
)
