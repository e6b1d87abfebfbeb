"""Performance: what a server's project tells of it, to compare the control group with the others."""

from pondstack_api.handlers.instance import known_instance
from pondstack_api.handlers.qos import performance_body
from pondstack_api.policies import performance as policy
from pondstack_api.request import Reply, Request


def record_performance(request: Request) -> Reply:
    """Take in a reading of a metric of a server of one's project; 409 for too many metrics, or too often."""
    # A token without a project is no member's, whatever its role.
    request.context.require(policy.RECORD, {"project_id": request.context.project_id or "no project"})
    one, told = known_instance(request, policy.RECORD), request.body
    request.services.controller.record_performance(
        consumer_uuid=one.consumer_uuid,
        project_id=one.project_id or "",
        metric=told["metric"],
        value=float(told["value"]),
        higher_is_better=bool(told["higher_is_better"]),
    )
    figures = request.services.reader.qos.performances(one.consumer_uuid)
    return Reply(next(performance_body(item) for item in figures if item.metric == told["metric"]))
