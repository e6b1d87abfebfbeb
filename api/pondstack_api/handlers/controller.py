"""Controllers: which one leads, which ones stand by, and having another one lead."""

from collections.abc import Iterable
from typing import Any

from pondstack.domain.errors import Conflict, NotFound, NotLeader
from pondstack.ledger.records import ControllerView
from pondstack_api import render
from pondstack_api.pagination import page
from pondstack_api.request import Reply, Request

BROKER_SINCE = (1, 2)


def body(controller: ControllerView, request: Request) -> dict[str, Any]:
    """Return a controller as the API shows it in the request's microversion."""
    shown = _shown(controller)
    if request.version >= BROKER_SINCE:
        seconds = controller.reached_seconds
        shown["reaches_broker"] = request.services.broker_terms.reaches(seconds)
        shown["reached_seconds"] = None if seconds is None else round(seconds, 1)
    return shown


def _shown(controller: ControllerView) -> dict[str, Any]:
    return {
        "name": controller.name,
        "role": controller.role,
        "holder": controller.holder,
        "epoch": controller.epoch,
        "started_at": render.time(controller.started_at),
        "seen_seconds": round(controller.seen_seconds, 1),
        "followed_sequence": controller.followed_sequence,
        "lag": controller.lag,
    }


def list_controllers(request: Request) -> Reply:
    """List the controllers by name, those that are down too."""
    found = sorted(request.services.reader.controllers(), key=lambda controller: controller.name)
    marker = request.query.get("marker")
    if marker is not None:
        _named(found, marker)
        found = [controller for controller in found if controller.name > marker]
    return page(
        request,
        "controllers",
        "/controllers",
        lambda limit: found[:limit],
        lambda controller: controller.name,
        lambda controller: body(controller, request),
    )


def show_controller(request: Request) -> Reply:
    """Show a controller."""
    return Reply(body(_named(request.services.reader.controllers(), request.args["name"]), request))


def fail_over(request: Request) -> Reply:
    """Have the leader hand over to another controller; it does so soon after this is answered."""
    to = request.body.get("to")
    controllers = request.services.reader.controllers()
    leader = next((controller for controller in controllers if controller.role == "leader"), None)
    if leader is None:
        raise NotLeader("no controller leads now; `GET /controllers` shows which ones there are")
    _check_successor(controllers, leader, to)
    request.services.controller.failover(leader=leader.name, to=to)
    return Reply({"from": leader.name, "to": to, "epoch": leader.epoch})


def _check_successor(controllers: Iterable[ControllerView], leader: ControllerView, to: str | None) -> None:
    """Raise NotFound or Conflict when nobody, or not this one, could take over."""
    if to is None:
        if not any(controller.role == "standby" for controller in controllers):
            raise Conflict(f"no controller stands by, so {leader.name} keeps the lead; start another one first")
        return
    successor = _named(controllers, to)
    if successor.role != "standby":
        state = "leads already" if successor.role == "leader" else "is down"
        raise Conflict(f"controller {to} {state}; name one that stands by, or none")


def _named(controllers: Iterable[ControllerView], name: str) -> ControllerView:
    for controller in controllers:
        if controller.name == name:
            return controller
    raise NotFound(f"there is no controller {name}; list the controllers")
