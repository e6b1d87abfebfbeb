"""What a controller tells Prometheus: each metric's name and meaning, in one table, and what its process counts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from prometheus_client import Counter, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from pondstack.domain import plan
from pondstack.domain.host_sleep import SleepState
from pondstack.domain.mitigation import ENDED, MitigationMethod, MitigationState
from pondstack.domain.plan import ActionState, PlanKind, PlanState
from pondstack.ledger.qos_records import QosDecision

SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
"""Bounds of the histogram: a copy takes seconds, a mitigation that waits for room takes up to hours."""


MIGRATED = (ActionState.DONE, ActionState.FAILED, ActionState.SKIPPED)
"""How a live migration of a plan may be settled."""


class Kind(StrEnum):
    """Prometheus' own kinds."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Described:
    """A metric; a counter's name ends in _total. `meaning`: one clause, as /metrics and the documentation show it."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()


_GAUGE, _COUNTER, _HISTOGRAM = Kind.GAUGE, Kind.COUNTER, Kind.HISTOGRAM

LEADING = Described("pondstack_leading", _GAUGE, "1 while this controller leads and is sure of it, else 0")
EPOCH = Described("pondstack_epoch", _GAUGE, "Epoch under which this controller leads, 0 while it does not")
AGENTS = Described(
    "pondstack_agents", _GAUGE, "Hosts by whether their agent was heard of lately (up, down)", ("state",)
)
POOL_UP = Described("pondstack_pool_up", _GAUGE, "1 while the pool's device answers, else 0", ("pool",))
SLICES = Described("pondstack_slices", _GAUGE, "Slices of a pool, by their state", ("pool", "state"))
SLICE_BYTES = Described("pondstack_slice_bytes", _GAUGE, "Size of each slice of a pool", ("pool",))
FREE_BUFFER = Described("pondstack_free_buffer_slices", _GAUGE, "Free slices that a pool keeps back", ("pool",))
BUFFER_MISSES = Described(
    "pondstack_free_buffer_misses_total",
    _COUNTER,
    "Starts that Placement had admitted and that found too few free slices",
    ("pool",),
)
QOS_SERVERS = Described(
    "pondstack_qos_servers",
    _GAUGE,
    "Servers with pool memory in the newest round of the QoS monitor, by verdict; none while the monitor is off",
    ("verdict",),
)
QOS_DECISIONS = Described(
    "pondstack_qos_decisions_total",
    _COUNTER,
    "Decisions of the QoS monitor that this process kept; the same one of a server again is not kept",
    ("verdict", "action", "mode"),
)
MITIGATIONS_OPEN = Described(
    "pondstack_mitigations_open", _GAUGE, "Mitigations under way, by their state and method", ("state", "method")
)
MITIGATION_CHANGES = Described(
    "pondstack_mitigation_changes_total",
    _COUNTER,
    "Mitigations that this process took to a state, the ends (done, failed, aborted) included",
    ("state", "method"),
)
MITIGATION_SECONDS = Described(
    "pondstack_mitigation_seconds",
    _HISTOGRAM,
    "Seconds from the begin of a mitigation to the end to which this process took it",
    ("state", "method"),
)
MODEL_BUDGET = Described(
    "pondstack_model_budget_left",
    _GAUGE,
    "Servers that the serving models may still slow down beyond what they tolerate; none while no model serves",
)
RECLAIMABLE = Described(
    "pondstack_reclaimable_bytes", _GAUGE, "Memory of long-lived servers that could come from the pool as well"
)
PLANS_OPEN = Described(
    "pondstack_plans_open", _GAUGE, "Consolidation plans, drains and restorations under way, by their state", ("state",)
)
PLAN_ENDS = Described(
    "pondstack_plan_ends_total",
    _COUNTER,
    "Plans that this process brought to an end, by kind and state",
    ("kind", "state"),
)
PLAN_MIGRATIONS = Described(
    "pondstack_plan_migrations_total",
    _COUNTER,
    "Live migrations of plans that this process saw the end of (done, failed; skipped: not begun, or for nothing)",
    ("state",),
)
UNPLACED_SERVERS = Described(
    "pondstack_unplaced_servers_total",
    _COUNTER,
    "Servers for which Nova found no host while hosts slept, and for which this process made a plan to wake some",
)
HOST_SLEEPS = Described(
    "pondstack_host_sleeps",
    _GAUGE,
    "Hosts that are put to sleep, asleep, woken or lost in their sleep, by the state of it",
    ("state",),
)
HOST_SLEEP_CHANGES = Described(
    "pondstack_host_sleep_changes_total",
    _COUNTER,
    "Sleeps of hosts that this process took to a state, the ends (awake, failed, aborted) included",
    ("state",),
)
PARTS = ("pools", "agents", "mitigations", "predictions", "plans", "sleeps")
"""Of a scrape: each is read by itself."""
UNREAD = Described(
    "pondstack_unread_total",
    _COUNTER,
    f"Scrapes that lacked a part ({', '.join(PARTS)}), since the database did not answer",
    ("part",),
)

REFUSALS = ("refused", "stale_message")
"""Why a message was not let in: its sender is not who it says or may not call this; it is old, or came before."""
REFUSED = Described(
    "pondstack_refused_messages_total",
    _COUNTER,
    f"Messages on the bus, or over RDMA, that this controller did not believe, by why ({', '.join(REFUSALS)})",
    ("reason",),
)

GAVE_WAY = Described(
    "pondstack_gave_way_buffers_total",
    _COUNTER,
    "Buffers of best-effort loans that this process asked back for guaranteed ones",
)

TABLE = (
    LEADING,
    EPOCH,
    AGENTS,
    POOL_UP,
    SLICES,
    SLICE_BYTES,
    FREE_BUFFER,
    BUFFER_MISSES,
    QOS_SERVERS,
    QOS_DECISIONS,
    MITIGATIONS_OPEN,
    MITIGATION_CHANGES,
    MITIGATION_SECONDS,
    PLANS_OPEN,
    PLAN_ENDS,
    UNPLACED_SERVERS,
    PLAN_MIGRATIONS,
    HOST_SLEEPS,
    HOST_SLEEP_CHANGES,
    MODEL_BUDGET,
    RECLAIMABLE,
    UNREAD,
    REFUSED,
    GAVE_WAY,
)
"""All of them, in the order of the documentation."""


def family(metric: Described, values: Mapping[tuple[str, ...], float]) -> Metric:
    """Return a gauge or counter with the values that were just read, by their labels."""
    kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    made = kind(metric.name, metric.meaning, labels=metric.labels)
    for labels, value in values.items():
        made.add_metric(labels, value)
    return made


class Counts:
    """What one process counted since it started, under whichever epochs. Thread-safe."""

    def __init__(self) -> None:
        self._decisions = _counter(QOS_DECISIONS)
        self._changes = _counter(MITIGATION_CHANGES)
        self._seconds = Histogram(
            MITIGATION_SECONDS.name,
            MITIGATION_SECONDS.meaning,
            MITIGATION_SECONDS.labels,
            buckets=SECONDS,
            registry=None,
        )
        self._plan_ends, self._plan_migrations = _counter(PLAN_ENDS), _counter(PLAN_MIGRATIONS)
        self._unplaced = _counter(UNPLACED_SERVERS)
        self._sleep_changes = _counter(HOST_SLEEP_CHANGES)
        self._unread = _counter(UNREAD)
        self._refused = _counter(REFUSED)
        self._gave_way = _counter(GAVE_WAY)
        # From 0 on: a rate of what comes up with its first event lacks that event.
        for part in PARTS:
            self._unread.labels(part)
        for reason in REFUSALS:
            self._refused.labels(reason)
        for state in sorted(ENDED):
            for method in MitigationMethod:
                self._changes.labels(state, method)

        for kind, ended in product(PlanKind, sorted(plan.ENDED)):
            self._plan_ends.labels(kind, ended)
        for settled in MIGRATED:
            self._plan_migrations.labels(settled)
        for slept in SleepState:
            self._sleep_changes.labels(slept)

    def decided(self, item: QosDecision) -> None:
        """Count a decision that was kept."""
        self._decisions.labels(item.verdict, item.action, item.mode).inc()

    def mitigation_changed(self, state: MitigationState, method: MitigationMethod) -> None:
        """Count a mitigation that came to a state."""
        self._changes.labels(state, method).inc()

    def mitigation_ended(self, state: MitigationState, method: MitigationMethod, seconds: float) -> None:
        """Note how long one took, from its begin."""
        self._seconds.labels(state, method).observe(seconds)

    def unplaced(self, servers: int) -> None:
        """Count servers that found no host."""
        self._unplaced.inc(servers)

    def plan_ended(self, kind: PlanKind, state: PlanState) -> None:
        """Count a plan that came to its end."""
        self._plan_ends.labels(kind, state).inc()

    def plan_migration_ended(self, state: ActionState) -> None:
        """Count a live migration of a plan that is settled."""
        self._plan_migrations.labels(state).inc()

    def host_sleep_changed(self, state: SleepState) -> None:
        """Count a host's sleep that came to a state."""
        self._sleep_changes.labels(state).inc()

    def unread(self, part: str) -> None:
        """Count a scrape that lacks a part."""
        self._unread.labels(part).inc()

    def refused(self, code: str) -> None:
        """Count a message on the bus that was not believed; `code`: of the error."""
        self._refused.labels(code.rpartition(".")[2]).inc()

    def gave_way(self, buffers: int) -> None:
        """Count buffers that a best-effort loan is to give up."""
        self._gave_way.inc(buffers)

    def collect(self) -> Iterator[Metric]:
        """Return all of them."""
        plans = (self._plan_ends, self._plan_migrations, self._unplaced, self._sleep_changes)
        counted = (self._decisions, self._changes, self._seconds, *plans, self._unread, self._refused, self._gave_way)
        for metric in counted:
            yield from metric.collect()


def _counter(metric: Described) -> Counter:
    return Counter(metric.name, metric.meaning, metric.labels, registry=None)
