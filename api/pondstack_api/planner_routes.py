"""The part of the table of routes (pondstack_api.routes) that is of jobs of the planner."""

from pondstack_api import policies, schemas
from pondstack_api.handlers import planner_job
from pondstack_api.route import Route

SINCE = (1, 22)
_JOB = schemas.planner_job.JOB

PLANNER_ROUTES: dict[str, dict[str, Route]] = {
    "/planner-jobs": {
        "GET": Route(
            planner_job.list_planner_jobs,
            "List jobs of the planner",
            policies.planner_job.LIST,
            schemas.planner_job.JOBS,
            query=schemas.planner_job.LIST_QUERY,
            since=SINCE,
        ),
        "POST": Route(
            planner_job.create_planner_job,
            "Have a cloud's history replayed",
            policies.planner_job.CREATE,
            _JOB,
            body=schemas.planner_job.CREATE,
            status=202,
            since=SINCE,
            errors=(409,),
        ),
    },
    "/planner-jobs/{job}/cancel": {
        "POST": Route(
            planner_job.cancel_planner_job,
            "Put an end to a job of the planner",
            policies.planner_job.CANCEL,
            _JOB,
            body=schemas.planner_job.CANCEL,
            status=202,
            since=SINCE,
            errors=(409,),
        )
    },
    "/planner-jobs/{job}/report": {
        "GET": Route(
            planner_job.show_planner_report,
            "Fetch the report of a job of the planner",
            policies.planner_job.REPORT,
            schemas.planner_job.REPORT,
            since=SINCE,
        )
    },
    "/planner-jobs/{job}": {
        "GET": Route(
            planner_job.show_planner_job, "Show a job of the planner", policies.planner_job.SHOW, _JOB, since=SINCE
        ),
        "DELETE": Route(
            planner_job.remove_planner_job,
            "Remove a job of the planner",
            policies.planner_job.DELETE,
            schemas.base.NOTHING,
            status=204,
            since=SINCE,
            errors=(409,),
        ),
    },
}
