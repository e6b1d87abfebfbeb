"""Read side of the ledger, for the API and for audits. Implemented by pondstack.db.read.reader.SqlReader."""

from datetime import datetime
from typing import Protocol

from pondstack.domain.consolidation_limits import ConsolidationLimits
from pondstack.domain.history import Decided, GuestCounters, Lifetime, NodeLabel, Selection
from pondstack.domain.plan import Plan
from pondstack.domain.planner_job import PlannerJob, PlannerReport
from pondstack.ledger.loan_records import LoanRecord, ShareRecord
from pondstack.ledger.qos_records import Performance, QosDecision, Reprediction
from pondstack.ledger.records import (
    AllocationRecord,
    BufferRecord,
    ControllerView,
    HostRecord,
    LeaderRecord,
    LenderRecord,
    MitigationRecord,
    ModelRecord,
    PoolRecord,
    ProjectRecord,
    SliceRecord,
    SplitRecord,
    TelemetryRecord,
)
from pondstack.ledger.store import Freeze


class HistoryReader(Protocol):
    """The history of instances."""

    def lifetimes(self, chosen: Selection) -> list[Lifetime]:
        """Return instances of the history, oldest first."""

    def lifetime(self, instance_uuid: str) -> Lifetime:
        """Return one instance of the history; raises NotFound."""

    def labels(self, instance_uuid: str) -> list[NodeLabel]:
        """Return what was seen of an instance's untouched memory, by node, all of it first; [] where nothing was."""

    def counters(self, since: datetime) -> list[GuestCounters]:
        """Return the counters of instances that were there at `since` or later."""

    def decided(self, since: datetime, min_coverage: float) -> list[Decided]:
        """Return the instances that models decided since, and what came of it.

        `min_coverage`: share of its life that must have been observed of one that has ended.
        """

    def complete_since(self) -> datetime | None:
        """Return from when on every instance is known, None: Nova's past was not read yet."""


class ModelReader(Protocol):
    """The prediction models, without their blobs."""

    def models(self, *, limit: int | None = None, marker: str | None = None) -> list[ModelRecord]:
        """List the models, the newest first; raises NotFound for an unknown marker."""

    def model(self, version: str) -> ModelRecord:
        """Return one model; raises NotFound."""


class QosReader(Protocol):
    """What the QoS monitor decided, what was predicted again, and what tenants measured."""

    def decisions(
        self,
        *,
        consumer_uuid: str | None = None,
        action: str | None = None,
        limit: int | None = None,
        marker: int | None = None,
    ) -> list[QosDecision]:
        """List decisions, the newest first; `marker`: an id. Raises NotFound for an unknown one."""

    def reprediction(self, consumer_uuid: str) -> Reprediction | None:
        """Return what was predicted again of a VM, None: nothing was."""

    def reclaimable(self) -> tuple[int, int]:
        """Return how many VMs were predicted again, and how many MiB more of them could come from the pool."""

    def performances(self, consumer_uuid: str | None = None) -> list[Performance]:
        """Return tenants' figures, of all instances or of one, with what decided their splits."""


class ProjectReader(Protocol):
    """What operators set per project."""

    def projects(self, *, limit: int | None = None, marker: str | None = None) -> list[ProjectRecord]:
        """List the projects that have something set, by id; raises NotFound for an unknown marker."""

    def project(self, project_id: str) -> ProjectRecord:
        """Return what is set for a project, which may be nothing."""


class LoanReader(Protocol):
    """What consumers have borrowed."""

    def loans(
        self,
        *,
        project_id: str | None = None,
        consumer_uuid: str | None = None,
        host: str | None = None,
        lender: str | None = None,
        guaranteed: bool | None = None,
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[LoanRecord]:
        """List loans by UUID; `host`: who borrows, `lender`: of whom. Raises NotFound for an unknown marker."""

    def loan(self, uuid: str) -> LoanRecord:
        """Return one loan; raises NotFound."""


class PlanReader(Protocol):
    """Consolidation plans."""

    def plans(self, *, state: str | None = None, limit: int | None = None, marker: str | None = None) -> list[Plan]:
        """List plans without their actions, the newest first; raises NotFound for an unknown marker."""

    def plan(self, uuid: str) -> Plan:
        """Return one with its actions; raises NotFound."""

    def frozen(self) -> Freeze | None:
        """Return since when consolidation is frozen, None: it is not."""

    def limits(self) -> ConsolidationLimits:
        """Return what is set at run time in place of options."""


class PlannerJobReader(Protocol):
    """Jobs of the planner."""

    def jobs(
        self, *, state: str | None = None, limit: int | None = None, marker: str | None = None
    ) -> list[PlannerJob]:
        """List jobs, the newest first; raises NotFound for an unknown marker."""

    def job(self, uuid: str) -> PlannerJob:
        """Return one; raises NotFound."""

    def report(self, uuid: str) -> PlannerReport:
        """Return the report of one; raises NotFound where there is none."""


class ShareReader(Protocol):
    """What instances have beside their hosts' own memory."""

    def shares(
        self,
        *,
        project_id: str | None = None,
        consumer_uuid: str | None = None,
        host: str | None = None,
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[ShareRecord]:
        """List shares by instance; `marker`: an instance. Raises NotFound for an unknown one."""

    def share(self, consumer_uuid: str) -> ShareRecord:
        """Return the share of one instance; raises NotFound."""


class Reader(Protocol):
    """Consistent reads; lists are ordered by key, `marker` is exclusive, `limit` None means all."""

    @property
    def history(self) -> HistoryReader:
        """What is known of instances, ended ones included."""

    @property
    def models(self) -> ModelReader:
        """The registry of prediction models."""

    @property
    def qos(self) -> QosReader:
        """The QoS monitor."""

    @property
    def projects(self) -> ProjectReader:
        """What operators set per project."""

    @property
    def loans(self) -> LoanReader:
        """What consumers have borrowed."""

    @property
    def plans(self) -> PlanReader:
        """Consolidation plans."""

    @property
    def planner_jobs(self) -> PlannerJobReader:
        """Jobs of the planner."""

    @property
    def shares(self) -> ShareReader:
        """What instances have beside local memory."""

    def ping(self) -> None:
        """Raise Unavailable when the database does not answer."""

    def leader(self) -> LeaderRecord:
        """Return the leadership row."""

    def controllers(self) -> list[ControllerView]:
        """List the controllers by name, those that are down too."""

    def pools(self, *, limit: int | None = None, marker: str | None = None) -> list[PoolRecord]:
        """List pools by uuid."""

    def pool(self, uuid_or_name: str) -> PoolRecord:
        """Return one pool; raises NotFound."""

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

    def slice(self, pool_uuid: str, index: int) -> SliceRecord:
        """Return one slice; raises NotFound."""

    def hosts(self, *, limit: int | None = None, marker: str | None = None) -> list[HostRecord]:
        """List hosts by name."""

    def host(self, name: str) -> HostRecord:
        """Return one host; raises NotFound."""

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

    def allocation(self, uuid: str) -> AllocationRecord:
        """Return one allocation; raises NotFound."""

    def lenders(self, *, limit: int | None = None, marker: str | None = None) -> list[LenderRecord]:
        """List the hosts that lend memory by name."""

    def lender(self, host: str) -> LenderRecord:
        """Return one; raises NotFound."""

    def buffers(
        self,
        lender: str,
        *,
        state: str | None = None,
        host: str | None = None,
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[BufferRecord]:
        """List the buffers of a lender by index; `host`: who borrows them; `marker`: index:incarnation.

        Raises NotFound for an unknown lender, BadRequest for a marker that is none.
        """

    def buffer(self, lender: str, index: int) -> BufferRecord:
        """Return one buffer; raises NotFound."""

    def borrowing_hosts(self, consumer_uuid: str) -> set[str]:
        """Return the hosts on which a consumer has borrowed lent memory."""

    def telemetry(
        self, consumer_uuid: str, *, history: str | None = None, metric: str | None = None, limit: int = 1000
    ) -> list[TelemetryRecord]:
        """Return what was measured of a guest: the newest of each metric and node, or, newest first, `history`.

        `history`: `samples` or `periods`. A guest that nobody measured, or that does not exist, has nothing.
        """

    def splits(
        self, *, project_id: str | None = None, limit: int | None = None, marker: str | None = None
    ) -> list[SplitRecord]:
        """List what instances, or those of a project, were placed with, by UUID; raises NotFound for a marker."""

    def split(self, instance_uuid: str) -> SplitRecord:
        """Return what an instance was placed with; raises NotFound."""

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
        """List mitigations, the newest first; `marker`: a UUID. Raises NotFound for an unknown one."""

    def mitigation(self, uuid: str) -> MitigationRecord:
        """Return one mitigation; raises NotFound."""
