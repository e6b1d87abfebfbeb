"""Jobs of the planner: a replay that the controllers run in the background, its progress, and its report."""

from typing import Any

from pondstack.domain.errors import BadRequest
from pondstack.domain.planner_job import PlannerJob
from pondstack.planner.job.order import Source
from pondstack_api import render
from pondstack_api.pagination import page
from pondstack_api.request import Reply, Request

FAILURES_SINCE = (1, 24)
FAILURES = frozenset({"host_failures_per_year", "pool_failures_per_year", "repair_hours"})


def body(job: PlannerJob) -> dict[str, Any]:
    """Return a job as the API shows it."""
    return {
        "uuid": job.uuid,
        "state": str(job.state),
        "order": dict(job.order),
        "synthetic": job.order.get("source") == Source.GENERATED,
        "user_id": job.user_id or None,
        "project_id": job.project_id or None,
        "done": job.done,
        "total": job.total,
        "tries": job.tries,
        "controller": job.controller or None,
        "reason": job.reason,
        "summary": job.summary,
        "created_at": render.time(job.created_at),
        "begun_at": None if job.begun_at is None else render.time(job.begun_at),
        "ended_at": None if job.ended_at is None else render.time(job.ended_at),
    }


def list_planner_jobs(request: Request) -> Reply:
    """List jobs of the planner, the newest first."""
    query, jobs = request.query, request.services.reader.planner_jobs
    return page(
        request,
        "planner-jobs",
        "/planner-jobs",
        lambda limit: jobs.jobs(state=query.get("state"), limit=limit, marker=query.get("marker")),
        lambda job: job.uuid,
        body,
    )


def show_planner_job(request: Request) -> Reply:
    """Show a job with its progress, and its summary once it has ended."""
    return _shown(request, request.args["job"])


def create_planner_job(request: Request) -> Reply:
    """Have a history replayed, in the background, one job at a time. 409 where jobs are off or too many wait."""
    order = dict(request.body)
    if request.version < FAILURES_SINCE and (late := sorted(FAILURES & set(order.get("settings", {})))):
        raise BadRequest(f"body settings: {late[0]} came with memory 1.24; leave it out, or ask for that microversion")
    operation_id = order.pop("operation_id", None)
    context = request.context
    told = request.services.controller.create_planner_job(
        order=order,
        user_id=context.user_id or "",
        project_id=context.project_id or "",
        operation_id=operation_id,
    )
    return _shown(request, told["uuid"])


def cancel_planner_job(request: Request) -> Reply:
    """Put an end to a job: its process is killed within seconds, and nothing is kept; 409 where it has ended."""
    uuid = request.args["job"]
    request.services.controller.cancel_planner_job(uuid=uuid, operation_id=request.body.get("operation_id"))
    return _shown(request, uuid)


def remove_planner_job(request: Request) -> Reply:
    """Remove a job that has ended, and its report; 409 where it has not ended."""
    request.services.controller.remove_planner_job(uuid=request.args["job"])
    return Reply(None)


def show_planner_report(request: Request) -> Reply:
    """Fetch the report of a job that has ended: all answers, and the page; 404 where there is none."""
    uuid = request.args["job"]
    found = request.services.reader.planner_jobs.report(uuid)
    return Reply({"uuid": uuid, "answers": dict(found.answers), "html": found.html})


def _shown(request: Request, uuid: str) -> Reply:
    return Reply(body(request.services.reader.planner_jobs.job(uuid)))
