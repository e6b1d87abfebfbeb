"""What happened to the pages of one VM: counters, and latencies per lender."""

from dataclasses import asdict, dataclass
from threading import Lock

from pondstack_rdma.store.latency import Percentiles
from pondstack_rdma.store.mirror.mirror import Mirror
from pondstack_rdma.store.page_map import PageMap
from pondstack_rdma.store.peer import Peer, PeerCounts, PeerState


class Counts:
    """Counters of pages, which only rise: `values` by name."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values = dict.fromkeys(("writes", "unplaced", "refused", "mirror_reads", "moved", "given_up", "lost"), 0)

    def add(self, **pages: int) -> None:
        """Count pages under the names of counters."""
        with self._lock:
            for name, count in pages.items():
                self._values[name] += count

    @property
    def values(self) -> dict[str, int]:
        """All counters: writes; of these unplaced (in the mirror only, at first); refused, as the mirror was full;
        mirror_reads, instead of a lender; moved in the background; given_up to the mirror for a lender; lost."""
        with self._lock:
            return dict(self._values)


@dataclass(frozen=True, slots=True)
class PeerReport:
    """One lender. Latencies are of calls, each of one batch."""

    lender: str
    state: PeerState
    counts: PeerCounts
    reads: Percentiles
    writes: Percentiles


@dataclass(frozen=True, slots=True)
class Report:
    """All of it; `mirror` is its state, or "none"."""

    pages: dict[str, int]
    where: dict[str, int]
    """As PageMap.census."""
    stranded: int
    room_pages: int
    mirror: str
    mirror_reason: str
    mirror_queued: int
    peers: tuple[PeerReport, ...]


def report_of(counts: Counts, places: PageMap, mirror: Mirror | None) -> Report:
    """Take a picture."""
    return Report(
        counts.values,
        places.census(),
        places.stranded(),
        places.room_pages(),
        mirror.state.value if mirror else "none",
        mirror.reason if mirror else "",
        mirror.queued if mirror else 0,
        tuple(_of_peer(peer) for peer in places.peers()),
    )


def _of_peer(peer: Peer) -> PeerReport:
    counts = PeerCounts(**asdict(peer.counts))
    return PeerReport(peer.name, peer.state, counts, peer.reads.percentiles(), peer.writes.percentiles())
