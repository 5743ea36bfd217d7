"""Where the time of training goes."""

import time
from typing import Any, Final

from retinue.training.league import League
from retinue.training.sb3_vec_env import RetinueVecEnv

PARTS: Final = ("environment", "opponents", "inference", "learning", "league")


class Clock:
    """Adds up the seconds that each part of training takes, measurements aside.

    ``environment``: the rules, the learner's candidates and observations, and opponents that
    kernels call. ``opponents``: copies of the learner that play. ``inference``: the learner's own
    choices, keeping what was seen, and the rollouts of a refinement. ``learning``: updates.
    ``league``: renewing it.

    Args:
        environment: of the learner.
        league: its opponents.
    """

    def __init__(self, environment: RetinueVecEnv, league: League) -> None:
        self._environment, self._league = environment, league
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._mark()

    def _mark(self) -> None:
        self._since = time.perf_counter()
        self._steps, self._copies = self._environment.seconds, self._league.seconds

    def end_of_pause(self) -> None:
        """Begin to count again; what came since the last call of any method counts for nothing."""
        self._mark()

    def end_of_renewal(self) -> None:
        """Count the time since the last call as the league's."""
        self.seconds["league"] += time.perf_counter() - self._since
        self._mark()

    def end_of_rollout(self) -> None:
        """Count the time since the last call as a rollout's."""
        steps = self._environment.seconds - self._steps
        copies = self._league.seconds - self._copies
        self.seconds["environment"] += steps - copies
        self.seconds["opponents"] += copies
        self.seconds["inference"] += time.perf_counter() - self._since - steps
        self._mark()

    def end_of_update(self) -> None:
        """Count the time since the last call as learning."""
        self.seconds["learning"] += time.perf_counter() - self._since
        self._mark()

    def shares(self) -> dict[str, Any]:
        """Return each part's share of the time so far, from 0 to 1."""
        whole = sum(self.seconds.values()) or 1.0
        return {name: round(seconds / whole, 3) for name, seconds in self.seconds.items()}
