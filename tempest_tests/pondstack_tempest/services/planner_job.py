"""Client of jobs of the planner."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class PlannerJobsClient(MemoryClient):
    """Replays of a cloud's history, and their reports."""

    def list_planner_jobs(self, **query: Any) -> Any:
        """List them, the newest first: `state`, `limit`, `marker`."""
        return self.read("/planner-jobs", **query)

    def show_planner_job(self, uuid: str) -> Any:
        """Show one."""
        return self.read(f"/planner-jobs/{uuid}")

    def show_planner_report(self, uuid: str) -> Any:
        """Fetch the report of one that has ended."""
        return self.read(f"/planner-jobs/{uuid}/report")

    def create_planner_job(self, **body: Any) -> Any:
        """Have one queued: `source`, `settings`, `operation_id` and what the source needs."""
        return self.change("POST", "/planner-jobs", 202, **body)

    def cancel_planner_job(self, uuid: str, **body: Any) -> Any:
        """Put an end to one: `operation_id`."""
        return self.change("POST", f"/planner-jobs/{uuid}/cancel", 202, **body)

    def remove_planner_job(self, uuid: str) -> Any:
        """Remove one that has ended."""
        return self.remove(f"/planner-jobs/{uuid}")
