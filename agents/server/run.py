"""Running a service: its address, its signals, its end."""

import contextlib
import gc
import os
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

import uvicorn
from uvicorn.server import HANDLED_SIGNALS

from retinue.agents.server.app import create_app
from retinue.agents.server.service import Service
from retinue.agents.server.settings import Settings

_BACKLOG: Final = 2048
_KEEP_ALIVE_SECONDS: Final = 60
_END_SECONDS: Final = 15
"""In which requests that are being answered must end when the service does."""


class AddressError(OSError):
    """An address at which nothing can listen; the message says why."""


def serve(settings: Settings, host: str, port: int, tell: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM, then finish what has begun.

    Args:
        settings: of the service.
        host: a name or address of this machine.
        port: 0 for any that is free.
        tell: is given the address as soon as it answers.

    Raises:
        AddressError: nothing can listen there.
        AgentError: an operator's agent cannot be made.
        StoreError: matches cannot be kept in the folder.
    """
    # A thread that has done its share sleeps, and leaves its core to the event loop.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    listener = _listen(host, port)
    with contextlib.closing(listener):
        service = Service(settings)
        config = uvicorn.Config(
            create_app(service),
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="on",
            backlog=_BACKLOG,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_END_SECONDS,
        )
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}"
        _Server(config, service, lambda: tell(address)).run([listener])


class _Server(uvicorn.Server):
    """Says when it answers, and lets streams end when it does."""

    def __init__(
        self, config: uvicorn.Config, service: Service, on_start: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._service = service
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What is there by now stays. Looked through again and again, it would hold up all requests
        # for a tenth of a second now and then.
        gc.collect()
        gc.freeze()
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.hosting.close_streams()  # uvicorn waits for all that is being answered
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take a signal for the wish to end, which is then fulfilled: it is not raised again."""
        before = {each: signal.signal(each, self._on_signal) for each in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> Any:
        self.handle_exit(number, frame)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address.

    Raises:
        AddressError: it cannot be.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise AddressError(f"{host}: {error.strerror}") from error
    try:
        if hasattr(socket, "SO_REUSEADDR") and not hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise AddressError(
            f"cannot listen at {host}, port {port}: {error.strerror}; choose another with --port "
            "(0 takes any that is free)"
        ) from error
    return listener
