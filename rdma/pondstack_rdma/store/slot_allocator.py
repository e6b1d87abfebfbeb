"""Spreads pages over lenders. No lock of its own: PageMap holds one while it uses it."""

from collections.abc import Iterable

from pondstack_rdma.store.leased_region import LeasedRegion, SlotRef
from pondstack_rdma.store.policy import Load, choose_lender


class SlotAllocator:
    """The room on `usable` leases, for pages of a VM that has `all_of_them`."""

    def __init__(self, all_of_them: Iterable[LeasedRegion], usable: Iterable[LeasedRegion]) -> None:
        self._by_lender: dict[str, list[LeasedRegion]] = {}
        for holding in usable:
            self._by_lender.setdefault(holding.lease.lender, []).append(holding)
        used = dict.fromkeys(self._by_lender, 0)
        for holding in all_of_them:
            if holding.lease.lender in used:
                used[holding.lease.lender] += holding.used
        self._loads = {
            name: Load(used[name], sum(holding.free for holding in those)) for name, those in self._by_lender.items()
        }

    def take(self, page: int) -> SlotRef | None:
        """Take a slot for a page where it does least harm; None when there is no room."""
        name = choose_lender(self._loads)
        if name is None:
            return None
        load = self._loads[name]
        self._loads[name] = Load(load.used + 1, load.free - 1)
        holdings = self._by_lender[name]
        while not holdings[-1].free:
            holdings.pop()
        return holdings[-1], holdings[-1].take(page)
