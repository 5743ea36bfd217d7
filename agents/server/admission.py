"""What happens to every request, whatever it asks: limits, headers, and what is counted."""

import time
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retinue.agents.server.metrics import Metrics
from retinue.agents.server.problems import ProblemError, as_response

UNLIMITED: Final = ("/health", "/metrics")
"""Answered however much there is to do."""
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
STREAM: Final = "text/event-stream"

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Admission:
    """Lets requests in, as long as there are not too many.

    Args:
        app: what answers them.
        most: how many may be answered at once. A stream does not count from when it has begun.
        metrics: is told of each.
    """

    def __init__(self, app: ASGIApp, most: int, metrics: Metrics) -> None:
        self._app = app
        self._most = most
        self._metrics = metrics
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        counts = 0 if scope["path"] in UNLIMITED else 1
        status = 500

        async def send_on(message: Message) -> None:
            nonlocal counts, status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
                if headers.get("content-type", "").startswith(STREAM):
                    self._active -= counts
                    counts = 0
            await send(message)

        self._active += counts
        try:
            if counts and self._active > self._most:
                problem = ProblemError(429, f"{self._most} requests are being answered already")
                await as_response(problem)(scope, receive, send_on)
            else:
                await self._app(scope, receive, send_on)
        finally:
            self._active -= counts
            path = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.answered(method, path, status, time.perf_counter() - began)
