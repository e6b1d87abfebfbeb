"""Deliberately broken variants of the code under test. Each must be caught, or the simulation proves nothing.

A variant takes away one of the rules that the design rests on, by patching the code while a history runs.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

from pondstack.controller.node import broker_probe
from pondstack.controller.pool import inventory, sanitizer
from pondstack.controller.reconcile import actions, applier, intake, reconciler
from pondstack.controller.reconcile.rules import reports, rules
from pondstack.domain.causes import Cause
from pondstack.domain.errors import AgentUnavailable
from pondstack.ha import candidate
from pondstack.ledger import slices, transactions
from pondstack_agent import epoch
from pondstack_agent.pool import attach as attaching
from tests.fixtures import memory_device, memory_host
from tests.fixtures.memory import journal
from tests.fixtures.memory.lease import LeadershipRow, MemoryLease
from tests.fixtures.memory.store import Transaction

from . import fault_links, placement
from .mutant import Mutant, lister
from .plan import FORGED_RELEASE

MUTANTS: dict[str, Mutant] = {}
mutant = lister(MUTANTS)


def _nothing(*_arguments: Any, **_named: Any) -> None:
    return None


# Election and fence


@mutant()
def ledger_without_fence() -> Iterator[None]:
    """A transaction of the ledger does not look at the epoch: a paused leader writes when it wakes up."""
    plain = transactions.Transactions.__init__

    def init(self: Any, *arguments: Any, **named: Any) -> None:
        plain(self, *arguments, **named)
        self.store = replace(self.store, check_epoch=_nothing)

    with mock.patch.object(transactions.Transactions, "__init__", init):
        yield


def _stand_without_new_epoch(only_after_hand_over: bool) -> Callable[[Any], None]:
    plain = candidate.Candidate._stand

    def stand(self: Any) -> None:
        lease = self._store.read()
        if lease.epoch == 0 or not self._may_stand(lease) or (only_after_hand_over and not lease.successor):
            plain(self)
            return

        def work(tx: Transaction) -> None:
            now = tx.now()
            ends = now + self._terms.lease_seconds
            tx.put(tx.tables.leadership, 1, LeadershipRow(lease.epoch, self._holder, now, ends))

        self._store._database.write(work)
        self._epoch = lease.epoch
        self.renewed(lease.epoch, self._clock())
        self._elected(lease.epoch)

    return stand


@mutant()
def lease_without_new_epoch() -> Iterator[None]:
    """Who takes the lease goes on with its predecessor's epoch."""
    with mock.patch.object(candidate.Candidate, "_stand", _stand_without_new_epoch(False)):
        yield


@mutant()
def hand_over_while_writing() -> Iterator[None]:
    """A hand-over passes the epoch on, and does not end it for the one who hands over."""

    def hand_over(self: Any, held: int, successor: str) -> None:
        def work(tx: Transaction) -> None:
            row = tx.tables.leadership[1]
            if row.epoch == held:
                tx.put(tx.tables.leadership, 1, replace(row, expires_at=tx.now(), successor=successor))

        self._database.write(work)

    with (
        mock.patch.object(candidate.Candidate, "_stand", _stand_without_new_epoch(True)),
        mock.patch.object(MemoryLease, "hand_over", hand_over),
    ):
        yield


@mutant()
def opens_before_reports() -> Iterator[None]:
    """A new leader answers before it has told the agents of its epoch and heard what they hold."""
    with mock.patch.object(reconciler.Reconciler, "reconcile_at_promotion", return_value=[]):
        yield


@mutant("cut_broker")
def cut_off_leader_stays() -> Iterator[None]:
    """A leader that is cut off from the broker alone renews for ever, and answers nobody."""
    with mock.patch.object(broker_probe.StepAside, "run", _nothing):
        yield


@mutant("cut_broker")
def deaf_leader_judges() -> Iterator[None]:
    """A leader to whom the broker brings nothing takes every agent for silent."""
    with mock.patch.object(broker_probe.BrokerProbe, "receiving", True):
        yield


@mutant("pause@rpc")
def agent_obeys_old_epochs() -> Iterator[None]:
    """An agent does what a deposed leader says."""
    with mock.patch.object(epoch.EpochGuard, "check", _nothing):
        yield


@mutant()
def device_obeys_old_epochs() -> Iterator[None]:
    """A device lets a deposed leader grant, revoke and zero."""
    with mock.patch.object(memory_device.MemoryDevice, "check_epoch", _nothing):
        yield


@mutant("pause@zeroing.before")
def zeroes_without_looking() -> Iterator[None]:
    """A device zeroes whatever it is told to, in use or not: an old leader's sanitiser wipes a guest."""

    def sanitize(self: Any, index: int, *, epoch: int) -> None:
        del epoch
        self.info()
        self.contents.pop(index, None)

    with mock.patch.object(memory_device.MemoryDevice, "sanitize", sanitize):
        yield


# The ledger


@mutant()
def acknowledged_before_commit() -> Iterator[None]:
    """The controller answers, and commits a moment later."""
    plain = fault_links.DatabaseLink.write

    def write(self: Any, work: Callable[[Any], Any], *named: Any) -> Any:
        if self._epoch is None:
            return plain(self, work, *named)
        self._moments.pass_by("db.before")
        self._reach()
        tx = Transaction(self.store.tables, self.store.clock)
        try:
            answer = work(tx)
        finally:
            tx.rollback()

        def later() -> None:
            with contextlib.suppress(Exception):
                self.store.write(work)

        self._scheduler.spawn(self._process, later, after=0.02)
        self._moments.pass_by("db.after")
        return answer

    with mock.patch.object(fault_links.DatabaseLink, "write", write):
        yield


@mutant()
def assign_without_idempotence() -> Iterator[None]:
    """An assignment that is repeated takes slices again."""
    plain = journal.recall

    def recall(tx: Any, operation_id: str, kind: str) -> Any:
        return None if kind == "assign" else plain(tx, operation_id, kind)

    def fresh(_namespace: Any, _name: str) -> Any:
        return transactions.uuid4()

    with mock.patch.object(journal, "recall", recall), mock.patch.object(slices, "uuid5", fresh):
        yield


# Reconciliation


@mutant("cut")
def release_on_time_out() -> Iterator[None]:
    """An agent that does not answer in time is taken to have let go."""
    plain, execute = applier.Applier._offline, applier.Applier._execute

    def offline(self: Any, action: actions.Offline) -> bool:
        try:
            return plain(self, action)
        except AgentUnavailable:
            self._ledger.slices.release(str(applier.uuid4()), action.allocation_uuid, action.host)
            return True

    def begin(self: Any, action: Any) -> bool:
        if isinstance(action, actions.BeginRelease):
            item = self._reader.allocation(action.allocation_uuid)
            self._ledger.slices.release(str(applier.uuid4()), item.uuid, item.host)
            return True
        return execute(self, action)

    with (
        mock.patch.object(applier.Applier, "_offline", offline),
        mock.patch.object(applier.Applier, "_execute", begin),
    ):
        yield


@mutant(FORGED_RELEASE)
def release_by_call() -> Iterator[None]:
    """Whoever calls is taken to be the host whose memory he releases."""

    def release(self: Any, operation_id: str, allocation_uuid: str, host: str) -> None:
        self._release(operation_id, allocation_uuid, host)

    with mock.patch.object(intake.ReportIntake, "release", release):
        yield


@mutant(FORGED_RELEASE)
def release_by_heartbeat() -> Iterator[None]:
    """A heartbeat that nobody asked for is taken for its host's word."""
    plain = intake.ReportIntake.receive

    def receive(self: Any, report: Any) -> Any:
        self.receive_answer(report.host, report)
        return plain(self, report)

    with mock.patch.object(intake.ReportIntake, "receive", receive):
        yield


@mutant("slow_host", "lose", "crash_agent")
def release_before_offline() -> Iterator[None]:
    """An agent that takes memory offline in the background is taken to have done it."""
    plain = applier.Applier._offline

    def offline(self: Any, action: actions.Offline) -> bool:
        if not plain(self, action):
            self._ledger.slices.release(str(applier.uuid4()), action.allocation_uuid, action.host)
        return True

    with mock.patch.object(applier.Applier, "_offline", offline):
        yield


@mutant("cut")
def silent_host_is_freed() -> Iterator[None]:
    """What a silent host holds is taken back instead of set aside."""
    plain = applier.Applier._execute

    def execute(self: Any, action: Any) -> bool:
        if isinstance(action, actions.QuarantineAllocation) and action.cause is Cause.AGENT_DOWN:
            item = self._reader.allocation(action.allocation_uuid)
            self._ledger.slices.release(str(applier.uuid4()), item.uuid, item.host)
            return True
        return plain(self, action)

    with mock.patch.object(applier.Applier, "_execute", execute):
        yield


@mutant("cut", "lose", "pause_agent", "crash_agent")
def quarantine_ignored() -> Iterator[None]:
    """What was set aside is freed without any evidence."""
    with mock.patch.object(reports, "_gone", return_value=True):
        yield


@mutant("delay", "lose")
def old_report_proves() -> Iterator[None]:
    """A report that was long on its way counts as the fresh one that was asked for and did not come."""
    with mock.patch.object(reconciler, "_if_answered", lambda finding, _heard: finding):
        yield


@mutant()
def claims_ignored() -> Iterator[None]:
    """Every allocation counts as unclaimed for long enough."""
    with mock.patch.object(rules, "_overdue", return_value=True):
        yield


@mutant()
def sanitise_skipped() -> Iterator[None]:
    """A slice is handed on with what was in it."""
    with mock.patch.object(sanitizer.Sanitizer, "_zero", _nothing):
        yield


@mutant()
def nothing_is_reserved() -> Iterator[None]:
    """Placement offers what is not free."""
    plain = inventory.wanted_inventory

    def wanted(view: Any, pool_uuid: str) -> Any:
        return replace(plain(view, pool_uuid), reserved=0)

    with mock.patch.object(inventory, "wanted_inventory", wanted):
        yield


@mutant("pause")
def old_leader_writes_inventory() -> Iterator[None]:
    """Placement takes what a deposed leader knew of the pools."""
    plain = placement.PlacementOf.set_inventory

    def set_inventory(self: Any, uuid: str, resource_class: str, wanted: Any, **_fences: Any) -> bool:
        return plain(self, uuid, resource_class, wanted)

    with mock.patch.object(placement.PlacementOf, "set_inventory", set_inventory):
        yield


# The agent


@mutant()
def offline_while_in_use() -> Iterator[None]:
    """A host lets go of memory that a guest maps."""
    with mock.patch.object(memory_host.MemoryHost, "is_mapped", return_value=False):
        yield


@mutant()
def attach_answered_too_soon() -> Iterator[None]:
    """An agent answers an attach that the controller has not heard of."""
    with mock.patch.object(attaching.AttachFlow, "_acknowledge", _nothing):
        yield


@mutant()
def attach_not_recorded() -> Iterator[None]:
    """An agent answers an attach that is not on its disk."""
    plain = memory_host.MemoryHostPool.attach

    def attach(self: Any, grant: Any) -> Any:
        answer = plain(self, grant)
        self._records.remove(grant.allocation_uuid)
        return answer

    with mock.patch.object(memory_host.MemoryHostPool, "attach", attach):
        yield
