"""What the ledger writes of hosts' sleeps: that one begins, each step of it, that its host is wanted back.

Each change of state is journaled; a step that another one overtook (a wake, a newer leader) changes nothing.
"""

from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from pondstack.domain.errors import Conflict, NotFound
from pondstack.domain.host_sleep import BACK, ENDED, HostSleep, SleepState, Work, check_transition
from pondstack.domain.host_sleep_step import Step
from pondstack.domain.plan import UNDER_WAY, reason_of
from pondstack.ledger.hosts import usable_host
from pondstack.ledger.mitigations import MOST_OF_A_REASON, Overtaken
from pondstack.ledger.moves import MOVES
from pondstack.ledger.store import Transaction
from pondstack.ledger.transactions import Transactions

BEGIN, WAKE, STEP = "suspend_host", "wake_host", "host_sleep_step"
_WANTED_BACK = {SleepState.DISABLING: SleepState.ENABLING, SleepState.LENDING: SleepState.RECLAIMING}
"""Where a sleep turns round before its host was told to sleep; from elsewhere it is woken."""


class HostSleeps:
    """All sleeps. Thread-safe."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._store = transactions.store

    def unended(self) -> list[HostSleep]:
        """Return those that are open, the oldest first."""
        return self._transactions.read(self._store.host_sleeps.unended)

    def get(self, uuid: str) -> HostSleep:
        """Return one; raises NotFound."""
        found = self._transactions.read(lambda tx: self._store.host_sleeps.get(tx, uuid))
        if found is None:
            raise NotFound(f"there is no sleep {uuid} of a host")
        return found

    def of_host(self, host: str) -> HostSleep | None:
        """Return the sleep of a host that is open."""
        found = self.newest(host)
        return found if found is not None and found.is_open else None

    def newest(self, host: str) -> HostSleep | None:
        """Return a host's newest sleep, one that has ended, too."""
        return self._transactions.read(lambda tx: self._store.host_sleeps.latest(tx, host))

    def begun(self, operation_id: str) -> str | None:
        """Return the UUID of the sleep that began by an operation, None: there is none."""
        known = self._transactions.read(lambda tx: self._store.journal.recall(tx, operation_id, BEGIN))
        return None if known is None else str(known[1]["uuid"])

    def begin(self, operation_id: str, host: str, driver: str, work: Work) -> str:
        """Begin one; returns its UUID, a repetition the same one. Raises HostUnusable, Conflict, OperationMismatch."""

        def write(tx: Transaction) -> dict[str, Any]:
            usable_host(self._store, tx, host)
            last = self._store.host_sleeps.latest(tx, host)
            if last is not None and last.is_open:
                raise Conflict(f"host {host} is {last.state} already; wake it, or wait for its end")
            self._check_plans(tx, host, work)
            lend = self._store.lends.get(tx, host)
            if lend is not None:
                raise Conflict(f"lend {lend.operation_id} is under way on host {host}; wait for its end")
            new = HostSleep(str(uuid5(NAMESPACE_OID, f"pondstack sleep {operation_id}")), host, driver, work=work)
            self._store.host_sleeps.add(tx, new)
            return {"uuid": new.uuid, "host": host, MOVES: []}

        arguments = {"host": host, "driver": driver, "mib": work.mib}
        uuid: str = self._transactions.once(operation_id, BEGIN, arguments, write)["uuid"]
        return uuid

    def _check_plans(self, tx: Transaction, host: str, work: Work) -> None:
        """Raise Conflict where another plan than that which wants the sleep is under way: it would enable the host."""
        for plan in self._store.plans.unattended(tx):
            if plan.state in UNDER_WAY and host in plan.hosts and work.disabled_by != reason_of(plan):
                raise Conflict(f"plan {plan.uuid}, which is {plan.state}, works on host {host}; wait, or cancel it")

    def wake(self, operation_id: str, host: str) -> str:
        """Have a host's sleep turn round, or go on if it has; returns its UUID. Raises Conflict: it is awake."""

        def write(tx: Transaction) -> dict[str, Any]:
            item = self._store.host_sleeps.latest(tx, host)
            if item is None or not item.is_open:
                raise Conflict(f"host {host} is awake: nothing is to be done")
            if item.state not in BACK:
                self._turn_round(tx, item)
            elif item.work.deeper and not item.is_deeper:
                after = replace(item, work=replace(item.work, deeper=""))
                self._store.host_sleeps.change(tx, after, moved=False, ended=False)
            return {"uuid": item.uuid, "host": host, MOVES: []}

        uuid: str = self._transactions.once(operation_id, WAKE, {"host": host}, write)["uuid"]
        return uuid

    def _turn_round(self, tx: Transaction, item: HostSleep) -> None:
        state = _WANTED_BACK.get(item.state, SleepState.WAKING)
        ending = SleepState.ABORTED if item.state in (*_WANTED_BACK, SleepState.SUSPENDING) else ""
        check_transition(item.state, state)
        after = replace(item, state=state, reason="", work=replace(item.work, ending=str(ending)))
        self._store.host_sleeps.change(tx, after, moved=True, ended=False)

    def advance(self, item: HostSleep, step: Step) -> HostSleep:
        """Take a step that was decided for `item`; returns it as it is then.

        With another state it is journaled. Raises Overtaken, IllegalTransition.
        """
        check_transition(item.state, step.state)
        after = _after(item, step)

        def write(tx: Transaction) -> HostSleep:
            present = self._store.host_sleeps.get(tx, item.uuid)
            if present is None or (present.state, present.work) != (item.state, item.work):
                raise Overtaken(f"the sleep of host {item.host} is {present and present.state} by now")
            moved = after.state is not item.state
            self._store.host_sleeps.change(tx, after, moved=moved, ended=after.state in ENDED)
            if moved:
                effect = {"uuid": item.uuid, "host": item.host, "from": str(item.state), "to": str(after.state)}
                self._transactions.note(tx, STEP, {"uuid": item.uuid}, {**effect, "reason": after.reason, MOVES: []})
            return after

        return after if after == item else self._transactions.write(write)


def _after(item: HostSleep, step: Step) -> HostSleep:
    moved = step.state is not item.state
    work = replace(
        item.work,
        ending=item.work.ending if step.ending is None else str(step.ending),
        incarnation=item.work.incarnation if step.incarnation is None else step.incarnation,
        calls=0 if moved else item.work.calls + step.called,
        was_reset=item.work.was_reset if step.was_reset is None else step.was_reset,
        deeper=item.work.deeper if step.deeper is None else step.deeper,
        ringers=item.work.ringers if step.ringers is None else step.ringers,
        called_by=item.work.called_by if step.called_by is None else step.called_by,
    )
    return replace(
        item,
        driver=item.driver if step.driver is None else step.driver,
        state=step.state,
        reason=step.reason[:MOST_OF_A_REASON],
        lent_mib=item.lent_mib if step.lent_mib is None else step.lent_mib,
        work=work,
    )
