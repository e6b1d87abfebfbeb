"""Reads of instances' shares: pondstack.ledger.reader.ShareReader. What is lent and assigned is the ledger's word.

What a flavor wants of remote memory is only known to the agent of its host, which reports it.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.db.models import AllocationRow, BufferRow, HostRow, LenderRow, RemoteAllocationRow
from pondstack.domain.errors import NotFound
from pondstack.domain.states import OWNED
from pondstack.ledger.loan_records import ShareRecord


class _Part(NamedTuple):
    """What one source says of an instance on a host; None: the amount is not known."""

    consumer_uuid: str
    host: str
    project_id: str
    amounts: dict[str, int | None]


class SqlShares:
    """Each method is one read-only transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def shares(
        self,
        *,
        project_id: str | None = None,
        consumer_uuid: str | None = None,
        host: str | None = None,
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[ShareRecord]:
        """List shares by instance; raises NotFound for an unknown marker."""
        found = [
            share
            for share in self._database.read(lambda session: _shares(session, consumer_uuid))
            if project_id in (None, share.project_id) and (host is None or host in share.hosts)
        ]
        if marker is not None:
            if marker not in {share.consumer_uuid for share in found}:
                raise NotFound(f"there is no share of instance {marker}; start again without a marker")
            found = [share for share in found if share.consumer_uuid > marker]
        return found[:limit]

    def share(self, consumer_uuid: str) -> ShareRecord:
        """Return that of one instance; raises NotFound."""
        found = self.shares(consumer_uuid=consumer_uuid)
        if not found:
            raise NotFound(f"instance {consumer_uuid} has nothing beside its host's own memory")
        return found[0]


def _shares(session: Session, consumer_uuid: str | None) -> list[ShareRecord]:
    parts: dict[str, list[_Part]] = defaultdict(list)
    for source in (_pool, _lent, _reported):
        for part in source(session, consumer_uuid):
            parts[part.consumer_uuid].append(part)
    return [_share(uuid, parts[uuid]) for uuid in sorted(parts)]


def _share(consumer_uuid: str, parts: list[_Part]) -> ShareRecord:
    """Add up what all sources say of an instance. It has more than one host while it is moved."""
    sums: dict[str, int | None] = {}
    for part in parts:
        for name, mib in part.amounts.items():
            before = sums.get(name, 0)
            sums[name] = None if mib is None or before is None else before + mib
    for lent, wanted in (("remote_lent_mib", "remote_mib"), ("swap_lent_mib", "swap_mib")):
        if lent in sums:
            sums.setdefault(wanted, None)
    if sums.get("remote_mib", 0) is None:
        sums.setdefault("disk_mib", None)
    project_id = next((part.project_id for part in parts if part.project_id), "")
    hosts = tuple(sorted({part.host for part in parts}))
    return ShareRecord(consumer_uuid, project_id, hosts, **sums)  # type: ignore[arg-type]


def _of(query: Select[Any], column: Any, consumer_uuid: str | None) -> Select[Any]:
    return query if consumer_uuid is None else query.where(column == consumer_uuid)


def _pool(session: Session, consumer_uuid: str | None) -> Iterator[_Part]:
    rows = AllocationRow
    query = select(rows.consumer_uuid, rows.host, rows.project_id, rows.pool_mib).where(rows.purpose == "guest")
    for uuid, host, project_id, mib in session.execute(_of(query, rows.consumer_uuid, consumer_uuid)):
        yield _Part(uuid, host, project_id, {"pool_mib": mib})


def _lent(session: Session, consumer_uuid: str | None) -> Iterator[_Part]:
    rows = RemoteAllocationRow
    key = (rows.consumer_uuid, rows.host, rows.project_id, rows.guaranteed)
    query = (
        select(*key, func.sum(LenderRow.buffer_mib))
        .join(BufferRow, BufferRow.allocation_uuid == rows.uuid)
        .join(LenderRow, LenderRow.host == BufferRow.lender)
        .where(BufferRow.state.in_(sorted(OWNED)))
        .group_by(*key)
    )
    for uuid, host, project_id, guaranteed, mib in session.execute(_of(query, rows.consumer_uuid, consumer_uuid)):
        name = "remote_lent_mib" if guaranteed else "swap_lent_mib"
        yield _Part(uuid, host, project_id, {name: int(mib)})


def _reported(session: Session, consumer_uuid: str | None) -> Iterator[_Part]:
    """Yield what agents report; what a fenced host said last is over."""
    query = select(HostRow.name, HostRow.borrowed).where(HostRow.fenced_at.is_(None), HostRow.borrowed.is_not(None))
    for host, borrowed in session.execute(query):
        for told in (borrowed or {}).get("shares", ()):
            if consumer_uuid in (None, told["consumer_uuid"]):
                memory = {"remote_mib": told["mib"], "disk_mib": told.get("disk_mib")}
                amounts = memory if told["guaranteed"] else {"swap_mib": told["mib"]}
                yield _Part(told["consumer_uuid"], host, told["project_id"], amounts)
