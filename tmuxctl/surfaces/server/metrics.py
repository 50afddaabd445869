"""What the server counts, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily

if TYPE_CHECKING:
    from prometheus_client.core import Metric

TURN_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)
COMMAND_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The counters of one server. `count_states` gives how many sessions are in each state now."""

    def __init__(self, count_states: Callable[[], Mapping[str, int]]) -> None:
        self.registry = CollectorRegistry()
        self.turns = Counter("tmuxctl_turns", "Turns that ended.", ("profile", "result"), registry=self.registry)
        self.turn_seconds = Histogram(
            "tmuxctl_turn_seconds", "How long turns took.", buckets=TURN_BUCKETS, registry=self.registry
        )
        self.wait_seconds = Histogram(
            "tmuxctl_wait_seconds", "How long waits took.", buckets=TURN_BUCKETS, registry=self.registry
        )
        self.command_seconds = Histogram(
            "tmuxctl_tmux_command_seconds",
            "How long tmux took for a command list.",
            buckets=COMMAND_BUCKETS,
            registry=self.registry,
        )
        self.asking_seconds = Histogram(
            "tmuxctl_asking_seconds", "How long questions stood.", buckets=TURN_BUCKETS, registry=self.registry
        )
        self.errors = Counter("tmuxctl_errors", "Calls that failed.", ("code",), registry=self.registry)
        self.under_way = Gauge("tmuxctl_calls_under_way", "Calls under way.", registry=self.registry)
        self.events_dropped = Counter(
            "tmuxctl_event_readers_dropped", "Readers of events that were too slow.", registry=self.registry
        )
        self.registry.register(_States(count_states))

    def note_call(self, operation: str, seconds: float, result: Any) -> None:
        """Count a call that was carried out."""
        if operation in ("ask", "exec"):
            self.turn_seconds.observe(seconds)
            self.turns.labels(getattr(result, "profile", None) or "", "done").inc()
        elif operation == "wait":
            self.wait_seconds.observe(seconds)

    def note_error(self, operation: str, code: str) -> None:
        """Count a call that failed."""
        self.errors.labels(code).inc()
        if operation in ("ask", "exec"):
            self.turns.labels("", code).inc()

    def text(self) -> bytes:
        """All of them as they are now."""
        return generate_latest(self.registry)


class _States:
    """The sessions by their states, counted when somebody asks."""

    def __init__(self, count: Callable[[], Mapping[str, int]]) -> None:
        self.count = count

    def describe(self) -> Iterable[Metric]:
        """Nothing is counted for a description."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """prometheus_client calls this."""
        family = GaugeMetricFamily("tmuxctl_sessions", "Sessions by state.", labels=("state",))
        for state, number in self.count().items():
            family.add_metric([state], number)
        yield family
