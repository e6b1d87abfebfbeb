"""What agents measured, in SQL: samples as they came, periods that sum them up, and the end of both.

No part of the ledger: it is not fenced by the epoch, so that it never waits for the leadership row or keeps a renewal
of the lease waiting. A former leader's last batch is true all the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_db.exception import DBDuplicateEntry
from oslo_log import log
from sqlalchemy import ColumnClause, Select, delete, func, insert, literal_column, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.engine import Database
from pondstack.db.models import TelemetryRow, table
from pondstack.db.store import counters, labels
from pondstack.domain.telemetry import Source
from pondstack.ledger.records import TelemetryRecord
from pondstack.rpc.wire import Sample

LOG = log.getLogger(__name__)

WHOLE = -1
"""`node` of what concerns a guest as a whole."""
SAMPLES, PERIODS = "samples", "periods"
"""What history there is to read."""
SAMPLE = 0
"""`period_seconds` of samples as they came."""
LATE_SECONDS = 900
"""A sample that comes later than this after its period's end is not in it: three times the longest batch."""
AT_A_TIME_SECONDS = 3600
"""How much is summed up in one transaction."""
REASON_CHARACTERS = 255


@dataclass(frozen=True, slots=True)
class Retention:
    """How long samples and periods are kept, and how long a period is, in seconds.

    `gap_seconds`: the longest time between two looks at a guest that counts as observed.
    """

    samples_seconds: int
    period_seconds: int
    periods_seconds: int
    gap_seconds: int = 900


class Telemetry:
    """Writes and tidies the samples. Thread-safe; raises Unavailable when the database does not answer in time."""

    def __init__(self, database: Database, keeping: Callable[[], Retention], tidying: Database | None = None) -> None:
        """`tidying`: the same database with more time for each statement, for tidy()."""
        self._database = database
        self._tidying = tidying or database
        self._keeping = keeping

    def write(self, host: str, samples: Sequence[Sample]) -> None:
        """Keep a batch, and what it says of the instances' labels; one that came twice counts once."""
        if not samples:
            return
        try:
            self._database.write(lambda session: _write(session, host, samples, self._keeping().gap_seconds))
        except DBDuplicateEntry:
            LOG.info("A batch of %d samples of host %s came twice", len(samples), host)

    def tidy(self) -> None:
        """Sum up the periods that are complete, forget what is old."""
        keeping = self._keeping()
        try:
            while self._tidying.write(lambda session: sum_up(session, keeping.period_seconds)):
                pass
        except DBDuplicateEntry:
            LOG.info("Another controller has summed up the same periods")
        self._tidying.write(lambda session: _prune(session, keeping))


def records(
    session: Session, consumer_uuid: str, *, history: str | None, metric: str | None, limit: int
) -> list[TelemetryRecord]:
    """Return what was measured of a guest; see pondstack.ledger.reader.Reader.telemetry."""
    row = TelemetryRow
    mine = [
        row.consumer_uuid == consumer_uuid,
        row.period_seconds > SAMPLE if history == PERIODS else row.period_seconds == SAMPLE,
    ]
    if metric is not None:
        mine.append(row.metric == metric)
    query = select(row).where(*mine).order_by(row.taken_at.desc(), row.metric, row.node, row.host).limit(limit)
    if history is None:
        newest = (
            select(row.metric, row.node, func.max(row.taken_at).label("taken_at"))
            .where(*mine)
            .group_by(row.metric, row.node)
            .subquery()
        )
        same = (newest.c.metric == row.metric) & (newest.c.node == row.node) & (newest.c.taken_at == row.taken_at)
        query = select(row).join(newest, same).where(*mine).order_by(row.metric, row.node, row.host).limit(limit)
    return [_record(item) for item in session.execute(query).scalars()]


def _record(row: TelemetryRow) -> TelemetryRecord:
    return TelemetryRecord(
        metric=row.metric,
        node=None if row.node == WHOLE else row.node,
        host=row.host,
        taken_at=row.taken_at,
        period_seconds=row.period_seconds,
        readings=row.readings,
        minimum=row.minimum,
        mean=row.mean,
        maximum=row.maximum,
        reason=row.reason,
        source=row.source,
    )


def _write(session: Session, host: str, samples: Sequence[Sample], gap_seconds: int) -> None:
    now = _now(session)
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for sample in samples:
        row = {
            "consumer_uuid": sample.consumer_uuid,
            "period_seconds": SAMPLE,
            "taken_at": int(now - max(0.0, sample.age_seconds)),
            "metric": sample.metric,
            "node": WHOLE if sample.node is None else sample.node,
            "host": host,
            "readings": sample.readings,
            "minimum": sample.minimum,
            "mean": sample.mean,
            "maximum": sample.maximum,
            "reason": sample.reason[:REASON_CHARACTERS],
            "source": Source.MEASURED if sample.source == Source.MEASURED else Source.SYNTHETIC,
        }
        rows[row["consumer_uuid"], row["taken_at"], row["metric"], row["node"]] = row
    session.execute(insert(table(TelemetryRow)), list(rows.values()))
    labels.fold(session, list(rows.values()), gap_seconds)


def sum_up(session: Session, period_seconds: int) -> bool:
    """Make the next periods from samples, AT_A_TIME_SECONDS at most; returns whether there may be more to make."""
    rows = table(TelemetryRow)
    start = _next_start(session, period_seconds)
    oldest = session.execute(_oldest(start)).scalar_one_or_none()
    if oldest is None:
        return False
    start = _begin(oldest, period_seconds)
    complete = _begin(_now(session) - LATE_SECONDS, period_seconds)
    end = min(complete, start + max(period_seconds, _begin(AT_A_TIME_SECONDS, period_seconds)))
    if end <= start:
        return False
    columns = [column.name for column in rows.columns]
    session.execute(insert(rows).from_select(columns, _summed(period_seconds, start, end)))
    counters.fold(session, period_seconds, start, end, WHOLE)
    return end < complete


def _oldest(start: int) -> Select[tuple[int]]:
    """Return how to find the oldest sample with a value since a moment.

    Not by min(): for that MariaDB reads all samples since, since the index does not have `readings`.
    """
    rows = table(TelemetryRow)
    mine = rows.c.period_seconds == SAMPLE, rows.c.taken_at >= start, rows.c.readings > 0
    return select(rows.c.taken_at).where(*mine).order_by(rows.c.period_seconds, rows.c.taken_at).limit(1)


def _next_start(session: Session, period_seconds: int) -> int:
    """Return the moment up to which periods of this length were made."""
    rows = table(TelemetryRow)
    query = select(func.max(rows.c.taken_at)).where(rows.c.period_seconds == period_seconds)
    newest: int | None = session.execute(query).scalar_one()
    return 0 if newest is None else newest + period_seconds


def _summed(period_seconds: int, start: int, end: int) -> Select[Any]:
    """Return the rows of the periods from `start` to `end`, in the order of the table's columns."""
    rows = table(TelemetryRow)
    # Not a bound value: PostgreSQL would not take the expression for the one that it groups by.
    period: ColumnClause[int] = literal_column(str(int(period_seconds)))
    begin = rows.c.taken_at - rows.c.taken_at % period
    readings = func.sum(rows.c.readings)
    return (
        select(
            rows.c.consumer_uuid,
            period,
            begin,
            rows.c.metric,
            rows.c.node,
            rows.c.host,
            readings,
            func.min(rows.c.minimum),
            func.sum(rows.c.mean * rows.c.readings) / readings,
            func.max(rows.c.maximum),
            literal_column("''"),
            func.max(rows.c.source),
        )
        .where(rows.c.period_seconds == SAMPLE, rows.c.readings > 0, rows.c.taken_at >= start, rows.c.taken_at < end)
        .group_by(rows.c.consumer_uuid, begin, rows.c.metric, rows.c.node, rows.c.host)
    )


def _begin(moment: int, period_seconds: int) -> int:
    """Return the begin of the period that a moment is in."""
    return moment - moment % period_seconds


def _now(session: Session) -> int:
    return int(session.execute(select(now_seconds())).scalar_one())


def _prune(session: Session, keeping: Retention) -> None:
    rows = table(TelemetryRow)
    now = _now(session)
    # Until housekeeping, which comes now and then, has seen their period complete.
    needed = keeping.period_seconds + 2 * LATE_SECONDS
    for which, seconds in (
        (rows.c.period_seconds == SAMPLE, max(keeping.samples_seconds, needed)),
        (rows.c.period_seconds > SAMPLE, keeping.periods_seconds),
    ):
        session.execute(delete(rows).where(which, rows.c.taken_at < now - seconds))
