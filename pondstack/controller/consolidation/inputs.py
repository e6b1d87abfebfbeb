"""What consolidation knows of the cloud at one moment: Nova, Placement, the ledger, telemetry, lifetimes."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pondstack.clients.nova import ComputeService, Nova, ServerGroup
from pondstack.clients.placement import Placement
from pondstack.clients.servers import PlacedServer
from pondstack.consolidation.decision.snapshot import Amounts, Group, HostState, HostView, Reading, Snapshot, VmView
from pondstack.controller.consolidation.live_moves import LiveMoves
from pondstack.db.store.host_telemetry import HostTelemetry, Told
from pondstack.domain.history import Selection
from pondstack.domain.host_sleep import SleepState
from pondstack.domain.rack import RackView
from pondstack.domain.states import OWNED, SliceState
from pondstack.domain.telemetry import HostMetric, Metric, Source
from pondstack.ledger.reader import HistoryReader
from pondstack.prediction.lifetime import Remainders

GUEST_METRICS = (Metric.USED_CPUS, Metric.HOT_MIB, Metric.RESIDENT_MIB, Metric.EVICTED_MIB)
SAMPLE_SECONDS = 7 * 24 * 3600.0
"""How far back samples of guests are looked for; what is too old is for the decision to say."""
WINDOW = timedelta(days=30)
MOST_LIVES = 10_000
MEMORY = "MEMORY_MB"
LENT = frozenset(SliceState) - {SliceState.QUARANTINED}
"""States of a buffer that its lender has set aside."""


class Claimed(NamedTuple):
    """A host in Placement: what may be claimed of it, and what each consumer claims."""

    provider_uuid: str
    capacity: Amounts
    consumers: Mapping[str, Amounts]


class Inputs:
    """One leader's. `rack()`: the ledger at one moment, with what hosts lend."""

    def __init__(
        self,
        nova: Nova,
        placement: Placement,
        telemetry: HostTelemetry,
        rack: Callable[[], RackView],
        history: HistoryReader,
        executor: Executor,
    ) -> None:
        self._nova, self._placement, self._telemetry = nova, placement, telemetry
        self._rack, self._history, self._executor = rack, history, executor

    def read(self) -> tuple[Snapshot, dict[str, Any]]:
        """Return a snapshot, and how old what of it is. Raises Unavailable.

        Servers are read before claims: one that moves in between claims on both hosts, which is more than it needs.
        """
        services, servers = self._nova.compute_services(), self._nova.placed()
        found = self._executor.map(self._claimed, [item.hypervisor for item in services])
        claims = {item.hypervisor: claimed for item, claimed in zip(services, found, strict=True)}
        rack, told = self._rack(), self._telemetry.hosts()
        hosts = {item.hypervisor: _host(item, claims[item.hypervisor], told, rack) for item in services}
        guests = self._telemetry.guests([str(metric) for metric in GUEST_METRICS], SAMPLE_SECONDS)
        remaining = self._remaining()
        moves = LiveMoves(rack)
        views = tuple(
            _server(
                item,
                claims.get(item.host),
                guests.get(item.uuid, {}),
                remaining.get(item.uuid),
                moves.why_it_stays(item.uuid, item.host, item.specs),
            )
            for item in servers
        )
        candidates = _candidates(services, servers, _reach(rack))
        snapshot = Snapshot(hosts, views, candidates, _groups(self._nova.server_groups()))
        return snapshot, summary(snapshot)

    def live_moves(self) -> LiveMoves:
        """Return which servers cannot be migrated live now."""
        return LiveMoves(self._rack())

    def servers_of(self, host: str) -> tuple[ComputeService | None, list[PlacedServer]]:
        """Return the compute service of one host, and its servers. Raises Unavailable."""
        service = self._nova.compute_service(host)
        found = []
        for uuid in service.servers if service is not None else ():
            state = self._nova.server(uuid)
            if state is not None and state.host == host:
                found.append(PlacedServer(uuid, host, state.busy, state.running, specs=state.specs))
        return service, found

    def _claimed(self, host: str) -> Claimed | None:
        provider = self._placement.host_provider(host)
        if provider is None:
            return None
        records = self._placement.inventories(provider)
        held = self._placement.allocations_of(provider)
        # As Placement computes it: what a ratio leaves below a whole unit there cannot be claimed.
        capacity = {name: int((item.total - item.reserved) * item.allocation_ratio) for name, item in records.items()}
        return None if held is None else Claimed(provider, capacity, held)

    def _remaining(self) -> dict[str, float | None]:
        """Return the predicted remaining lifetimes of instances that live, by the lives of the last weeks."""
        complete_since = self._history.complete_since()
        if complete_since is None:
            return {}
        now = datetime.now(UTC)
        since = max(complete_since, now - WINDOW)
        lives = self._history.lifetimes(Selection(since, now, limit=MOST_LIVES))
        remainders = Remainders(lives, since, now)
        return {
            item.instance_uuid: remainders.median_seconds(
                item.project_id, item.flavor_name, max(0.0, (now - item.created_at).total_seconds())
            )
            for item in lives
            if item.deleted_at is None
        }


def _host(
    service: ComputeService, claimed: Claimed | None, told: Mapping[str, Mapping[str, list[Told]]], rack: RackView
) -> HostView:
    name = service.hypervisor
    mine = told.get(name, {})
    load = mine.get(HostMetric.LOAD_PERCENT, [])
    cpus = mine.get(HostMetric.CPUS, [])
    state, closed = _state(service, rack)
    used: dict[str, int] = defaultdict(int)
    for amounts in claimed.consumers.values() if claimed else ():
        for key, amount in amounts.items():
            used[key] += amount
    return HostView(
        name=name,
        state=state,
        cpus=cpus[-1].value if cpus else None,
        load=tuple(item.value for item in load),
        load_age_seconds=load[-1].age_seconds if load else 0.0,
        load_source=load[-1].source if load else Source.MEASURED,
        memory_mib=_newest(mine.get(HostMetric.MEMORY_MIB)),
        free_mib=_newest(mine.get(HostMetric.FREE_MIB)),
        capacity=claimed.capacity if claimed else None,
        used=used,
        lent_mib=sum(
            aged.item.size_mib for aged in rack.lent.buffers if aged.item.lender == name and aged.item.state in OWNED
        ),
        lends_mib=sum(
            aged.item.size_mib for aged in rack.lent.buffers if aged.item.lender == name and aged.item.state in LENT
        ),
        most_mib=bound.value if (bound := _newest(mine.get(HostMetric.MOST_LENT_MIB))) else None,
        closed=closed,
        provider_uuid=claimed.provider_uuid if claimed else "",
    )


def _state(service: ComputeService, rack: RackView) -> tuple[HostState, str]:
    name = service.hypervisor
    report = rack.hosts.get(name)
    if report is None:
        return HostState.CLOSED, "its agent has never reported"
    if report.fenced is not None:
        return HostState.CLOSED, f"it is fenced: {report.fenced}"
    if report.sleep is not None and report.sleep.state is SleepState.ASLEEP:
        return HostState.ASLEEP, ""
    if report.sleep is not None:
        return HostState.CLOSED, f"it is {report.sleep.state}: on its way to sleep, or back"
    if not service.enabled:
        return HostState.CLOSED, f"its compute service is disabled: {service.disabled_reason or 'no reason given'}"
    if not service.up:
        return HostState.CLOSED, "its compute service is down"
    return HostState.AWAKE, ""


def _newest(told: list[Told] | None) -> Reading | None:
    return Reading(*told[-1]) if told else None


def _server(
    item: PlacedServer, claimed: Claimed | None, told: Mapping[str, Told], remaining: float | None, stays: str
) -> VmView:
    claim = claimed.consumers.get(item.uuid, {}) if claimed else {}
    fixed = item.busy or ("" if item.running else "it is not running") or stays
    pager, hot = told.get(Metric.RESIDENT_MIB), told.get(Metric.HOT_MIB)
    used, working_set = told.get(Metric.USED_CPUS), hot or pager
    return VmView(
        uuid=item.uuid,
        host=item.host,
        local_mib=claim.get(MEMORY, 0),
        claim=claim,
        used_cpus=Reading(*used) if used else None if item.running else Reading(0.0, 0.0),
        working_set_mib=Reading(*working_set) if working_set else None,
        extendable=pager is not None,
        remaining_seconds=remaining,
        fixed=fixed or ("" if claim else "Placement has no claim of it on its host"),
        traits=item.traits,
    )


def _groups(found: list[ServerGroup]) -> dict[str, Group]:
    """Return by member the groups that Nova enforces; those of soft policies it only prefers."""
    hard = {"affinity": True, "anti-affinity": False}
    made = [Group(item.uuid, item.members, hard[item.policy]) for item in found if item.policy in hard]
    return {member: group for group in made for member in group.members}


def _reach(rack: RackView) -> dict[str, frozenset[str]]:
    """Return by consumer the hosts that reach the pool that it has memory of."""
    reach: dict[str, set[str]] = defaultdict(set)
    for host, report in rack.hosts.items():
        for pool in report.pools:
            reach[pool].add(host)
    return {aged.item.consumer_uuid: frozenset(reach[aged.item.pool_uuid]) for aged in rack.allocations.values()}


def _candidates(
    services: Sequence[ComputeService], servers: Sequence[PlacedServer], reach: Mapping[str, frozenset[str]]
) -> Mapping[str, frozenset[str]]:
    """Return by server the hosts that it may go to, where these are not all: of its pool, and of its hypervisor's type.

    Nova migrates a server between hypervisors of the same type only.
    """
    alike: dict[str, set[str]] = defaultdict(set)
    for service in services:
        alike[service.hypervisor_type].add(service.hypervisor)
    if len(alike) < 2:
        return reach
    types = {service.hypervisor: service.hypervisor_type for service in services}
    hosts = {kind: frozenset(names) for kind, names in alike.items()}
    every = frozenset(types)
    mine = {item.uuid: hosts.get(types.get(item.host, ""), every) for item in servers}
    return {**reach, **{uuid: names & reach.get(uuid, every) for uuid, names in mine.items()}}


def summary(snapshot: Snapshot) -> dict[str, Any]:
    """Return how many hosts and servers were looked at, and how old their figures are, in seconds."""
    loads_of = {host.load_source for host in snapshot.hosts.values() if host.load}
    loads = [host.load_age_seconds for host in snapshot.hosts.values() if host.load]
    used = [item.used_cpus for item in snapshot.servers if item.used_cpus is not None]
    sets = [item.working_set_mib for item in snapshot.servers if item.working_set_mib is not None]
    memory = [host.free_mib for host in snapshot.hosts.values() if host.free_mib is not None]
    return {
        "hosts": len(snapshot.hosts),
        "servers": len(snapshot.servers),
        "oldest_load_seconds": round(max(loads), 1) if loads else None,
        "oldest_server_load_seconds": _oldest(used),
        "working_sets": len(sets),
        "oldest_working_set_seconds": _oldest(sets),
        "lifetimes": sum(item.remaining_seconds is not None for item in snapshot.servers),
        "sources": sorted({item.source for item in (*used, *sets, *memory)} | loads_of),
    }


def _oldest(readings: list[Reading]) -> float | None:
    return round(max(item.age_seconds for item in readings), 1) if readings else None
