"""What Placement is told of lent memory in a history, and broken variants of who tells it."""

import functools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest import mock

from pondstack.clients.placement import Inventory
from pondstack.controller.lending import inventory
from pondstack.controller.lending.inventory import PROVIDER, LendingInventory, wanted
from pondstack.db.store import buffers as sql_buffers
from pondstack.domain.lending import Buffer
from tests.fixtures.memory import buffers as memory_buffers

from .. import settings
from ..mutant import Mutant, lister

if TYPE_CHECKING:
    from ..rack import Rack

MUTANTS: dict[str, Mutant] = {}
mutant = lister(MUTANTS)


def begin(rack: "Rack") -> None:
    """Have happen what is to happen while hosts take back what they lent."""
    for step in rack.history.offers or ():
        act = rack.faults.strike if step.kind == "placement_down" else rack.faults.command
        rack.scheduler.call_at(rack.scheduler.now + step.at, functools.partial(act, step))


def disagreements(rack: "Rack") -> list[str]:
    """Return how the inventory of lent memory differs from what it should be."""
    provider, record = rack.placement.providers.get(PROVIDER), _wanted(rack)
    present = provider.inventory if provider is not None else None
    if record is None and (present is None or present.reserved == present.total == 1):
        return []
    return [] if present == record else [f"Placement has {present} of lent memory, it should be {record}"]


def _wanted(rack: "Rack") -> Inventory | None:
    books: Any = sql_buffers if rack.sql else memory_buffers
    loans = rack.store.read(books.allocations)
    borrowers = rack.store.read(lambda tx: books.borrowers(tx, settings.DOWN_SECONDS))
    assert rack.lent is not None
    return wanted(rack.lent.watch.buffers.values(), (item.uuid for item in loans if not item.guaranteed), borrowers)


@mutant()
def a_former_leaders_offer_stays() -> Iterator[None]:
    """A leader that has written nothing takes it that Placement has no record: another's stays when all has ended."""
    with mock.patch.object(LendingInventory, "_is_absent", lambda self: self._written is None):
        yield


@mutant()
def what_lenders_want_back_is_offered() -> Iterator[None]:
    """Placement is told of buffers that their lender wants back as of all others."""
    plain = inventory.wanted

    def offered(buffers: Iterable[Buffer], *others: Any) -> Inventory | None:
        return plain([replace(item, leaving=False) for item in buffers], *others)

    with mock.patch.object(inventory, "wanted", offered):
        yield
