"""What a mirror's file holds after a crash: the newest whole version of each page, and what was torn."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pondstack_rdma.sealing import PAGE_BYTES
from pondstack_rdma.store.mirror.disk import Disk
from pondstack_rdma.store.mirror.layout import HEADER_BYTES, Header, Layout, parse_headers

_CHUNK_SLOTS = 4096


@dataclass(slots=True)
class Found:
    """The slots of a file."""

    whole: dict[int, tuple[int, Header]] = field(default_factory=dict)
    """Of each page its newest version that is whole: slot and header."""
    torn: dict[int, tuple[int, Header]] = field(default_factory=dict)
    """Of each page a version that is newer than that, and damaged: torn by the crash, or by the disk since."""
    stale: list[int] = field(default_factory=list)
    """Slots with something older: free, but their headers have to be wiped."""


def recover(disk: Disk, layout: Layout) -> Found:
    """Read all headers, and as many pages as it takes; raises OSError."""
    by_page: dict[int, list[tuple[int, Header]]] = {}
    for slot, header in _headers(disk, layout):
        by_page.setdefault(header.page, []).append((slot, header))
    found = Found()
    for page, candidates in by_page.items():
        candidates.sort(key=lambda each: each[1].version, reverse=True)
        _sort_out(found, page, candidates, disk, layout)
    return found


def _sort_out(found: Found, page: int, newest_first: list[tuple[int, Header]], disk: Disk, layout: Layout) -> None:
    for slot, header in newest_first:
        if page in found.whole:
            found.stale.append(slot)
        elif header.matches(disk.read(layout.data_at(slot), PAGE_BYTES)):
            found.whole[page] = slot, header
        elif page in found.torn:
            found.stale.append(slot)
        else:
            found.torn[page] = slot, header


def _headers(disk: Disk, layout: Layout) -> Iterator[tuple[int, Header]]:
    for first in range(0, layout.slots, _CHUNK_SLOTS):
        count = min(_CHUNK_SLOTS, layout.slots - first)
        table = disk.read(layout.header_at(first), count * HEADER_BYTES)
        yield from ((first + slot, header) for slot, header in parse_headers(table, layout.pages))
