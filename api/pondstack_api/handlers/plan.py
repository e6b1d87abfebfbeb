"""Consolidation plans: proposed first, carried out only when applied; drains of hosts, and the freeze."""

from dataclasses import asdict
from typing import Any

from pondstack.domain.errors import BadRequest
from pondstack.domain.plan import Action, Plan, PlanKind
from pondstack_api import render
from pondstack_api.pagination import page
from pondstack_api.request import Reply, Request

LIMITS_SINCE = (1, 23)


def body(plan: Plan, *, with_actions: bool) -> dict[str, Any]:
    """Return a plan as the API shows it."""
    document: dict[str, Any] = {
        "uuid": plan.uuid,
        "kind": str(plan.kind),
        "trigger": str(plan.trigger),
        "state": str(plan.state),
        "afterwards": str(plan.afterwards),
        "host": plan.target or None,
        "reason": plan.reason,
        "effect": plan.effect.to_record(),
        "settings": dict(plan.settings),
        "inputs": dict(plan.inputs),
        "left_out": dict(plan.left_out),
        "created_at": render.time(plan.created_at),
        "decided_at": None if plan.decided_at is None else render.time(plan.decided_at),
        "ended_at": None if plan.ended_at is None else render.time(plan.ended_at),
    }
    if with_actions:
        document["actions"] = [_action(item) for item in plan.actions]
    return document


def _action(item: Action) -> dict[str, Any]:
    found = asdict(item) | {"kind": str(item.kind), "state": str(item.state)}
    return found | {"server_uuid": item.server_uuid or None, "destination": item.destination or None}


def list_plans(request: Request) -> Reply:
    """List plans without their actions, the newest first."""
    query, plans = request.query, request.services.reader.plans
    return page(
        request,
        "plans",
        "/plans",
        lambda limit: plans.plans(state=query.get("state"), limit=limit, marker=query.get("marker")),
        lambda plan: plan.uuid,
        lambda plan: body(plan, with_actions=False),
    )


def show_plan(request: Request) -> Reply:
    """Show a plan with its actions."""
    return _shown(request, request.args["plan"])


def create_plan(request: Request) -> Reply:
    """Have a plan decided, in the background: GET tells what it came to. Nothing moves until it is applied."""
    settings = dict(request.body)
    operation_id = settings.pop("operation_id", None)
    told = request.services.controller.create_plan(
        kind=str(PlanKind.CONSOLIDATE), settings=settings, operation_id=operation_id
    )
    return _shown(request, told["uuid"])


def apply_plan(request: Request) -> Reply:
    """Have a proposed plan carried out, in the background; 409 where it is too old, or works on another one's hosts."""
    request.services.controller.apply_plan(uuid=request.args["plan"], operation_id=request.body.get("operation_id"))
    return _shown(request, request.args["plan"])


def cancel_plan(request: Request) -> Reply:
    """Put an end to a plan: what it disabled is enabled again, servers that moved stay; 409 where it has ended."""
    request.services.controller.cancel_plan(uuid=request.args["plan"], operation_id=request.body.get("operation_id"))
    return _shown(request, request.args["plan"])


def drain_host(request: Request) -> Reply:
    """Disable a host in Nova and move its servers away by live migration, in the background: the answer is the plan."""
    return _of_host(request, PlanKind.DRAIN)


def restore_host(request: Request) -> Reply:
    """Enable a host in Nova that a plan had disabled, in the background: the answer is the plan."""
    return _of_host(request, PlanKind.RESTORE)


def _of_host(request: Request, kind: PlanKind) -> Reply:
    told = request.services.controller.create_plan(
        kind=str(kind), target=request.args["name"], operation_id=request.body.get("operation_id")
    )
    return _shown(request, told["uuid"])


def show_consolidation(request: Request) -> Reply:
    """Show whether consolidation is frozen, and what is set in place of options (since 1.23)."""
    plans = request.services.reader.plans
    found = plans.frozen()
    limits = {"limits": asdict(plans.limits())} if request.version >= LIMITS_SINCE else {}
    return Reply(
        {
            "frozen": found is not None,
            "reason": None if found is None else found.reason,
            "since": None if found is None else render.time(found.since),
            **limits,
        }
    )


def freeze_consolidation(request: Request) -> Reply:
    """Have no plan of consolidation begin or go on, or let them. Drains go on."""
    frozen, reason = request.body["frozen"], request.body.get("reason")
    if not frozen and reason is not None:
        raise BadRequest("reason goes with frozen only")
    request.services.controller.freeze_consolidation(
        reason=(reason or "by an operator") if frozen else None, operation_id=request.body.get("operation_id")
    )
    return show_consolidation(request)


def limit_consolidation(request: Request) -> Reply:
    """Set what the body names and leave the rest; null: the option holds again. It binds what is decided from then on;
    `least_awake` also binds plans that are under way.
    """
    changes = {name: value for name, value in request.body.items() if name != "operation_id"}
    request.services.controller.limit_consolidation(changes=changes, operation_id=request.body.get("operation_id"))
    return show_consolidation(request)


def _shown(request: Request, uuid: str) -> Reply:
    return Reply(body(request.services.reader.plans.plan(uuid), with_actions=True))
