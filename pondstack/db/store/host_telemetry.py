"""What hosts measured of themselves, in SQL, and the newest of what consolidation needs of guests.

No part of the ledger, as pondstack.db.store.telemetry.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from oslo_db.exception import DBDuplicateEntry
from oslo_log import log
from sqlalchemy import delete, func, insert, select, tuple_
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.engine import Database
from pondstack.db.models import HostTelemetryRow, TelemetryRow, table
from pondstack.db.store.telemetry import SAMPLE, WHOLE
from pondstack.domain.telemetry import Source
from pondstack.rpc.wire import HostReading

LOG = log.getLogger(__name__)


class Told(NamedTuple):
    """A reading, the seconds since it was taken, and where it comes from."""

    value: float
    age_seconds: float
    source: str


class HostTelemetry:
    """Writes and tidies hosts' readings. Thread-safe; raises Unavailable."""

    def __init__(self, database: Database, keep_seconds: Callable[[], int]) -> None:
        self._database, self._keep_seconds = database, keep_seconds

    def write(self, host: str, readings: Sequence[HostReading]) -> None:
        """Keep a host's readings; a batch that came twice counts once."""
        if not readings:
            return
        try:
            self._database.write(lambda session: _write(session, host, readings))
        except DBDuplicateEntry:
            LOG.info("A batch of readings of host %s came twice", host)

    def tidy(self) -> None:
        """Forget what is old, but the newest reading of each metric of a host: one that sleeps tells nothing more."""
        rows, keep = table(HostTelemetryRow), self._keep_seconds()
        key = (rows.c.host, rows.c.metric)
        newest = select(*key, func.max(rows.c.taken_at).label("taken_at")).group_by(*key).subquery()
        superseded = tuple_(*key, rows.c.taken_at).not_in(select(newest.c.host, newest.c.metric, newest.c.taken_at))
        old = rows.c.taken_at < now_seconds() - keep
        self._database.write(lambda session: session.execute(delete(rows).where(old, superseded)).close())

    def hosts(self) -> dict[str, dict[str, list[Told]]]:
        """Return all that is kept, by host and metric, the newest last."""
        return self._database.read(_hosts)

    def guests(self, metrics: Sequence[str], seconds: float) -> dict[str, dict[str, Told]]:
        """Return the newest of some metrics of guests as a whole, by guest, if it is not older than that."""
        return self._database.read(lambda session: _guests(session, metrics, seconds))


def _write(session: Session, host: str, readings: Sequence[HostReading]) -> None:
    now = float(session.execute(select(now_seconds())).scalar_one())
    rows = {
        (item.metric, int(now - max(0.0, item.age_seconds))): {
            "host": host,
            "metric": item.metric,
            "taken_at": int(now - max(0.0, item.age_seconds)),
            "value": item.value,
            "source": Source.MEASURED if item.source == Source.MEASURED else Source.SYNTHETIC,
        }
        for item in readings
    }
    session.execute(insert(table(HostTelemetryRow)), list(rows.values()))


def _hosts(session: Session) -> dict[str, dict[str, list[Told]]]:
    rows = table(HostTelemetryRow)
    now = float(session.execute(select(now_seconds())).scalar_one())
    found: dict[str, dict[str, list[Told]]] = {}
    for row in session.execute(select(rows).order_by(rows.c.taken_at)):
        told = Told(row.value, max(0.0, now - row.taken_at), row.source)
        found.setdefault(row.host, {}).setdefault(row.metric, []).append(told)
    return found


def _guests(session: Session, metrics: Sequence[str], seconds: float) -> dict[str, dict[str, Told]]:
    rows = table(TelemetryRow)
    now = float(session.execute(select(now_seconds())).scalar_one())
    mine = [
        rows.c.period_seconds == SAMPLE,
        rows.c.node == WHOLE,
        rows.c.metric.in_(list(metrics)),
        rows.c.readings > 0,
        rows.c.taken_at >= int(now - seconds),
    ]
    newest = (
        select(rows.c.consumer_uuid, rows.c.metric, func.max(rows.c.taken_at).label("taken_at"))
        .where(*mine)
        .group_by(rows.c.consumer_uuid, rows.c.metric)
        .subquery()
    )
    same = (
        (newest.c.consumer_uuid == rows.c.consumer_uuid)
        & (newest.c.metric == rows.c.metric)
        & (newest.c.taken_at == rows.c.taken_at)
    )
    query = select(rows.c.consumer_uuid, rows.c.metric, rows.c.mean, rows.c.taken_at, rows.c.source)
    found: dict[str, dict[str, Told]] = {}
    for uuid, metric, mean, taken_at, source in session.execute(query.join(newest, same).where(*mine)):
        found.setdefault(uuid, {})[metric] = Told(mean, max(0.0, now - taken_at), source)
    return found
