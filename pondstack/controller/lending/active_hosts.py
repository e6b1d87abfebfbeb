"""Asks hosts that are awake and have room to lend (AS_get_free_mem of Zombieland, section 4.4), when a borrow lacks it.

A host is asked once for what is missing; while that is on its way nobody else is asked for the same.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import uuid4

import oslo_messaging
from oslo_log import log

from pondstack.controller.lending.admission import Claims
from pondstack.domain import buffer_choice
from pondstack.domain.admission import Lend, LendStage
from pondstack.domain.errors import Conflict, NotLeader, PondError
from pondstack.domain.lending import Buffer, LenderKind
from pondstack.domain.rack import HostReport, RackView
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_lending_api import AgentLendingAPI

LOG = log.getLogger(__name__)

PATIENCE_SECONDS = 60.0
"""So long what a host was asked for counts as on its way; nova-compute reserves it in Placement in its next round."""

SETTLED_SECONDS = 2.0
"""A report that is so much newer than an order has what became of it: its host had the order when it reported."""


class _Orders:
    """What hosts were asked to lend in all, in MiB, by host, as long as it counts. Thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._orders: dict[str, tuple[int, float]] = {}

    def note(self, host: str, mib: int) -> None:
        """Note that a host is asked now."""
        with self._lock:
            self._orders[host] = (mib, self._clock())

    def remove(self, host: str) -> None:
        """Forget what a host was asked."""
        with self._lock:
            self._orders.pop(host, None)

    def forget(self, done: Callable[[str, float], bool]) -> None:
        """Forget those of which this is true, by host and the time at which it was asked."""
        with self._lock:
            self._orders = {host: each for host, each in self._orders.items() if not done(host, each[1])}

    def in_mib(self) -> dict[str, int]:
        """Return those that still count."""
        now = self._clock()
        self.forget(lambda _host, at: now - at >= PATIENCE_SECONDS)
        with self._lock:
            return {host: mib for host, (mib, _) in self._orders.items()}


class ActiveHosts:
    """The hosts that are awake. `claims`: what Nova has claimed of them, None: nobody else sells their memory.

    `admit` wakes who claims the memory and has it lent, None: the hosts are told at once. Thread-safe; but two borrows
    at a time may ask for both of what is missing.
    """

    def __init__(
        self,
        ledger: Ledger,
        agents: AgentLendingAPI,
        view: Callable[[], RackView],
        down_seconds: float,
        *,
        claims: Claims | None = None,
        admit: Callable[[], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger, self._agents, self._view, self._down = ledger, agents, view, down_seconds
        self._claims, self._admit, self._clock = claims, admit, clock
        self._asked = _Orders(clock)

    def room(self, borrower: str, buffer_mib: int) -> tuple[int, dict[str, int]]:
        """Return how many buffers are on their way, and how many more each host could lend to a borrower, by name."""
        items, lends = self._ledger.buffers.find(), {lend.host: lend for lend in self._ledger.lends.find()}
        reports = self._view().hosts
        self._forget_those_done(reports, lends)
        coming = buffer_choice.to_be_lent(items, self._lends(reports), buffer_mib)
        self._end_those_that_wait(lends)
        others = {borrower, *lends, *coming, *(item.lender for item in items if item.kind is LenderKind.ZOMBIE)}
        rooms = {
            name: self._room(report, buffer_mib)
            for name, report in sorted(reports.items())
            if name not in others and self._may_lend(report, buffer_mib)
        }
        return sum(coming.values()), rooms

    def ask(self, plan: Mapping[str, int], buffer_mib: int) -> int:
        """Have hosts lend so many buffers more, by name; returns how many are on their way then.

        Raises NotLeader, Unavailable.
        """
        lent = _lent(self._ledger.buffers.find())
        return sum(count for host, count in plan.items() if self._lend(host, lent[host] + count * buffer_mib))

    def ask_for(self, borrower: str, buffers: int, buffer_mib: int) -> int:
        """Have hosts lend so many buffers, or what they can, with those asked for before; as ask()."""
        coming, rooms = self.room(borrower, buffer_mib)
        return coming + self.ask(buffer_choice.to_ask(rooms, buffers - coming), buffer_mib)

    def lends(self) -> dict[str, int]:
        """Return what hosts were asked to lend in all, in MiB, as far as it still counts.

        By their own word too: a former leader, or an operator, has asked them.
        """
        return self._lends(self._view().hosts)

    def _lends(self, reports: Mapping[str, HostReport]) -> dict[str, int]:
        told = {host: _at_lending_mib(report) for host, report in reports.items()}
        return {host: mib for host, mib in told.items() if mib} | self._asked.in_mib()

    def _end_those_that_wait(self, lends: Mapping[str, Lend]) -> None:
        """End what was asked of a host whose memory instances have got meanwhile: nobody waits for it."""
        asked = self._asked.in_mib()
        for host, lend in lends.items():
            waits = host in asked and lend.stage is LendStage.WAITING and lend.reason
            # One that another borrow has ended, or that has gone on, is not this one's to forget.
            if waits and self._ledger.lends.end(lend, 0, lend.reason):
                self._asked.remove(host)

    def _forget_those_done(self, reports: Mapping[str, HostReport], lends: Mapping[str, Lend]) -> None:
        """Forget what was asked of hosts that have reported since, and are at it no more: they lend what they could."""

        def done(host: str, at: float) -> bool:
            report = reports.get(host)
            if report is None or host in lends or _lends_or_reclaims(report):
                return False
            return self._clock() - report.age_seconds >= at + SETTLED_SECONDS

        self._asked.forget(done)

    def _may_lend(self, report: HostReport, buffer_mib: int) -> bool:
        told = report.lending
        asleep = report.sleep is not None
        if told is None or asleep or not report.enabled or report.fenced is not None or report.age_seconds > self._down:
            return False
        busy = _lends_or_reclaims(report)
        borrows = any(held.get("allocations") for held in (report.borrowed or {}).get("lenders", ()))
        return bool(told.get("answers", True)) and not busy and not borrows and told["buffer_mib"] == buffer_mib

    def _room(self, report: HostReport, buffer_mib: int) -> int:
        """Return how many buffers more a host can lend, by its own word and by Placement's."""
        room: int = (report.lending or {}).get("lendable_mib") or 0
        if room and self._claims is not None:
            memory = self._claims.memory(report.name)
            left = 0 if memory is None else int((memory.capacity_mib - memory.used_mib) / memory.ratio)
            room = min(room, left)
        return max(room, 0) // buffer_mib

    def _lend(self, host: str, mib: int) -> bool:
        operation_id = str(uuid4())
        # Before it answers: another borrow that looks meanwhile must not ask it for the same.
        self._asked.note(host, mib)
        LOG.info("Host %s is asked to lend %d MiB in all: a borrow lacks memory", host, mib)
        try:
            if self._admit is None:
                about: dict[str, Any] = {"operation_id": operation_id, "mib": mib, "kind": str(LenderKind.ACTIVE)}
                self._agents.lend(host, epoch=self._ledger.epoch, **about)
            else:
                self._ledger.lends.begin(operation_id, host, mib, LenderKind.ACTIVE)
                self._admit()
        except NotLeader:
            raise
        except Conflict as error:
            LOG.info("Host %s is at it already: %s", host, error)
        except (PondError, oslo_messaging.MessagingTimeout) as error:
            LOG.warning("Host %s does not lend: %s", host, error)
            self._asked.remove(host)
            return False
        return True


def _lends_or_reclaims(report: HostReport) -> bool:
    """Return whether a host was at an order to lend or to take back when it reported."""
    return any(each["state"] != "done" for each in (report.lending or {}).get("operations", ()))


def _at_lending_mib(report: HostReport) -> int:
    """Return what a host is to lend in all by an order that it is at, in MiB; 0: by none."""
    orders = (report.lending or {}).get("operations", ()) if report.fenced is None else ()
    return max((int(each["mib"]) for each in orders if each["verb"] == "lend" and each["state"] != "done"), default=0)


def _lent(items: Iterable[Buffer]) -> Counter[str]:
    """Return what each host lends, in MiB."""
    lent: Counter[str] = Counter()
    for item in items:
        lent[item.lender] += item.size_mib
    return lent
