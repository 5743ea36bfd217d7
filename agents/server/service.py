"""Everything that a service is made of, and how its parts start and end."""

from typing import Final

import numpy as np

from retinue.agents.server.deciding import Decider, key_of
from retinue.agents.server.hosting import Hosting
from retinue.agents.server.metrics import Metrics
from retinue.agents.server.positions import legal_of, next_of
from retinue.agents.server.roster import Roster
from retinue.agents.server.settings import Settings
from retinue.agents.server.store import Store
from retinue.envs.game import board, engine
from retinue.envs.game.dice import die
from retinue.envs.game.record import Recorder
from retinue.envs.game.ruleset import MODES, load_ruleset
from retinue.envs.game.state import empty_turn, state_from_json, state_to_json


def _compile_engine() -> None:
    """Have compiled, before anybody asks, what is called in the event loop itself."""
    ruleset = load_ruleset(MODES[0])
    recorder = Recorder(ruleset, [""] * board.SEATS, None)
    board.tile(0, 0)
    key_of(0)
    recorder.roll([int(die(np.uint64(0), 0, 0, index)) for index in range(ruleset.dice[0][1])])
    legal_of(recorder.game, ruleset)
    state_from_json(state_to_json(recorder.game), ruleset)
    engine.judge(recorder.game, ruleset.packed, empty_turn())
    recorder.play(empty_turn())
    next_of(recorder.game, ruleset)
    engine.roll(recorder.game, ruleset.packed, np.uint64(0))


class Service:
    """A service's parts.

    Args:
        settings: its limits.

    Raises:
        AgentError: an operator's agent cannot be made.
        StoreError: matches cannot be kept in the folder.
    """

    def __init__(self, settings: Settings) -> None:
        _compile_engine()
        self.settings: Final = settings
        self.roster: Final = Roster(settings.agents, settings.time_limit, settings.threads)
        self.store: Final = Store(settings.matches_folder)
        self.metrics: Final = Metrics(
            lambda: self.hosting.playing,
            lambda: self.decider.waiting,
            lambda: self.hosting.streams,
        )
        self.decider: Final = Decider(
            self.roster,
            (settings.waiting, settings.waiting_long),
            settings.at_once,
            self.metrics.decided,
        )
        self.hosting: Final = Hosting(settings, self.store, self.roster, self.decider)

    def start(self) -> None:
        """Begin to answer, in the event loop that runs."""
        self.decider.start()
        self.hosting.start()

    async def stop(self) -> None:
        """End, with every turn on disk that has been told of."""
        await self.hosting.stop()
        await self.decider.stop()
        self.store.close()
