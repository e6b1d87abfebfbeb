"""Read side of the ledger in SQL: pondstack.ledger.reader.Reader for the API and for audits."""

from dataclasses import replace
from typing import Any

from oslo_config import cfg
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from pondstack.conf import controller as options
from pondstack.conf import ha as ha_options
from pondstack.conf import prediction as prediction_options
from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.engine import Database
from pondstack.db.models import AllocationRow, HostRow, Leadership, PoolRow, SliceRow
from pondstack.db.read import heirs, lending
from pondstack.db.read.history import SqlHistory
from pondstack.db.read.loans import SqlLoans
from pondstack.db.read.models import SqlModels
from pondstack.db.read.planner_jobs import SqlPlannerJobs
from pondstack.db.read.plans import SqlPlans
from pondstack.db.read.project_settings import SqlProjects
from pondstack.db.read.qos import SqlQos
from pondstack.db.read.rack import read_rack
from pondstack.db.read.records import allocation_records, host_records, pool_records, slice_query, slice_record
from pondstack.db.read.shares import SqlShares
from pondstack.db.store import controllers, mitigations, splits, telemetry
from pondstack.db.store.leadership import ROW
from pondstack.domain.errors import NotFound
from pondstack.domain.rack import RackView
from pondstack.ledger.reader import (
    HistoryReader,
    LoanReader,
    ModelReader,
    PlannerJobReader,
    PlanReader,
    ProjectReader,
    QosReader,
    ShareReader,
)
from pondstack.ledger.records import (
    AllocationRecord,
    BufferRecord,
    ControllerView,
    HostRecord,
    LeaderRecord,
    LenderRecord,
    MitigationRecord,
    PoolRecord,
    SliceRecord,
    SplitRecord,
    TelemetryRecord,
)


class SqlReader:
    """Each method is one read-only transaction.

    `agent_down_seconds`, `node_down_seconds`: silence after which a host is not up, and a controller is down.
    `gap_seconds`: as [prediction] has it.
    """

    def __init__(
        self,
        database: Database,
        agent_down_seconds: float = 20.0,
        node_down_seconds: float = 5.0,
        gap_seconds: int = 900,
    ) -> None:
        self._database = database
        self.history: HistoryReader = SqlHistory(database, gap_seconds)
        self.models: ModelReader = SqlModels(database)
        self.projects: ProjectReader = SqlProjects(database)
        self.qos: QosReader = SqlQos(database)
        self.loans: LoanReader = SqlLoans(database)
        self.shares: ShareReader = SqlShares(database)
        self.plans: PlanReader = SqlPlans(database)
        self.planner_jobs: PlannerJobReader = SqlPlannerJobs(database)
        self._down = agent_down_seconds
        self._node_down = node_down_seconds

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> "SqlReader":
        """Read the database of the [database] section; registers what it needs."""
        options.register_opts(conf)
        ha_options.register_opts(conf)
        prediction_options.register_opts(conf)
        silent = (conf.controller.agent_down_seconds, conf.ha.node_down_seconds)
        return cls(Database.from_conf(conf), *silent, conf.prediction.gap_seconds)

    def rack(self, *, lent: bool = False) -> RackView:
        """Return the whole ledger at one moment; with `lent` what hosts lend, too."""
        if not lent:
            return self._database.read(read_rack)
        return self._database.read(lambda session: replace(read_rack(session), lent=lending.read_lent(session)))

    def ping(self) -> None:
        """Raise Unavailable when the database does not answer."""
        self._database.ping()

    def leader(self) -> LeaderRecord:
        """Return the leadership row."""
        return self._database.read(_leader)

    def controllers(self) -> list[ControllerView]:
        """List the controllers by name, those that are down too."""
        return self._database.read(lambda session: controllers.views(session, self._node_down))

    def heirs_strangers(self, pool_uuid: str) -> list[str]:
        """Return which hosts of a pool, and controllers, do not know what an heir is: for people."""
        return self._database.read(lambda session: heirs.strangers(session, pool_uuid))

    def pools(self, *, limit: int | None = None, marker: str | None = None) -> list[PoolRecord]:
        """List pools by uuid; raises NotFound for an unknown marker."""

        def work(session: Session) -> list[PoolRecord]:
            _need(session, PoolRow, marker, "pool")
            query = _page(select(PoolRow), PoolRow.uuid, marker, limit)
            return pool_records(session, list(session.execute(query).scalars()))

        return self._database.read(work)

    def pool(self, uuid_or_name: str) -> PoolRecord:
        """Return one pool; raises NotFound."""

        def work(session: Session) -> PoolRecord:
            query = select(PoolRow).where((PoolRow.uuid == uuid_or_name) | (PoolRow.name == uuid_or_name))
            row = session.execute(query.limit(1)).scalar()
            if row is None:
                raise NotFound(f"there is no pool {uuid_or_name}; list the pools")
            return pool_records(session, [row])[0]

        return self._database.read(work)

    def slices(
        self,
        pool_uuid: str,
        *,
        state: str | None = None,
        host: str | None = None,
        limit: int | None = None,
        marker: int | None = None,
    ) -> list[SliceRecord]:
        """List the slices of a pool by index; raises NotFound for an unknown pool or marker."""

        def work(session: Session) -> list[SliceRecord]:
            _need(session, PoolRow, pool_uuid, "pool")
            if marker is not None:
                _need(session, SliceRow, (pool_uuid, marker), "slice")
            query = slice_query().where(SliceRow.pool_uuid == pool_uuid)
            if state is not None:
                query = query.where(SliceRow.state == state)
            if host is not None:
                query = query.where(SliceRow.host == host)
            return [slice_record(*row) for row in session.execute(_page(query, SliceRow.index, marker, limit))]

        return self._database.read(work)

    def slice(self, pool_uuid: str, index: int) -> SliceRecord:
        """Return one slice; raises NotFound."""

        def work(session: Session) -> SliceRecord:
            query = slice_query().where(SliceRow.pool_uuid == pool_uuid, SliceRow.index == index)
            row = session.execute(query).one_or_none()
            if row is None:
                raise NotFound(f"there is no slice {index} in pool {pool_uuid}; list the slices of the pool")
            return slice_record(*row)

        return self._database.read(work)

    def hosts(self, *, limit: int | None = None, marker: str | None = None) -> list[HostRecord]:
        """List hosts by name; raises NotFound for an unknown marker."""

        def work(session: Session) -> list[HostRecord]:
            _need(session, HostRow, marker, "host")
            query = _page(select(HostRow, now_seconds()), HostRow.name, marker, limit)
            return host_records(session, [tuple(row) for row in session.execute(query)], self._down)

        return self._database.read(work)

    def host(self, name: str) -> HostRecord:
        """Return one host; raises NotFound."""

        def work(session: Session) -> HostRecord:
            row = session.execute(select(HostRow, now_seconds()).where(HostRow.name == name)).one_or_none()
            if row is None:
                raise NotFound(f"there is no host {name}; its agent has never reported")
            return host_records(session, [tuple(row)], self._down)[0]

        return self._database.read(work)

    def allocations(
        self,
        *,
        project_id: str | None = None,
        consumer_uuid: str | None = None,
        host: str | None = None,
        pool_uuid: str | None = None,
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[AllocationRecord]:
        """List allocations by uuid; raises NotFound for an unknown marker."""

        def work(session: Session) -> list[AllocationRecord]:
            _need_allocation(session, marker, project_id)
            query = select(AllocationRow, PoolRow).join(PoolRow, PoolRow.uuid == AllocationRow.pool_uuid)
            wanted = {
                AllocationRow.project_id: project_id,
                AllocationRow.consumer_uuid: consumer_uuid,
                AllocationRow.host: host,
                AllocationRow.pool_uuid: pool_uuid,
            }
            for column, value in wanted.items():
                if value is not None:
                    query = query.where(column == value)
            rows = [tuple(row) for row in session.execute(_page(query, AllocationRow.uuid, marker, limit))]
            return allocation_records(session, rows)

        return self._database.read(work)

    def allocation(self, uuid: str) -> AllocationRecord:
        """Return one allocation; raises NotFound."""

        def work(session: Session) -> AllocationRecord:
            query = select(AllocationRow, PoolRow).join(PoolRow, PoolRow.uuid == AllocationRow.pool_uuid)
            row = session.execute(query.where(AllocationRow.uuid == uuid)).one_or_none()
            if row is None:
                raise NotFound(f"there is no allocation {uuid}; list the allocations")
            return allocation_records(session, [tuple(row)])[0]

        return self._database.read(work)

    def lenders(self, *, limit: int | None = None, marker: str | None = None) -> list[LenderRecord]:
        """List the hosts that lend memory by name; raises NotFound for an unknown marker."""
        return self._database.read(lambda session: lending.lenders(session, None, limit, marker))

    def lender(self, host: str) -> LenderRecord:
        """Return one; raises NotFound."""
        return self._database.read(lambda session: lending.lender(session, host))

    def buffers(
        self,
        lender: str,
        *,
        state: str | None = None,
        host: str | None = None,
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[BufferRecord]:
        """List the buffers of a lender by index; raises NotFound, BadRequest."""
        return self._database.read(lambda session: lending.buffers(session, lender, state, host, limit, marker))

    def buffer(self, lender: str, index: int) -> BufferRecord:
        """Return one buffer; raises NotFound."""
        return self._database.read(lambda session: lending.buffer(session, lender, index))

    def borrowing_hosts(self, consumer_uuid: str) -> set[str]:
        """Return the hosts on which a consumer has borrowed."""
        return self._database.read(lambda session: lending.borrowing_hosts(session, consumer_uuid))

    def telemetry(
        self, consumer_uuid: str, *, history: str | None = None, metric: str | None = None, limit: int = 1000
    ) -> list[TelemetryRecord]:
        """Return what was measured of a guest; see Reader.telemetry."""
        return self._database.read(
            lambda session: telemetry.records(session, consumer_uuid, history=history, metric=metric, limit=limit)
        )

    def splits(
        self, *, project_id: str | None = None, limit: int | None = None, marker: str | None = None
    ) -> list[SplitRecord]:
        """List splits by the instances' UUIDs."""
        return self._database.read(
            lambda session: splits.records(session, project_id=project_id, limit=limit, marker=marker)
        )

    def split(self, instance_uuid: str) -> SplitRecord:
        """Return what an instance was placed with; raises NotFound."""
        return self._database.read(lambda session: splits.record(session, instance_uuid))

    def mitigations(
        self,
        *,
        consumer: str | None = None,
        host: str | None = None,
        project_id: str | None = None,
        open_only: bool = False,
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[MitigationRecord]:
        """List mitigations, the newest first; raises NotFound for an unknown marker."""
        chosen = {"consumer_uuid": consumer, "host": host, "project_id": project_id}
        return self._database.read(
            lambda session: mitigations.records(session, chosen, open_only=open_only, limit=limit, marker=marker)
        )

    def mitigation(self, uuid: str) -> MitigationRecord:
        """Return one mitigation; raises NotFound."""
        return self._database.read(lambda session: mitigations.record(session, uuid))


def _need(session: Session, model: Any, key: Any, noun: str) -> None:
    if key is not None and session.get(model, key) is None:
        raise NotFound(f"there is no {noun} {key}; start again without a marker")


def _need_allocation(session: Session, marker: str | None, project_id: str | None) -> None:
    """As _need. To one project, another's allocation is as unknown as one that does not exist."""
    row = None if marker is None else session.get(AllocationRow, marker)
    if marker is not None and (row is None or project_id not in (None, row.project_id)):
        raise NotFound(f"there is no allocation {marker}; start again without a marker")


def _page(query: Select[Any], key: Any, marker: Any, limit: int | None) -> Select[Any]:
    query = query.order_by(key)
    if marker is not None:
        query = query.where(key > marker)
    return query if limit is None else query.limit(limit)


def _leader(session: Session) -> LeaderRecord:
    row = session.execute(
        select(Leadership.epoch, Leadership.holder, now_seconds() - Leadership.renewed_at).where(Leadership.id == ROW)
    ).one()
    return LeaderRecord(row[0], row[1], max(0.0, row[2]))
