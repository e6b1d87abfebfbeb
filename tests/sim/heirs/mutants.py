"""Broken variants of hand-overs. Each must be caught, as those of tests.sim.mutants."""

from collections.abc import Iterable, Iterator
from typing import Any
from unittest import mock

from pondstack.controller.pool.sanitizer import Sanitizer
from pondstack.controller.reconcile.observation import Observation
from pondstack.domain.inheritance import passed_on
from pondstack.domain.model import Slice, indexes_of
from pondstack.domain.transitions import Fate, fates
from pondstack.ledger import slice_inheritance, slices
from pondstack.ledger.moves import move
from pondstack_agent.pool.attach import AttachFlow
from pondstack_agent.pool.releases import Releases
from tests.fixtures.memory_device import MemoryDevice
from tests.fixtures.memory_host import MemoryHostPool
from tests.sim.mutant import Mutant, lister

MUTANTS: dict[str, Mutant] = {}
mutant = lister(MUTANTS)


@mutant()
def sanitised_at_the_sources_release() -> Iterator[None]:
    """What a guest's source lets go of is zeroed, though the guest goes on with it elsewhere."""

    def pass_on(store: Any, tx: Any, _heir: str, items: Any, *, epoch: int, written_back: bool) -> Any:
        del written_back
        return [
            done for fate in fates(items) for done in move(store.slices.swap, tx, fate.items, *fate.events, epoch=epoch)
        ]

    with mock.patch.object(slices, "pass_on", pass_on):
        yield


@mutant()
def the_owner_is_shut_out_at_once() -> Iterator[None]:
    """The device lets the heir in, and the host out on which the guest still runs."""
    plain = MemoryDevice.add_heir

    def add_heir(self: Any, host: str, extents: Any, *, tag: str, owner: str, epoch: int) -> None:
        plain(self, host, extents, tag=tag, owner=owner, epoch=epoch)
        self.revoke([index for extent in extents for index in extent.indexes], tag=owner, epoch=epoch)

    with mock.patch.object(MemoryDevice, "add_heir", add_heir):
        yield


@mutant()
def permissions_of_owners_end_early() -> Iterator[None]:
    """The sanitiser ends each permission that has an heir, whoever has the slices by the ledger."""

    def end(self: Any, device: Any) -> None:
        for index, entry in device.permissions().items():
            if entry.heir is not None:
                device.revoke([index], tag=entry.tag, epoch=self._ledger.epoch)

    with mock.patch.object(Sanitizer, "_end_former_owners", end):
        yield


@mutant()
def failed_moves_are_remembered() -> Iterator[None]:
    """What was to be handed over stays so, though its heir has given up."""
    with mock.patch.object(slices, "disinherit", return_value={}):
        yield


@mutant()
def heirs_are_strangers() -> Iterator[None]:
    """The reconciler takes who is to get slices for somebody who has them without a right."""
    with mock.patch.object(Observation, "owner_of", {}):
        yield


@mutant()
def zeroed_where_it_comes() -> Iterator[None]:
    """The destination zeroes what is handed over to it, as a host does with slices that are its guest's first."""
    plain = MemoryHostPool.attach

    def attach(self: Any, grant: Any) -> Any:
        backings = plain(self, grant)
        if grant.handed:
            for index in indexes_of(grant.extents):
                self._device(grant.pool_uuid).contents.pop(index, None)
        return backings

    with mock.patch.object(MemoryHostPool, "attach", attach):
        yield


@mutant()
def acknowledged_as_assigned() -> Iterator[None]:
    """An heir that has acknowledged its slices is to do it again when they are its own."""

    def passed(items: Iterable[Slice], *, acknowledged: bool, whole: bool) -> list[Fate]:
        del acknowledged
        return passed_on(items, acknowledged=False, whole=whole)

    with mock.patch.object(slice_inheritance, "passed_on", passed):
        yield


@mutant()
def caches_are_taken_for_memory() -> Iterator[None]:
    """Whatever became of the source, its slices are the heir's with all that the guest wrote."""

    def passed(items: Iterable[Slice], *, acknowledged: bool, whole: bool) -> list[Fate]:
        del whole
        return passed_on(items, acknowledged=acknowledged, whole=True)

    with mock.patch.object(slice_inheritance, "passed_on", passed):
        yield


@mutant()
def a_restart_writes_caches_back() -> Iterator[None]:
    """A host says of each release that its caches were written back, whether it has restarted or not."""
    with mock.patch.object(Releases, "written_back", Releases.pending):
        yield


@mutant()
def the_device_alone_is_asked() -> Iterator[None]:
    """A guest that came paused runs once the device says so, whatever the ledger knows."""
    with mock.patch.object(AttachFlow, "taken_up", return_value=True):
        yield
