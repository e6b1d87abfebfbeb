"""The QoS monitor's rows, read; see pondstack.ledger.reader.QosReader."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.db.models import PerformanceRow, SplitRow
from pondstack.db.store import qos, repredictions
from pondstack.ledger.qos_records import Performance, QosDecision, Reprediction


class SqlQos:
    """Each method is one read-only transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def decisions(
        self,
        *,
        consumer_uuid: str | None = None,
        action: str | None = None,
        limit: int | None = None,
        marker: int | None = None,
    ) -> list[QosDecision]:
        """List decisions, the newest first; raises NotFound for an unknown marker."""
        return self._database.read(
            lambda session: qos.decisions(
                session, consumer_uuid=consumer_uuid, action=action, limit=limit, marker=marker
            )
        )

    def reprediction(self, consumer_uuid: str) -> Reprediction | None:
        """Return what was predicted again of a VM."""
        return self._database.read(lambda session: repredictions.find(session, consumer_uuid))

    def reclaimable(self) -> tuple[int, int]:
        """Return how many VMs were predicted again, and how many MiB more could come from the pool."""
        return self._database.read(repredictions.totals)

    def performances(self, consumer_uuid: str | None = None) -> list[Performance]:
        """Return tenants' figures."""
        return self._database.read(lambda session: _performances(session, consumer_uuid))


def _performances(session: Session, consumer_uuid: str | None) -> list[Performance]:
    row = PerformanceRow
    query = select(row, SplitRow.source).outerjoin(SplitRow, SplitRow.instance_uuid == row.consumer_uuid)
    if consumer_uuid is not None:
        query = query.where(row.consumer_uuid == consumer_uuid)
    return [
        Performance(
            one.consumer_uuid,
            one.metric,
            one.higher_is_better,
            one.readings,
            one.mean,
            one.newest,
            one.updated_at,
            source or "",
        )
        for one, source in session.execute(query.order_by(row.consumer_uuid, row.metric))
    ]
