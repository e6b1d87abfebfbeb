"""What schedulers decide splits from: the pools' room, and the splits of existing instances.

Refreshed in the background from the warm view and Placement's claims, which are read in this order: what is in the view
and not among the claims has been dropped. Neither a scheduler's request nor its refresh waits for Placement or a read
of the whole ledger.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from oslo_log import log
from sqlalchemy.orm import Session

from pondstack.controller.pool.capacity import claimable
from pondstack.controller.pool.returns import PoolClaims
from pondstack.controller.pool.split_catalog import SplitCatalog
from pondstack.db.connection.engine import Database
from pondstack.db.store import project_settings, repredictions, splits
from pondstack.domain.errors import Unavailable
from pondstack.domain.known_split import Present
from pondstack.domain.project_settings import ProjectSettings
from pondstack.domain.purpose import Purpose
from pondstack.domain.rack import RackView
from pondstack.domain.room import PendingSplits, PoolRoom
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.store import RememberedSplit
from pondstack.prediction.serving import present_split

LOG = log.getLogger(__name__)

SETTLED_SECONDS = 15.0
"""A consumer is among the newly claimed for so long; a scheduler that looks more rarely waits a little longer."""
LOST_SECONDS = 60.0
"""A scheduler that has not told what it placed an instance with by then has ended before."""
RELOAD_SECONDS = 600.0
"""How often all remembered splits are read, to notice those that were pruned."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """The pools' room at a moment of the clock. `claimed`: consumers whose claims or slices came up lately."""

    pools: tuple[PoolRoom, ...]
    slice_mib: int
    read_at: float
    claimed: frozenset[str] = field(default_factory=frozenset)


class SplitBoard:
    """Thread-safe. All but `refresh()` and `refresh_if_older()` answers from memory.

    `claims` asks Placement what is claimed of our pools; without an answer the ledger alone counts.
    """

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        view: Callable[[], RackView],
        claims: Callable[[RackView], PoolClaims],
        down_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        take_at_move: Callable[[], bool] = lambda: False,
    ) -> None:
        """`take_at_move()`: whether what was predicted again is taken when an instance is moved."""
        self._take_at_move = take_at_move
        self._database = database
        self._ledger = ledger
        self._view = view
        self._claims = claims
        self._down = down_seconds
        self._clock = clock
        self._refreshing = threading.Lock()
        self._rooms: Rooms | None = None
        self._first_seen: dict[str, float] | None = None
        self._loaded_at: float | None = None
        self.catalog = SplitCatalog()
        self.pending = PendingSplits()
        self.projects: dict[str, ProjectSettings] = {}

    @property
    def rooms(self) -> Rooms:
        """The latest room; raises Unavailable before the first refresh."""
        if self._rooms is None:
            raise Unavailable("this controller has just been elected and knows no room yet; call again")
        return self._rooms

    def age_seconds(self) -> float:
        """Return how old the latest room is."""
        return self._clock() - self.rooms.read_at

    def refresh_if_older(self, moment: float) -> None:
        """Refresh unless what is there was read after this moment of the clock; several callers share one look."""
        with self._refreshing:
            if self._rooms is None or self._rooms.read_at < moment:
                self._refresh()

    def refresh(self) -> None:
        """Read everything anew. Raises Unavailable."""
        with self._refreshing:
            self._refresh()

    def _refresh(self) -> None:
        if self._loaded_at is None or self._clock() - self._loaded_at > RELOAD_SECONDS:
            loaded_at = self._clock()
            self.catalog.remember(self._database.read(splits.remembered), all_there_is=True)
            self.catalog.renew(self._database.read(repredictions.wanted) if self._take_at_move() else {})
            self.read_projects()
            self._loaded_at = loaded_at
        read_at, view = self._clock(), self._view()
        claims = self._present_claims(view)
        consumers = {aged.item.consumer_uuid for aged in view.allocations.values()}
        consumers.update(consumer for held in claims.values() for consumer in held)
        self.catalog.see(_present(view))
        self._rooms = Rooms(
            tuple(claimable(view, claims, self._down)),
            max((detail.pool.slice_mib for detail in view.pools.values()), default=DEFAULT_SLICE_MIB),
            read_at,
            self._new(consumers, read_at),
        )
        self.pending.settle(consumers, read_at)
        self._mend(view, claims)

    def read_projects(self) -> None:
        """Read what operators have set per project. Raises Unavailable."""
        self.projects = self._database.read(project_settings.all_set)

    def reread(self, uuids: list[str]) -> None:
        """Take over what is remembered of instances by now; without an answer everything is read at the next look."""
        try:
            self.catalog.remember(self._database.read(lambda session: _of(session, uuids)))
        except Unavailable as error:
            LOG.warning("All splits are read anew: %s", error)
            self._loaded_at = None

    def recorded(self, items: Iterable[RememberedSplit]) -> None:
        """Take over what the ledger was just told that instances were placed with."""
        items = list(items)
        uuids = [item.instance_uuid for item in items]
        self.catalog.remember(self._database.read(lambda session: _of(session, uuids)))
        for item in items:
            self.pending.add(item.instance_uuid, item.split.pool_mib, self._clock() - item.age_seconds)

    def _present_claims(self, view: RackView) -> PoolClaims:
        try:
            return self._claims(view)
        except Unavailable as error:
            LOG.debug("Placement does not answer, room rests on the ledger alone: %s", error)
            return {}

    def _new(self, consumers: set[str], now: float) -> frozenset[str]:
        """Return who came up lately. At the first look nobody did: who is new, is not known."""
        before = self._first_seen
        if before is None:
            self._first_seen = dict.fromkeys(consumers, float("-inf"))
            return frozenset()
        self._first_seen = {uuid: before.get(uuid, now) for uuid in consumers}
        return frozenset(uuid for uuid, seen in self._first_seen.items() if now - seen <= SETTLED_SECONDS)

    def _mend(self, view: RackView, claims: PoolClaims) -> None:
        """Remember what Placement and ledger hold for instances of which no scheduler ever told."""
        unknown = self.catalog.without_reason()
        claimed = {consumer for held in claims.values() for consumer in held}
        lost = [
            RememberedSplit(item.consumer_uuid, "", present_split(item.guest_mib, item.pool_mib), aged.age_seconds)
            for aged in view.allocations.values()
            if (item := aged.item).consumer_uuid in unknown
            and item.consumer_uuid in claimed
            and item.purpose is Purpose.GUEST
            and item.pool_mib < item.guest_mib
            and aged.age_seconds > LOST_SECONDS
        ]
        if lost:
            LOG.info("No scheduler told how %d instances were split; what they hold is remembered", len(lost))
            self._ledger.remember_splits(lost)
            self.catalog.remember(lost)


def _present(view: RackView) -> Mapping[str, Present]:
    """Return the newest allocation of each guest: the others are of a move under way."""
    newest: dict[str, tuple[float, Present]] = {}
    for aged in view.allocations.values():
        item = aged.item
        if item.purpose is not Purpose.GUEST:
            continue
        if item.consumer_uuid not in newest or aged.age_seconds < newest[item.consumer_uuid][0]:
            newest[item.consumer_uuid] = aged.age_seconds, Present(item.guest_mib, item.pool_mib)
    return {uuid: present for uuid, (_, present) in newest.items()}


def _of(session: Session, uuids: list[str]) -> list[RememberedSplit]:
    return splits.remembered(session, uuids)
