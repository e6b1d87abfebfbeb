"""Stands in for pondstack-data-plane: the same interface and the same contract, with processes that are only played."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pondstack.domain.errors import Conflict
from pondstack_agent.data_plane.client import Origin
from pondstack_agent.data_plane.errors import DataPlaneGone, DataPlaneRefused, DataPlaneSilent
from pondstack_agent.data_plane.guest_memory import MEMFD, GuestMemory
from pondstack_agent.data_plane.pager_settings import DEFAULT_PAGER, PagerSettings
from pondstack_agent.data_plane.views import GuestState, GuestView, HandoverView, LeaseState, LeaseView

from .standin_blocks import StandinBlocks

POLICIES = ("fifo", "clock", "mixed", "s3-fifo")


@dataclass
class StandinDataPlane:
    """Records (`served`) outlive `kill`, leases do not; a guest whose process has ended goes at the next call."""

    served: dict[str, GuestView] = field(default_factory=dict)
    processes: dict[str, GuestMemory] = field(default_factory=dict)
    """Guests that run, by UUID."""
    mirrors: dict[str, str] = field(default_factory=dict)
    pager: dict[str, PagerSettings] = field(default_factory=dict)
    dead_keys: set[tuple[str, int]] = field(default_factory=set)
    """Lender and number of keys that are refused."""
    gone: bool = False
    silent: bool = False
    refuses: str = ""
    """Why it attaches nothing, '' when it does."""
    comes_home: bool = True
    leaves: bool = True
    """Whether pages come home, and leave lenders, by the next look."""
    keys: dict[str, str] = field(default_factory=dict)
    """Of guests that are offered."""
    keeps: bool = True
    """Whether the pages of a guest that is offered are kept, should its process end."""
    publishes: bool = True
    """Whether other hosts can be told where mirrors are."""
    origins: dict[str, Origin | None] = field(default_factory=dict)
    goes_back: bool = True
    """Whether a guest that is withdrawn is offered no more by the next look."""
    told: list[str] = field(default_factory=list)
    told_keys: list[dict[str, Any]] = field(default_factory=list)
    """Of the newest lease."""
    linked: set[str] = field(default_factory=set)
    asleep: set[str] = field(default_factory=set)
    """Lenders that answer nothing."""
    blocks: StandinBlocks = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = StandinBlocks(self._look)

    # The host around it

    def boot(self, guest: str, mib: int, pid: int = 4711, started: int = 1) -> None:
        """Have a guest's process run."""
        self.processes[guest] = GuestMemory(pid, started, MEMFD, mib, is_file=True)

    def end(self, guest: str) -> None:
        """End a guest's process."""
        del self.processes[guest]

    def find(self, guest: str, pid: int | None = None) -> GuestMemory:
        """As data_plane.guest_memory.find_memory."""
        if guest not in self.processes or pid not in (None, self.processes[guest].pid):
            raise Conflict(f"guest {guest} has no process on this host; start it first")
        return self.processes[guest]

    def started(self, pid: int) -> int | None:
        """As data_plane.guest_memory.start_of."""
        return next((found.started for found in self.processes.values() if found.pid == pid), None)

    def kill(self) -> None:
        """As kill -9 and a start: its links are gone."""
        self.served = {name: replace(found, leases=()) for name, found in self.served.items()}
        self.linked.clear()
        self.blocks.kill()

    # As the data plane

    def attach(
        self,
        guest: str,
        pid: int,
        memory: str,
        mirror: str,
        limit_mib: int,
        pager: PagerSettings = DEFAULT_PAGER,
        incoming: Origin | None = None,
    ) -> GuestView:
        self._look("attach")
        self.pager[guest] = pager
        assert memory == MEMFD
        known = self.served.get(guest)
        if known is not None and (known.pid != pid or known.state is not GuestState.SERVING):
            raise DataPlaneRefused(f"guest {guest} is attached already, as process {known.pid}; see `view`")
        if known is None:
            started = self.started(pid)
            if self.refuses or started is None:
                raise DataPlaneRefused(self.refuses or f"process {pid} has ended")
            if pager.policy not in POLICIES:
                raise DataPlaneRefused(f"policy: {pager.policy} is none of {', '.join(POLICIES)}")
            self.mirrors[guest] = mirror
            self.origins[guest] = incoming
            pages = self.processes[guest].size_mib * 256
            limit = min(limit_mib * 256, pages)
            self.served[guest] = GuestView(
                guest, pid, started, limit_mib, GuestState.SERVING, resident_pages=limit, evicted_pages=pages - limit
            )
            if incoming is not None:
                self._change(guest, handover=HandoverView("waiting", connected=False))
        return self.served[guest]

    def hand_over(self, guest: str, host: str, key: str, deadline_ms: int) -> GuestView:
        self._look("hand_over")
        assert host
        assert deadline_ms
        if self._known(guest).handover is not None and self.keys.get(guest) != key:
            raise DataPlaneRefused(f"guest {guest} is being handed over already")
        self.keys[guest] = key
        return self._change(
            guest,
            handover=HandoverView(
                "offered", connected=False, port=7601, kept=self.keeps, references=True, publishes=self.publishes
            ),
        )

    def withdraw(self, guest: str) -> GuestView:
        self._look("withdraw")
        going = self._known(guest).handover
        if going is not None and going.is_switched:
            raise DataPlaneRefused(f"guest {guest} is its destination's since the switch")
        return self._change(guest, handover=None) if self.goes_back else self._known(guest)

    def forget(self, guest: str) -> GuestView:
        self._look("forget")
        found = self._known(guest)
        if found.handover is None or not found.handover.is_switched:
            raise DataPlaneRefused(f"guest {guest} was not switched to another data plane")
        del self.served[guest], self.mirrors[guest]
        return found

    def limit(self, guest: str, limit_mib: int) -> GuestView:
        self._look("limit")
        return self._change(guest, limit_mib=limit_mib)

    def lease(self, guest: str, lender: str, ticket: Mapping[str, Any], keys: Sequence[Mapping[str, Any]]) -> GuestView:
        self._look("lease")
        del ticket
        self.told_keys = [dict(key) for key in keys]
        for key in keys:
            found = self._known(guest)
            if any((lease.lender, lease.number) == (lender, key["number"]) for lease in found.leases):
                continue
            if lender in self.asleep and not (lender in self.linked and "location" in key):
                raise DataPlaneRefused(f"lender {lender} does not answer")
            if (lender, key["number"]) in self.dead_keys:
                raise DataPlaneRefused(f"lender {lender} refuses: this lender has ended the key")
            lease = LeaseView(lender, key["number"], LeaseState.ACTIVE)
            self._change(guest, leases=(*found.leases, lease))
        return self._known(guest)

    def leave(self, guest: str, lender: str, numbers: Sequence[int]) -> GuestView:
        self._look("leave")
        found = self._known(guest)
        leases = [
            replace(lease, state=LeaseState.LEAVING) if lease.lender == lender and lease.number in numbers else lease
            for lease in found.leases
        ]
        return self._change(guest, leases=tuple(leases))

    def connect(self, lender: str, ticket: Mapping[str, Any]) -> None:
        self._look("connect")
        if lender in self.asleep and lender not in self.linked:
            raise DataPlaneRefused(f"lender {lender} does not answer")
        assert ticket
        self.linked.add(lender)

    def links(self) -> list[str]:
        self._look("view")
        return sorted(self.linked)

    def detach(self, guest: str) -> GuestView:
        self._look("detach")
        return self._change(guest, state=GuestState.DETACHING)

    def view(self, guest: str) -> GuestView | None:
        self._look("view")
        return self.served.get(guest)

    def guests(self) -> list[GuestView]:
        self._look("view")
        return list(self.served.values())

    def lose(self, guest: str, lender: str) -> None:
        """Have all leases of a lender be lost."""
        leases = [
            replace(lease, state=LeaseState.LOST) if lease.lender == lender else lease
            for lease in self._known(guest).leases
        ]
        self._change(guest, leases=tuple(leases))

    def _look(self, verb: str) -> None:
        if self.gone:
            raise DataPlaneGone("no data plane serves here")
        if self.silent:
            raise DataPlaneSilent("the data plane does not answer")
        self.told.append(verb)
        for guest, found in list(self.served.items()):
            home = found.state is GuestState.DETACHING and self.comes_home
            if found.handover is not None and self.started(found.pid) != found.started:
                if found.handover.state == "offered":
                    self.served[guest] = replace(found, handover=replace(found.handover, state="switched"))
            elif home or self.started(found.pid) != found.started:
                del self.served[guest], self.mirrors[guest]
            elif self.leaves:
                leases = tuple(lease for lease in found.leases if lease.state is not LeaseState.LEAVING)
                self.served[guest] = replace(found, leases=leases)

    def _known(self, guest: str) -> GuestView:
        if guest not in self.served:
            raise DataPlaneRefused(f"guest {guest} is not attached")
        return self.served[guest]

    def _change(self, guest: str, **changes: Any) -> GuestView:
        self.served[guest] = replace(self._known(guest), **changes)
        return self.served[guest]
