"""What Placement should say of lent memory: one provider for all lenders of a rack, shared with its borrowers.

`reserved` is what a guaranteed allocation cannot have: buffers that are not admitted yet, those on their way back,
those that lenders want back, those that swap has without a claim and that do not give way, and of lenders that may
sleep those that nobody has a key of, or that one host alone can have. A claim is the admission of a guaranteed
allocation (Zombieland, section 4.4).
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from oslo_log import log

from pondstack.clients.placement import Inventory, Placement
from pondstack.domain import buffer_choice
from pondstack.domain.causes import Cause
from pondstack.domain.errors import PondError
from pondstack.domain.lending import REMOTE_CLASS, Buffer, LenderKind
from pondstack.domain.states import SliceState
from pondstack.domain.units import SHARING_TRAIT
from pondstack.ledger.ledger import Ledger

LOG = log.getLogger(__name__)

PROVIDER = str(UUID("6d6b4f0e-7f0b-5c39-9d3c-5b0a2f3c1e64"))
"""The same in each rack: each has a Placement of its own."""
NAME = "pondstack-lenders"
AGGREGATE = str(UUID("0b9c2a6d-0f43-5d0e-8f51-7b1f2f6a9c35"))


def wanted(buffers: Iterable[Buffer], unguaranteed: Iterable[str], borrowers: Iterable[str] = ()) -> Inventory | None:
    """Return the inventory record in MiB, None when nothing is lent. `borrowers`: those that answer, and can let go."""
    swap, answering = set(unguaranteed), set(borrowers)
    there = [item for item in buffers if item.cause is not Cause.LENDER_LOST]
    if not there:
        return None
    size, total = there[0].size_mib, sum(item.size_mib for item in there)
    return Inventory(
        total=total,
        reserved=sum(item.size_mib for item in there if _reserved(item, swap, answering)),
        step_size=size,
        min_unit=size,
        max_unit=total,
    )


def _reserved(item: Buffer, swap: set[str], answering: set[str]) -> bool:
    if item.state in (SliceState.ASSIGNING, SliceState.ONLINE):
        stays = item.host not in answering or not buffer_choice.gives_way(item, ())
        return item.allocation_uuid in swap and stays
    return not item.is_free or item.leaving or not item.admitted or not _is_for_all(item)


def _is_for_all(item: Buffer) -> bool:
    """Return whether a free buffer is not for one host alone, or for nobody while its lender sleeps."""
    return item.promised_to is None and item.escrowed == (item.kind is LenderKind.ZOMBIE)


class LendingInventory:
    """Writes it for one leader, by one thread; what is right already costs nothing but at the first time."""

    def __init__(self, placement: Placement, ledger: Ledger) -> None:
        self._placement, self._ledger = placement, ledger
        self._written: Inventory | None = None
        self._absent = False
        self._joined: set[str] = set()

    def write(self) -> None:
        """Make Placement agree with the ledger; raises Unavailable."""
        record = self._wanted()
        if record is None and self._is_absent():
            return
        try:
            self._write(record or _NOTHING)
            self._share(self._ledger.loans.borrowers())
        except PondError:
            # A lost or rebuilt Placement needs everything again.
            self.forget()
            raise

    def forget(self) -> None:
        """Look at Placement afresh at the next write: somebody may have changed it."""
        self._written, self._absent, self._joined = None, False, set()

    def difference(self) -> str | None:
        """Return how Placement differs from what it should say, None when it does not; raises Unavailable."""
        record, present = self._wanted(), self._placement.inventory(PROVIDER, REMOTE_CLASS)
        if present == (record or _NOTHING) or (record is None and present is None):
            return None
        return f"Placement has {present}, it should be {record or _NOTHING}"

    def _is_absent(self) -> bool:
        """Return whether Placement has no record, and needs none while nothing is lent. Asks it once.

        What nobody here has written a former leader may have.
        """
        if self._written is None and not self._absent:
            self._absent = self._placement.inventory(PROVIDER, REMOTE_CLASS) is None
        return self._written is None and self._absent

    def _wanted(self) -> Inventory | None:
        swap = [item.uuid for item in self._ledger.loans.allocations() if not item.guaranteed]
        return wanted(self._ledger.buffers.find(), swap, self._ledger.loans.borrowers())

    def _write(self, record: Inventory) -> None:
        if record == self._written:
            return
        first = self._written is None
        if first:
            self._placement.ensure_resource_class(REMOTE_CLASS)
            self._placement.ensure_provider(PROVIDER, NAME)
        self._placement.set_inventory(PROVIDER, REMOTE_CLASS, record, still=self._ledger.renew, force=first)
        if first:
            self._placement.ensure_trait(PROVIDER, SHARING_TRAIT)
            self._placement.change_aggregates(PROVIDER, lambda present: present | {AGGREGATE})
        self._written = record

    def _share(self, borrowers: Sequence[str]) -> None:
        """Join the borrowers' providers to the aggregate; one that Nova has not registered yet comes later.

        A provider that Nova has deleted is in no aggregate, and neither is the one that its host comes back with.
        """
        for host in sorted(set(borrowers) ^ self._joined):
            provider = self._placement.host_provider(host)
            if host not in borrowers:
                if provider is not None:
                    self._placement.change_aggregates(provider, lambda present: present - {AGGREGATE})
                self._joined.discard(host)
            elif provider is not None:
                self._placement.change_aggregates(
                    provider, lambda present: present | {AGGREGATE}, still=self._ledger.renew
                )
                self._joined.add(host)


_NOTHING = Inventory(total=1, reserved=1, step_size=1, min_unit=1, max_unit=1)
"""Placement takes no record of nothing."""
