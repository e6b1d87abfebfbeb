"""Moves pages between this process and lenders: grouped by lender, in batches, sealed. The pages' locks are held."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from pondstack_rdma.errors import AccessRefused, PageCorrupt
from pondstack_rdma.model import Operation, Read, ReadableBuffer, Write
from pondstack_rdma.sealing import PAGE_BYTES, PageSealer
from pondstack_rdma.store.leased_region import SlotRef
from pondstack_rdma.store.page_map import PageMap
from pondstack_rdma.store.peer import Peer


class Transfer:
    """Reads and writes pages at lenders. Without a sealer, lenders see them, and nothing tells a changed page."""

    def __init__(self, places: PageMap, sealer: PageSealer | None, corrupt_limit: int, otherwise: int) -> None:
        """`otherwise` is the place of a page that came back corrupt."""
        self._places = places
        self._sealer = sealer
        self._corrupt_limit = corrupt_limit
        self._otherwise = otherwise

    def send(
        self, pages: Mapping[int, ReadableBuffer], *, seal: bool, stay: bool, insist: bool
    ) -> tuple[dict[int, SlotRef], set[int]]:
        """Write pages to lenders; where they are now, and which others were tried in vain.

        `stay`: each in its own slot if that can be. `insist`: try other lenders after a failure. Nothing is written
        down in the book of places, but for what failed.
        """
        placed: dict[int, SlotRef] = {}
        tried: set[int] = set()
        while rest := [page for page in pages if page not in placed]:
            plan = self._places.plan(rest, stay)
            if not plan:
                break
            tried |= plan.keys()
            for peer, spots in _by_peer(plan):
                payloads = {page: self._seal(page, pages[page]) if seal else pages[page] for page, _ in spots}
                operations = [_write(spot, payloads[page]) for page, spot in spots]
                done, error = peer.run(operations)
                placed.update(spots[:done])
                if error is not None:
                    self._places.failed(spots[done:], error)
            if not insist:
                break
        return placed, tried - placed.keys()

    def fetch(self, pages: Sequence[int]) -> dict[int, bytes]:
        """Return the contents of those pages that a lender gives, checked."""
        return {page: content for page, (_, content) in self._checked(pages).items()}

    def fetch_sealed(self, pages: Sequence[int]) -> dict[int, bytearray]:
        """Return those pages that a lender gives, as they lie there; checked, too."""
        return {page: data for page, (data, _) in self._checked(pages).items()}

    def _checked(self, pages: Sequence[int]) -> dict[int, tuple[bytearray, bytes]]:
        found: dict[int, tuple[bytearray, bytes]] = {}
        for page, (spot, data) in self._fetch(pages).items():
            try:
                found[page] = data, self._open(page, data)
            except PageCorrupt:
                self._corrupt(page, spot)
        return found

    def _fetch(self, pages: Sequence[int]) -> dict[int, tuple[SlotRef, bytearray]]:
        """Return what lenders have of pages, as it lies there, and where that was."""
        found: dict[int, tuple[SlotRef, bytearray]] = {}
        while True:
            plan = {page: spot for page in pages if page not in found and (spot := self._places.find(page))}
            for peer, spots in _by_peer(plan):
                buffers = [bytearray(PAGE_BYTES) for _ in spots]
                done, error = peer.run([_read(spot, into) for (_, spot), into in zip(spots, buffers, strict=True)])
                found |= {page: (spot, data) for (page, spot), data in zip(spots[:done], buffers, strict=False)}
                if isinstance(error, AccessRefused):
                    self._places.lost(spots[done][1][0])
            # Each failure takes a lender or a lease out, so that this ends.
            if not plan or all(page in found for page in plan):
                return found

    def _open(self, page: int, data: bytearray) -> bytes:
        return bytes(data) if self._sealer is None else self._sealer.open(page, data)

    def _seal(self, page: int, data: ReadableBuffer) -> ReadableBuffer:
        return data if self._sealer is None else self._sealer.seal(page, data)

    def _corrupt(self, page: int, spot: SlotRef) -> None:
        """Believe the lender less: its slot is used no more, and after some of them, nothing of it."""
        self._places.retire_slot(page, spot)
        self._places.settle(page, None, self._otherwise)
        if spot[0].peer.distrust() >= self._corrupt_limit:
            for holding in self._places.holdings():
                if holding.peer is spot[0].peer:
                    self._places.lost(holding)


def _by_peer(plan: Mapping[int, SlotRef]) -> Iterator[tuple[Peer, list[tuple[int, SlotRef]]]]:
    """Yield what goes to each lender, in parts that its link takes at once."""
    groups: dict[str, list[tuple[int, SlotRef]]] = {}
    for page, spot in plan.items():
        groups.setdefault(spot[0].lease.lender, []).append((page, spot))
    for spots in groups.values():
        peer = spots[0][1][0].peer
        rest = iter(spots)
        while part := list(islice(rest, peer.max_batch)):
            yield peer, part


def _write(spot: SlotRef, data: ReadableBuffer) -> Operation:
    holding, slot = spot
    return Write(holding.lease.key, holding.offset(slot), data)


def _read(spot: SlotRef, into: bytearray) -> Operation:
    holding, slot = spot
    return Read(holding.lease.key, holding.offset(slot), into)
