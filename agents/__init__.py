"""Players: whatever chooses turns, scripted, searching or learned.

Importing this lets environments take agents by their names.
"""

import retinue.envs  # noqa: F401 - registers the environments, for which agents are imported
from retinue.agents.registry import make_agent
from retinue.envs.opponents import set_resolver

set_resolver(make_agent)
