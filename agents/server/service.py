"""Everything that a service is made of, and how its parts start and end."""

from typing import Final

from retinue.agents.server.deciding import Decider
from retinue.agents.server.hosting import Hosting
from retinue.agents.server.metrics import Metrics
from retinue.agents.server.roster import Roster
from retinue.agents.server.settings import Settings
from retinue.agents.server.store import Store


class Service:
    """A service's parts.

    Args:
        settings: its limits.

    Raises:
        AgentError: an operator's agent cannot be made.
        StoreError: matches cannot be kept in the folder.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings: Final = settings
        self.roster: Final = Roster(settings.agents, settings.time_limit)
        self.store: Final = Store(settings.matches_folder)
        self.metrics: Final = Metrics(
            lambda: self.hosting.playing,
            lambda: self.decider.waiting,
            lambda: self.hosting.streams,
        )
        self.decider: Final = Decider(
            self.roster,
            settings.threads,
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
