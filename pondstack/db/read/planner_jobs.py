"""Reads of the planner's jobs in SQL: pondstack.ledger.reader.PlannerJobReader."""

from pondstack.db.connection.engine import Database
from pondstack.db.store import planner_jobs
from pondstack.domain.planner_job import PlannerJob, PlannerReport


class SqlPlannerJobs:
    """Each method is one read-only transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def jobs(
        self, *, state: str | None = None, limit: int | None = None, marker: str | None = None
    ) -> list[PlannerJob]:
        """List jobs, the newest first; raises NotFound for an unknown marker."""
        return self._database.read(
            lambda session: planner_jobs.records(session, state=state, limit=limit, marker=marker)
        )

    def job(self, uuid: str) -> PlannerJob:
        """Return one; raises NotFound."""
        return self._database.read(lambda session: planner_jobs.record(session, uuid))

    def report(self, uuid: str) -> PlannerReport:
        """Return the report of one; raises NotFound where there is none."""
        return self._database.read(lambda session: planner_jobs.report(session, uuid))
