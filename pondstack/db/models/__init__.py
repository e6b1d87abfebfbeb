"""Tables of the ledger. SQLite, MariaDB and PostgreSQL; times are the database's own clock, in seconds since the epoch.

Only pondstack.db knows SQL. Every change of the ledger is one transaction that first checks the writer's epoch.
"""

from pondstack.db.models.base import BLOB, NAME, UUID, Base, table
from pondstack.db.models.host_sleeps import HostSleepRow
from pondstack.db.models.instances import (
    CounterRow,
    HistoryRow,
    InstanceRow,
    LabelRow,
    ModelRow,
    ProjectSettingsRow,
    SplitRow,
    TelemetryRow,
)
from pondstack.db.models.mitigations import MitigationRow
from pondstack.db.models.notices import TransitionNoticeRow
from pondstack.db.models.planner_jobs import PlannerJobRow, PlannerReportRow
from pondstack.db.models.plans import ConsolidationLimitsRow, FreezeRow, HostTelemetryRow, PlanActionRow, PlanRow
from pondstack.db.models.qos import MitigationNoticeRow, PerformanceRow, QosDecisionRow, RepredictionRow
from pondstack.db.models.rack import (
    AllocationRow,
    BufferRow,
    ControllerRow,
    EscrowedKeyRow,
    HoldingRow,
    HostPoolRow,
    HostRow,
    Leadership,
    LenderRow,
    LendRow,
    OperationRow,
    PoolRow,
    RemoteAllocationRow,
    RevocationRow,
    SliceRow,
)

__all__ = [
    "BLOB",
    "NAME",
    "UUID",
    "AllocationRow",
    "Base",
    "BufferRow",
    "ConsolidationLimitsRow",
    "ControllerRow",
    "CounterRow",
    "EscrowedKeyRow",
    "FreezeRow",
    "HistoryRow",
    "HoldingRow",
    "HostPoolRow",
    "HostRow",
    "HostSleepRow",
    "HostTelemetryRow",
    "InstanceRow",
    "LabelRow",
    "Leadership",
    "LendRow",
    "LenderRow",
    "MitigationNoticeRow",
    "MitigationRow",
    "ModelRow",
    "OperationRow",
    "PerformanceRow",
    "PlanActionRow",
    "PlanRow",
    "PlannerJobRow",
    "PlannerReportRow",
    "PoolRow",
    "ProjectSettingsRow",
    "QosDecisionRow",
    "RemoteAllocationRow",
    "RepredictionRow",
    "RevocationRow",
    "SliceRow",
    "SplitRow",
    "TelemetryRow",
    "TransitionNoticeRow",
    "table",
]
