"""Answers a scrape of Prometheus: what this controller is, and as the leader what the rack has.

Figures of the rack come from the leader only, so that a sum over the controllers counts nothing twice. A scrape reads
what the process has in memory, and a few short lists of the database.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from oslo_log import log
from prometheus_client import CollectorRegistry, disable_created_metrics, start_http_server
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pondstack.controller.leader.leader import Leader
from pondstack.controller.workers import PeriodicWorker
from pondstack.domain.errors import PondError, Unavailable
from pondstack.domain.host_sleep import HostSleep
from pondstack.domain.model import PoolState
from pondstack.domain.plan import Plan
from pondstack.domain.qos import Verdict
from pondstack.telemetry import metrics as known
from pondstack.telemetry.metrics import Counts, family

LOG = log.getLogger(__name__)

RETRY_SECONDS = 5.0
"""Between two tries to get an address that somebody else has: a controller leads without it, too."""
STOP_SECONDS = 5.0
MIB = 1024 * 1024


class Scrape(Collector):
    """What a scrape reads. `leader()`: None unless this controller leads, and is sure of it."""

    def __init__(self, leader: Callable[[], Leader | None], counts: Counts) -> None:
        self._leader = leader
        self._counts = counts

    def describe(self) -> list[Metric]:
        """Return nothing: to be registered costs no reads."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read everything; what cannot be read is left out, and counted."""
        leader = self._leader()
        yield family(known.LEADING, {(): float(leader is not None)})
        yield family(known.EPOCH, {(): float(0 if leader is None else leader.epoch)})
        if leader is not None:
            for part, read in PARTS.items():
                try:
                    yield from read(leader)
                except PondError as error:
                    LOG.info("A scrape lacks the %s: %s", part, error)
                    self._counts.unread(part)
        yield from self._counts.collect()


def _pools(leader: Leader) -> list[Metric]:
    pools = leader.reader.pools()
    return [
        family(known.POOL_UP, {(pool.name,): float(pool.state == PoolState.UP) for pool in pools}),
        family(
            known.SLICES,
            {(pool.name, state): float(count) for pool in pools for state, count in pool.slices.items()},
        ),
        family(known.SLICE_BYTES, {(pool.name,): float(pool.slice_mib * MIB) for pool in pools}),
        family(known.FREE_BUFFER, {(pool.name,): float(pool.free_buffer.slices) for pool in pools}),
        family(known.BUFFER_MISSES, {(pool.name,): float(pool.free_buffer.misses) for pool in pools}),
    ]


def _agents(leader: Leader) -> list[Metric]:
    hosts = leader.reader.hosts()
    up = sum(host.up for host in hosts)
    return [family(known.AGENTS, {("up",): float(up), ("down",): float(len(hosts) - up)})]


def _mitigations(leader: Leader) -> list[Metric]:
    found: dict[tuple[str, ...], float] = {}
    for item in leader.mitigations.unended():
        key = (str(item.state), str(item.method))
        found[key] = found.get(key, 0.0) + 1.0
    return [family(known.MITIGATIONS_OPEN, found)]


def _predictions(leader: Leader) -> list[Metric]:
    verdicts, allowance = leader.quality.monitor.verdicts, leader.predictions.allowance()
    judged: dict[tuple[str, ...], float] = {}
    if verdicts is not None:
        judged = {(str(item),): float(verdicts.get(item, 0)) for item in Verdict}
    return [
        family(known.QOS_SERVERS, judged),
        family(known.MODEL_BUDGET, {} if allowance is None else {(): allowance.left}),
        family(known.RECLAIMABLE, {(): float(leader.reader.qos.reclaimable()[1] * MIB)}),
    ]


def _plans(leader: Leader) -> list[Metric]:
    return [family(known.PLANS_OPEN, _by_state(leader.consolidation.unattended()))]


def _sleeps(leader: Leader) -> list[Metric]:
    return [family(known.HOST_SLEEPS, _by_state(leader.sleeps.unended()))]


def _by_state(items: Sequence[Plan] | Sequence[HostSleep]) -> dict[tuple[str, ...], float]:
    return {(state,): float(count) for state, count in Counter(str(item.state) for item in items).items()}


PARTS: dict[str, Callable[[Leader], list[Metric]]] = dict(
    zip(known.PARTS, (_pools, _agents, _mitigations, _predictions, _plans, _sleeps), strict=True)
)


class MetricsServer:
    """Answers at one address, from as soon as that is free. `port` 0: nowhere."""

    def __init__(self, host: str, port: int, scrape: Scrape, retry_seconds: float = RETRY_SECONDS) -> None:
        self.scrape = scrape
        self._host, self._port = host, port
        self._registry = CollectorRegistry()
        self._registry.register(scrape)
        self._server: Any = None
        self._worker = PeriodicWorker("metrics", retry_seconds, self._serve) if port else None

    @property
    def serving(self) -> bool:
        """Whether it answers."""
        return self._server is not None

    def start(self) -> None:
        """Answer from now on."""
        if self._worker is not None:
            disable_created_metrics()
            self._worker.start()

    def stop(self) -> None:
        """End."""
        if self._worker is not None:
            self._worker.stop(STOP_SECONDS)
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def _serve(self) -> None:
        if self._server is not None:
            return
        try:
            self._server, _ = start_http_server(self._port, self._host, self._registry)
        except OSError as error:
            raise Unavailable(
                f"[metrics] {self._host} port {self._port}: {error.strerror}; end who has it, or choose another port"
            ) from error
        LOG.info("Metrics are at http://%s:%d/metrics", self._host, self._port)
