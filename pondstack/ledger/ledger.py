"""The ledger's writer. Every method is one transaction that first checks the epoch; an operation id happens once.

Each of them renews the lease too. Raises NotLeader when the epoch is over, Unavailable when the database does not
answer in time. What moves slices is in the journal, with its moves, so that a follower can replay it.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar
from uuid import NAMESPACE_OID, uuid4, uuid5

from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.db.store.journal import fingerprint
from pondstack.db.store.pools import Receipt
from pondstack.domain.allocator import choose_extents
from pondstack.domain.causes import Cause
from pondstack.domain.errors import Conflict, NotAligned, NotFound, PoolFragmented, PoolShortage
from pondstack.domain.model import PoolState, Slice, indexes_of
from pondstack.domain.requests import AssignRequest
from pondstack.domain.sizing import Split
from pondstack.domain.states import OWNED, SliceEvent, SliceState
from pondstack.domain.transitions import fates, reclaimable
from pondstack.domain.units import slices_for
from pondstack.ha.lease import Terms
from pondstack.ledger.buffers import Lending
from pondstack.ledger.failures import Failures
from pondstack.ledger.slice_moves import MOVES, describe
from pondstack.ledger.store import SQL, Moves, Tables

T = TypeVar("T")
AT_A_TIME = 2
"""How many transactions of one writer are under way in the database."""


class Ledger(Lending, Failures):
    """Writes under one epoch. Thread-safe. `down_seconds`: silence after which a host's agent counts as gone.

    Each write moves the end of the lease `lease_seconds` away; `renewed(epoch, started)` hears of it, with the moment
    by `clock` at which the transaction that was committed began (pondstack.ha.candidate.Candidate.renewed).
    """

    def __init__(
        self,
        database: Database,
        epoch: int,
        down_seconds: float = 20.0,
        *,
        lease_seconds: float = Terms().lease_seconds,
        clock: Callable[[], float] = time.monotonic,
        renewed: Callable[[int, float], object] = lambda _epoch, _started: None,
        tables: Tables = SQL,
    ) -> None:
        self.database = database
        self.epoch = epoch
        self._down = down_seconds
        self._lease = lease_seconds
        self._clock = clock
        self._renewed = renewed
        self._tables = tables
        # All would queue up for the leadership row in the database, and a leader that is paused would hold it up once
        # for each of them, a second every time. Two at a time keep the row as busy as many: the second has it while
        # the first is being made durable.
        self._turn = threading.BoundedSemaphore(AT_A_TIME)

    def _write(self, work: Callable[[Session], T]) -> T:
        started = self._clock()

        def guarded(session: Session) -> T:
            nonlocal started
            started = self._clock()
            self._tables.check_epoch(session, self.epoch, self._lease)
            return work(session)

        answer = self.database.write(guarded, self._turn)
        self._renewed(self.epoch, started)
        return answer

    def _once(
        self, operation_id: str, kind: str, arguments: dict[str, Any], work: Callable[[Session], dict[str, Any]]
    ) -> dict[str, Any]:
        """Run a journaled transaction: the first time `work` makes the effect, later the journal tells it."""
        digest = fingerprint(arguments)

        def guarded(session: Session) -> dict[str, Any]:
            effect = self._tables.journal.recall(session, operation_id, kind, digest)
            if effect is None:
                effect = work(session)
                self._tables.journal.record(session, operation_id, kind, digest, self.epoch, effect)
            return effect

        return self._write(guarded)

    # What agents ask for

    def assign(self, operation_id: str, request: AssignRequest) -> dict[str, Any]:
        """Take free slices for a consumer; returns {"allocation_uuid", "pool_uuid", "extents": [{"start", "count"}]}.

        The effect in the journal, which is the answer, has "asked" (what the allocation's row says) and "moves" too.
        Raises PoolShortage, PoolFragmented, HostUnusable, NotFound, NotAligned, OperationMismatch, and Conflict when
        the operation's allocation has been released since.
        """
        uuid = str(uuid5(NAMESPACE_OID, f"pondstack allocation {operation_id}"))

        def guarded(session: Session) -> dict[str, Any]:
            digest = fingerprint(asdict(request))
            effect = self._tables.journal.recall(session, operation_id, "assign", digest)
            if effect is None:
                effect = self._assign(session, operation_id, uuid, request)
                self._tables.journal.record(session, operation_id, "assign", digest, self.epoch, effect)
            else:
                self._check_still_held(session, operation_id, uuid)
            return effect

        return self._write(guarded)

    def _assign(self, session: Session, operation_id: str, uuid: str, request: AssignRequest) -> dict[str, Any]:
        pool = self._tables.pools.usable_pool(session, request.pool_uuid, request.host)
        try:
            wanted = slices_for(request.pool_mib, pool.slice_mib)
        except ValueError as error:
            raise NotAligned(f"{error}; ask for whole slices") from None
        if wanted < 1 or (request.shape is not None and sum(request.shape) != wanted):
            raise NotAligned(f"{request.pool_mib} MiB in the shape {request.shape} is no whole number of slices")
        try:
            extents = choose_extents(self._tables.slices.free_indexes(session, pool.uuid), wanted, request.shape)
        except PoolFragmented as error:
            raise PoolFragmented(f"pool {pool.name}: {error}") from None
        except PoolShortage as error:
            raise PoolShortage(f"pool {pool.name}: {error}") from None
        taken = [Slice(pool.uuid, index) for index in indexes_of(extents)]
        moves = self._move(session, taken, SliceEvent.ASSIGN, host=request.host, allocation_uuid=uuid)
        plain = [{"start": extent.start, "count": extent.count} for extent in extents]
        asked = {name: value for name, value in asdict(request).items() if name not in ("pool_uuid", "shape")}
        self._tables.allocations.insert(session, uuid, operation_id, pool.uuid, plain, asked)
        return {"allocation_uuid": uuid, "pool_uuid": pool.uuid, "extents": plain, "asked": asked, MOVES: moves}

    def acknowledge(self, operation_id: str, allocation_uuid: str, host: str) -> None:
        """ASSIGNING becomes ONLINE; raises NotFound or IllegalTransition when the allocation was released meanwhile."""

        def work(session: Session) -> dict[str, Any]:
            if not self._belongs(session, allocation_uuid, host):
                raise NotFound(f"there is no allocation {allocation_uuid}; it was released, attach again")
            mine = self._tables.slices.of_allocation(session, allocation_uuid)
            waiting = [item for item in mine if item.state is not SliceState.ONLINE]
            moves = self._move(session, waiting, SliceEvent.ACKNOWLEDGE)
            self._tables.allocations.bump(session, allocation_uuid)
            return {"slices": [item.index for item in waiting], MOVES: moves}

        self._once(operation_id, "acknowledge", {"allocation_uuid": allocation_uuid, "host": host}, work)

    def release(
        self, operation_id: str, allocation_uuid: str, host: str, *, unacknowledged: bool = False
    ) -> str | None:
        """The host does not hold the allocation any more: its slices go to SANITIZING, quarantined ones too.

        `unacknowledged`: nothing changes unless the host has acknowledged none of it.

        Those of a device that failed lose their owner and stay QUARANTINED: an audit sets them free.
        Returns the pool with slices to sanitise; None when the allocation is unknown, which is settled. Raises Conflict
        when the allocation belongs to another host.
        """

        def work(session: Session) -> dict[str, Any]:
            self._belongs(session, allocation_uuid, host)
            mine = [item for item in self._tables.slices.of_allocation(session, allocation_uuid) if item.host == host]
            if unacknowledged and any(item.state is not SliceState.ASSIGNING for item in mine):
                mine = []
            moves = []
            for fate in fates(mine):
                why = {"reason": fate.reason, "cause": fate.cause, "failure": fate.failure}
                moves += self._move(session, fate.items, *fate.events, **why)
            self._tables.allocations.drop_empty(session, [allocation_uuid])
            pool_uuid = mine[0].pool_uuid if mine else None
            return {"pool_uuid": pool_uuid, "slices": [item.index for item in mine], MOVES: moves}

        arguments = {"allocation_uuid": allocation_uuid, "host": host}
        pool_uuid: str | None = self._once(operation_id, "release", arguments, work)["pool_uuid"]
        return pool_uuid

    def heartbeat(self, report: Mapping[str, Any]) -> Receipt:
        """Write a report (pondstack.rpc.wire.Report on the wire) down; a late one changes nothing."""
        return self._write(lambda session: self._tables.pools.write_report(session, report, self._down))

    # What the controller itself does

    def register_pool(self, **values: Any) -> None:
        """Add or refresh a pool; arguments and errors of pondstack.db.store.pools.register_pool."""

        def work(session: Session) -> None:
            new = self._tables.pools.register_pool(session, **values)
            if new:
                moves = [describe(None, Slice(values["uuid"], 0), new)]
                digest = fingerprint({"pool_uuid": values["uuid"]})
                self._tables.journal.record(session, str(uuid4()), "register_pool", digest, self.epoch, {MOVES: moves})

        self._write(work)

    def set_pool_state(self, uuid: str, state: PoolState) -> bool:
        """Write down a pool's health; returns whether it changed."""
        return self._write(lambda session: self._tables.pools.set_pool_state(session, uuid, state))

    def set_host(
        self, name: str, enabled: bool, reason: str, generation: int | None, operation_id: str | None = None
    ) -> int:
        """Enable or disable a host; returns its new generation. Raises NotFound, GenerationConflict.

        By its operation id (None: nobody will repeat it) a repetition gets the first answer, not a conflict with it.
        """

        def work(session: Session) -> dict[str, Any]:
            return {"generation": self._tables.pools.set_host(session, name, enabled, reason, generation), MOVES: []}

        arguments = {"name": name, "enabled": enabled, "reason": reason, "generation": generation}
        now: int = self._once(operation_id or str(uuid4()), "set_host", arguments, work)["generation"]
        return now

    def set_provider(self, name: str, provider_uuid: str) -> None:
        """Remember the UUID of a host's Placement provider."""
        self._write(lambda session: self._tables.pools.set_provider(session, name, provider_uuid))

    def begin_release(self, allocation_uuid: str, reason: str) -> int:
        """ASSIGNING and ONLINE become RELEASING: nobody claims them, their host has not confirmed. Returns how many."""

        def work(session: Session) -> dict[str, Any]:
            mine = self._tables.slices.of_allocation(session, allocation_uuid)
            held = [item for item in mine if item.state in (SliceState.ASSIGNING, SliceState.ONLINE)]
            moves = self._move(session, held, SliceEvent.RELEASE, reason=reason)
            return {"slices": [item.index for item in held], MOVES: moves}

        return self._count("begin_release", {"allocation_uuid": allocation_uuid}, work)

    def reclaim(self, allocation_uuid: str) -> int:
        """RELEASING, and QUARANTINED for its host's silence, become ONLINE: it is claimed again and its host holds it.

        All of the allocation or nothing: nothing when its host was fenced, or has confirmed the release, meanwhile.
        Returns how many.
        """

        def work(session: Session) -> dict[str, Any]:
            back = reclaimable(self._tables.slices.of_allocation(session, allocation_uuid))
            if back and self._tables.pools.is_fenced(session, back[0].host or ""):
                back = []  # its device keeps the host out, or is about to
            moves = self._move(session, back, SliceEvent.RECLAIM)
            return {"slices": [item.index for item in back], MOVES: moves}

        return self._count("reclaim", {"allocation_uuid": allocation_uuid}, work)

    def quarantine_allocation(self, allocation_uuid: str, cause: Cause, detail: str) -> int:
        """Set all owned slices of an allocation aside; they keep their owner as the cause. Returns how many."""

        def work(session: Session) -> dict[str, Any]:
            held = [item for item in self._tables.slices.of_allocation(session, allocation_uuid) if item.state in OWNED]
            why = cause.reason(detail)
            moves = self._move(session, held, SliceEvent.QUARANTINE, reason=why, cause=cause)
            return {"slices": [item.index for item in held], MOVES: moves}

        return self._count("quarantine", {"allocation_uuid": allocation_uuid}, work)

    def quarantine_slices(
        self,
        pool_uuid: str,
        indexes: Iterable[int],
        cause: Cause,
        detail: str,
        *,
        failure: int | None = None,
        host: str | None = None,
        allocation_uuid: str | None = None,
    ) -> int:
        """Set those slices aside that nobody owns; returns how many.

        `host` and `allocation_uuid`: who holds them all the same. `failure`: of the device, with DEVICE_FAILED.
        """
        wanted = sorted(indexes)

        def work(session: Session) -> dict[str, Any]:
            loose = (SliceState.FREE, SliceState.SANITIZING)
            found = [item for item in self._tables.slices.at(session, pool_uuid, wanted) if item.state in loose]
            why = {"reason": cause.reason(detail), "cause": cause, "failure": failure}
            holder = {"host": host, "allocation_uuid": allocation_uuid}
            moves = self._move(session, found, SliceEvent.QUARANTINE, **why, **holder)
            return {"slices": [item.index for item in found], MOVES: moves}

        return self._count("quarantine", {"pool_uuid": pool_uuid, "indexes": wanted}, work)

    def audit_slices(self, pool_uuid: str, indexes: Iterable[int], reason: str) -> int:
        """QUARANTINED becomes SANITIZING: it was proved that no host holds the slice. Returns how many."""
        wanted = sorted(indexes)

        def work(session: Session) -> dict[str, Any]:
            found = [i for i in self._tables.slices.at(session, pool_uuid, wanted) if i.state is SliceState.QUARANTINED]
            moves = self._move(session, found, SliceEvent.AUDIT, reason=reason)
            self._tables.allocations.drop_empty(session, {i.allocation_uuid for i in found if i.allocation_uuid})
            return {"slices": [item.index for item in found], MOVES: moves}

        return self._count("audit", {"pool_uuid": pool_uuid, "indexes": wanted}, work)

    def sanitized(self, pool_uuid: str, indexes: Iterable[int]) -> int:
        """SANITIZING becomes FREE: the device has zeroed and verified the slices. Returns how many."""
        wanted = sorted(indexes)

        def work(session: Session) -> dict[str, Any]:
            found = [i for i in self._tables.slices.at(session, pool_uuid, wanted) if i.state is SliceState.SANITIZING]
            moves = self._move(session, found, SliceEvent.SANITIZED)
            return {"slices": [item.index for item in found], MOVES: moves}

        return self._count("sanitized", {"pool_uuid": pool_uuid, "indexes": wanted}, work)

    def mark_claims(self, claimed: Sequence[str], unclaimed: Sequence[str]) -> None:
        """Note which allocations Placement backs with a claim; an unclaimed one keeps the moment of its first note."""

        if claimed or unclaimed:
            self._write(lambda session: self._tables.allocations.mark_claims(session, claimed, unclaimed))

    def renew(self) -> None:
        """Show that this writer lives, and notice when it no longer leads; raises NotLeader."""
        self._write(lambda _session: None)

    def remember_split(self, instance_uuid: str, flavor_key: str, split: Split) -> None:
        """Keep the split of an instance for its moves, in place of an older one."""
        self._write(lambda session: self._tables.splits.remember(session, instance_uuid, flavor_key, split))

    def prune(self, keep_seconds: float) -> int:
        """Forget operations and splits that are older than `keep_seconds`; returns how many operations."""

        def work(session: Session) -> int:
            self._tables.splits.prune(session, keep_seconds)
            return self._tables.journal.prune(session, keep_seconds)

        return self._write(work)

    def _count(self, kind: str, arguments: dict[str, Any], work: Callable[[Session], dict[str, Any]]) -> int:
        """Journal a change of the controller's own under a fresh id: a retry after a lost commit is harmless."""
        return len(self._once(str(uuid4()), kind, arguments, work)["slices"])

    def _move(self, session: Session, items: Sequence[Slice], *events: SliceEvent, **target: Any) -> Moves:
        return self._tables.slices.move(session, items, *events, epoch=self.epoch, **target)

    def _belongs(self, session: Session, uuid: str, host: str) -> bool:
        """Return whether there is such an allocation; raises Conflict when it is another host's."""
        owner = self._tables.allocations.host_of(session, uuid)
        if owner not in (None, host):
            raise Conflict(f"allocation {uuid} belongs to host {owner}, not to {host}")
        return owner is not None

    def _check_still_held(self, session: Session, operation_id: str, uuid: str) -> None:
        """Raise Conflict when an allocation was released or set aside: no repetition gets its host into it again."""
        states = {item.state for item in self._tables.slices.of_allocation(session, uuid)}
        if not states:
            raise Conflict(f"the allocation of operation {operation_id} was released already; make a new operation id")
        if SliceState.QUARANTINED in states:
            raise Conflict(f"the allocation of operation {operation_id} was quarantined since; make a new operation id")
