"""What a service tells Prometheus of itself."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """Counters of one service.

    Args:
        matches: how many hosted matches are not over.
        waiting: how many positions wait for a decision.
        streams: how many streams of events are open.
    """

    def __init__(
        self,
        matches: Callable[[], float],
        waiting: Callable[[], float],
        streams: Callable[[], float],
    ) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "retinue_requests",
            "Requests answered.",
            ("method", "path", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "retinue_request_seconds",
            "Time until a request was answered.",
            ("path",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._decisions = Counter(
            "retinue_decisions", "Decisions made.", ("agent",), registry=registry
        )
        self._batches = Histogram(
            "retinue_batch_size", "Decisions made together.", buckets=_SIZES, registry=registry
        )
        for name, text, value in (
            ("retinue_matches", "Hosted matches that are not over.", matches),
            ("retinue_waiting", "Positions that wait for a decision.", waiting),
            ("retinue_streams", "Open streams of events.", streams),
        ):
            Gauge(name, text, registry=registry).set_function(value)

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request; ``path`` is that of the operation, not as it was asked for."""
        self._requests.labels(method, path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def decided(self, agent: str, count: int) -> None:
        """Count decisions that an agent made together; safe from any thread."""
        self._decisions.labels(agent).inc(count)
        self._batches.observe(count)

    def as_text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        return generate_latest(self._registry)
