"""The input of the reconciler's decision: ledger, Placement's claims, agents' reports, device tables, as values."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pondstack.controller.reconcile.holders import Claims, holders
from pondstack.devices.base import Permission
from pondstack.domain.lending import Buffer, RemoteAllocation
from pondstack.domain.lent_memory import AgedBuffer
from pondstack.domain.mitigation import Mitigation
from pondstack.domain.model import Allocation
from pondstack.domain.rack import AgedSlice, HostReport, RackView
from pondstack.rpc.wire import Attached

Disk = tuple[str, str]
"""A swap disk: its host, and the instance whose it is."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits in seconds; see [controller], [mitigation] and [sleep] for their `stuck_seconds`."""

    agent_down_seconds: float = 20.0
    unclaimed_grace_seconds: float = 30.0
    assign_timeout_seconds: float = 90.0
    settle_seconds: float = 2.0
    stuck_seconds: float = 120.0
    device_failed_seconds: float = 30.0
    mitigation_stuck_seconds: float = 900.0
    sleep_stuck_seconds: float = 900.0

    @classmethod
    def of(cls, conf: Any) -> "Limits":
        """Return those of a configuration, as they are now."""
        group = conf.controller
        return cls(
            agent_down_seconds=group.agent_down_seconds,
            unclaimed_grace_seconds=group.unclaimed_grace_seconds,
            assign_timeout_seconds=group.assign_timeout_seconds,
            settle_seconds=group.report_settle_seconds,
            device_failed_seconds=group.device_failed_seconds,
            mitigation_stuck_seconds=conf.mitigation.stuck_seconds,
            sleep_stuck_seconds=conf.sleep.stuck_seconds,
        )


@dataclass(frozen=True)
class Observation:
    """The input of one decision. `claims` None: Placement is off or does not answer; then nothing counts as unclaimed.

    `failing`: for how many seconds a pool's device has not answered; a new leader has seen none fail.
    `spread_seconds`: the device tables were read up to so long before the ledger; younger changes are no disagreement.
    """

    rack: RackView
    claims: Claims | None = None
    permissions: Mapping[str, Mapping[int, Permission]] = field(default_factory=dict)
    limits: Limits = Limits()
    spread_seconds: float = 0.0
    failing: Mapping[str, float] = field(default_factory=dict)
    mitigations: Sequence[Mitigation] = ()
    """Those that are open."""
    unclaimed_disks: Mapping[Disk, float] = field(default_factory=dict)
    """For how many seconds nobody has claimed swap disks, as this leader saw it."""

    @cached_property
    def mitigated(self) -> Mapping[str, Mitigation]:
        """The open mitigation of each consumer that has one: its claim is not what its slices say meanwhile."""
        return {item.consumer_uuid: item for item in self.mitigations}

    @cached_property
    def slices_of(self) -> Mapping[str, tuple[AgedSlice, ...]]:
        """Slices by the allocation that they point at."""
        found: dict[str, list[AgedSlice]] = {}
        for aged in self.rack.slices:
            if aged.item.allocation_uuid is not None:
                found.setdefault(aged.item.allocation_uuid, []).append(aged)
        return {uuid: tuple(items) for uuid, items in found.items()}

    @cached_property
    def owner_of(self) -> Mapping[str, Allocation]:
        """The allocation whose slices are being handed over, by the one that is to get them."""
        items = (aged.item for aged in self.rack.allocations.values())
        return {item.heir: item for item in items if item.heir is not None}

    @cached_property
    def slice_at(self) -> Mapping[tuple[str, int], AgedSlice]:
        """Slices by pool and index."""
        return {(aged.item.pool_uuid, aged.item.index): aged for aged in self.rack.slices}

    @cached_property
    def attached(self) -> Mapping[str, Mapping[str, Attached]]:
        """What each host's newest report lists, by allocation."""
        return {
            name: {item["allocation_uuid"]: Attached.from_wire(item) for item in report.attached}
            for name, report in self.rack.hosts.items()
        }

    @cached_property
    def claimed(self) -> Mapping[str, bool]:
        """Whether each allocation is backed by a claim, its consumer's or that of the migration which moves it."""
        if self.claims is None:
            return dict.fromkeys(self.rack.allocations, True)
        return {uuid: uuid in self.holders for uuid in self.rack.allocations}

    @cached_property
    def holders(self) -> Mapping[str, str]:
        """Which consumer claims each allocation that is claimed; none while Placement is not known."""
        return {} if self.claims is None else holders(self.rack.allocations, self.claims, self.mitigated)

    @cached_property
    def loan_claimed(self) -> Mapping[str, bool]:
        """Whether each loan is backed by a claim; one for a swap disk is, if the disk is, and others need none."""
        claims = self.claims
        loans = self.rack.lent.loans
        borrowers = {aged.item.consumer_uuid for aged in loans.values()}

        def is_claimed(uuid: str, item: RemoteAllocation) -> bool:
            if not item.guaranteed:
                return self.disk_claimed.get((item.host, item.consumer_uuid), True)
            if claims is None or claims.remote is None:
                return True
            if claims.claimed_remote_mib(item.host, item.consumer_uuid) > 0:
                return True
            sizes = [aged.item.size_mib for aged in self.buffers_of.get(uuid, ())]
            least_mib = sum(sizes) - max(sizes, default=0) + 1
            moves = item.consumer_uuid in (claims.remote or {})
            return moves and claims.moves_remote(item.host, least_mib, borrowers)

        return {uuid: is_claimed(uuid, aged.item) for uuid, aged in loans.items()}

    @cached_property
    def disks(self) -> Mapping[Disk, int]:
        """The swap disks that hosts report, in MiB."""
        return disks_of(self.rack)

    @cached_property
    def disk_claimed(self) -> Mapping[Disk, bool]:
        """Whether each swap disk is backed by a claim of its mirror."""
        claims = self.claims
        if claims is None:
            return dict.fromkeys(self.disks, True)
        known: dict[str, set[str]] = {}
        loans = ((aged.item.host, aged.item.consumer_uuid) for aged in self.rack.lent.loans.values())
        for host, consumer_uuid in [*self.disks, *loans]:
            known.setdefault(host, set()).add(consumer_uuid)
        return {
            (host, uuid): claims.holds_disk(host, uuid, mib, known[host]) for (host, uuid), mib in self.disks.items()
        }

    @cached_property
    def buffer_at(self) -> Mapping[tuple[str, str, int], AgedBuffer]:
        """Buffers by lender, incarnation and index."""
        return {(aged.item.lender, aged.item.incarnation, aged.item.index): aged for aged in self.rack.lent.buffers}

    @cached_property
    def buffers_of(self) -> Mapping[str, tuple[AgedBuffer, ...]]:
        """Buffers by the loan that they point at."""
        return _by_loan(self.rack.lent.buffers, lambda item: item.allocation_uuid)

    @cached_property
    def inheritance_of(self) -> Mapping[str, tuple[AgedBuffer, ...]]:
        """Buffers by the loan that they are being handed over to."""
        return _by_loan(self.rack.lent.buffers, lambda item: item.heir)

    def host_up(self, name: str) -> bool:
        """Whether a host's agent was heard of within the limit."""
        report = self.rack.hosts.get(name)
        return report is not None and report.age_seconds <= self.limits.agent_down_seconds

    def report_sequence(self, name: str) -> int | None:
        """Return the number of a host's newest report, None while there is none."""
        report = self.rack.hosts.get(name)
        return None if report is None else report.sequence

    def stuck(self, host: str, allocation_uuid: str) -> str | None:
        """Return why a live host cannot take an allocation offline, by its own word; None when it says no such thing.

        Its agent goes on trying by itself: a command could only wait for it.
        """
        return self.rack.hosts[host].stuck.get(allocation_uuid) if self.host_up(host) else None

    def fenced(self, name: str | None) -> bool:
        """Whether a host is fenced."""
        report = self.rack.hosts.get(name or "")
        return report is not None and report.fenced is not None

    def report_after(self, name: str, age_seconds: float) -> HostReport | None:
        """Return a live host's report if it is surely younger than a change of that age, which it may contradict."""
        report = self.rack.hosts.get(name)
        if report is None or not self.host_up(name):
            return None
        return report if age_seconds - report.age_seconds >= self.limits.settle_seconds else None


def disks_of(rack: RackView) -> dict[Disk, int]:
    """Return the swap disks that hosts report, in MiB."""
    return {
        (name, consumer_uuid): mib
        for name, report in rack.hosts.items()
        for consumer_uuid, mib in ((report.borrowed or {}).get("swap_disks") or {}).items()
    }


def _by_loan(
    buffers: Iterable[AgedBuffer], loan: Callable[[Buffer], str | None]
) -> Mapping[str, tuple[AgedBuffer, ...]]:
    found: dict[str, list[AgedBuffer]] = {}
    for aged in buffers:
        if (uuid := loan(aged.item)) is not None:
            found.setdefault(uuid, []).append(aged)
    return {uuid: tuple(items) for uuid, items in found.items()}
