"""Reads of consolidation plans in SQL: pondstack.ledger.reader.PlanReader."""

from pondstack.db.connection.engine import Database
from pondstack.db.store import plans
from pondstack.domain.consolidation_limits import ConsolidationLimits
from pondstack.domain.plan import Plan
from pondstack.ledger.store import Freeze


class SqlPlans:
    """Each method is one read-only transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def plans(self, *, state: str | None = None, limit: int | None = None, marker: str | None = None) -> list[Plan]:
        """List plans without their actions, the newest first; raises NotFound for an unknown marker."""
        return self._database.read(lambda session: plans.records(session, state=state, limit=limit, marker=marker))

    def plan(self, uuid: str) -> Plan:
        """Return one with its actions; raises NotFound."""
        return self._database.read(lambda session: plans.record(session, uuid))

    def frozen(self) -> Freeze | None:
        """Return since when consolidation is frozen, None: it is not."""
        return self._database.read(plans.frozen)

    def limits(self) -> ConsolidationLimits:
        """Return what is set at run time in place of options."""
        return self._database.read(plans.limits)
