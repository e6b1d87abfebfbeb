"""The part of the table of routes (pondstack_api.routes) that is of consolidation."""

from pondstack_api import policies, schemas
from pondstack_api.handlers import plan
from pondstack_api.route import Route

SINCE = (1, 20)
_PLAN = schemas.plan.PLAN


def _ask(handler: object, summary: str, policy: str) -> Route:
    """Return a request that is carried out in the background, and answered with its plan."""
    return Route(handler, summary, policy, _PLAN, body=schemas.plan.ASK, status=202, since=SINCE, errors=(409,))  # type: ignore[arg-type]


PLAN_ROUTES: dict[str, dict[str, Route]] = {
    "/plans": {
        "GET": Route(
            plan.list_plans,
            "List consolidation plans",
            policies.plan.LIST,
            schemas.plan.PLANS,
            query=schemas.plan.LIST_QUERY,
            since=SINCE,
        ),
        "POST": Route(
            plan.create_plan,
            "Have a consolidation plan decided",
            policies.plan.CREATE,
            _PLAN,
            body=schemas.plan.CREATE,
            status=202,
            since=SINCE,
            errors=(409,),
        ),
    },
    "/plans/{plan}": {
        "GET": Route(plan.show_plan, "Show a consolidation plan", policies.plan.SHOW, _PLAN, since=SINCE)
    },
    "/plans/{plan}/apply": {"POST": _ask(plan.apply_plan, "Have a plan carried out", policies.plan.APPLY)},
    "/plans/{plan}/cancel": {"POST": _ask(plan.cancel_plan, "Put an end to a plan", policies.plan.CANCEL)},
    "/hosts/{name}/drain": {"POST": _ask(plan.drain_host, "Move all servers away from a host", policies.plan.DRAIN)},
    "/hosts/{name}/restore": {"POST": _ask(plan.restore_host, "Enable a host that was drained", policies.plan.RESTORE)},
    "/consolidation": {
        "GET": Route(
            plan.show_consolidation,
            "Show whether consolidation is frozen, and its limits",
            policies.plan.SHOW_CONSOLIDATION,
            schemas.plan.CONSOLIDATION,
            since=SINCE,
        ),
        "PUT": Route(
            plan.freeze_consolidation,
            "Freeze consolidation, or thaw it",
            policies.plan.FREEZE,
            schemas.plan.CONSOLIDATION,
            body=schemas.plan.FREEZE,
            since=SINCE,
        ),
    },
    "/consolidation/limits": {
        "PUT": Route(
            plan.limit_consolidation,
            "Set what consolidation leaves awake and free",
            policies.plan.LIMIT,
            schemas.plan.CONSOLIDATION,
            body=schemas.plan.LIMITS,
            since=plan.LIMITS_SINCE,
        ),
    },
}
