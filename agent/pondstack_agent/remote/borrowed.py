"""What a consumer has of lenders, by the borrower's records, which are only read here."""

from collections.abc import Iterator
from dataclasses import dataclass

from pondstack.domain.units import MIB
from pondstack_agent.borrower.records import Held, Store
from pondstack_agent.remote.records import Consumer


@dataclass(frozen=True)
class Borrowed:
    """Buffers of consumers, without those that are going back."""

    store: Store

    def of(self, mine: Consumer) -> Iterator[tuple[Held, list[int]]]:
        """Yield what is held of each incarnation of a lender, with the consumer's buffers of it, if there are any."""
        mines = mine.allocations
        for held in self.store.all():
            indexes = [i for i, item in held.buffers.items() if item.allocation_uuid in mines and not item.leaving]
            if indexes:
                yield held, indexes

    def mib(self, mine: Consumer) -> int:
        """Return how much a consumer has of lenders."""
        return sum(held.buffers[index].key.size_bytes for held, indexes in self.of(mine) for index in indexes) // MIB
