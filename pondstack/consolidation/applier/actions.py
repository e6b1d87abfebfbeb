"""What each kind of action does at Nova. All compare what is with what is wanted, so that doing one twice is harmless.

OpenStack Watcher's applier has the same four parts of an action; here a condition is looked at anew, never remembered.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from pondstack.clients.nova import ComputeService, Nova
from pondstack.domain.errors import NotFound
from pondstack.domain.plan import OURS, Action, Plan, PlanKind, reason_of

Stays = Callable[[str, str, Mapping[str, str]], str]
"""Tells why a server, on this host and with these extra specs of its flavor, is not migrated live; "": it may be."""


class Is(Enum):
    """Whether a condition holds: not yet (WAITING), not by itself any more (FALSE), or not by a next try (NEVER)."""

    TRUE = "true"
    WAITING = "waiting"
    FALSE = "false"
    NEVER = "never"


class Condition(NamedTuple):
    """What was seen."""

    holds: Is
    reason: str = ""


class Handler(Protocol):
    """One kind of action. Each method raises Unavailable; execute and revert raise Conflict and NotFound, too."""

    def pre_condition(self, plan: Plan, action: Action) -> Condition:
        """Tell whether it may begin."""

    def execute(self, plan: Plan, action: Action) -> None:
        """Begin it."""

    def post_condition(self, plan: Plan, action: Action) -> Condition:
        """Tell whether it is done."""

    def revert(self, plan: Plan, action: Action) -> bool:
        """Take it back; False: there is nothing to take back."""


class _Services:
    def __init__(self, nova: Nova) -> None:
        self._nova = nova

    def _service(self, host: str) -> ComputeService:
        found = self._nova.compute_service(host)
        if found is None:
            raise NotFound(f"Nova knows no hypervisor {host}")
        return found


class Disable(_Services):
    """Has the scheduler place nothing on a host. `least_awake`: how many hosts stay enabled at least."""

    def __init__(self, nova: Nova, least_awake: int) -> None:
        super().__init__(nova)
        self._least_awake = least_awake

    def pre_condition(self, plan: Plan, action: Action) -> Condition:
        """Tell whether it is enabled, and enough others are."""
        service = self._service(action.host)
        if not service.enabled:
            return Condition(Is.FALSE, f"it is disabled by others: {service.disabled_reason or 'no reason given'}")
        if plan.kind is PlanKind.CONSOLIDATE:
            awake = sum(item.enabled and item.up for item in self._nova.compute_services())
            if awake <= self._least_awake:
                return Condition(Is.FALSE, f"{awake} hosts are awake, and {self._least_awake} stay so")
        return Condition(Is.TRUE)

    def execute(self, plan: Plan, action: Action) -> None:
        """Disable its compute service with a reason that says by which plan."""
        self._nova.disable(self._service(action.host), reason_of(plan))

    def post_condition(self, plan: Plan, action: Action) -> Condition:
        """Tell whether it is disabled: by this plan, or, where an operator drains it, by whomever."""
        service = self._service(action.host)
        mine = service.disabled_reason == reason_of(plan) or plan.kind is PlanKind.DRAIN
        return Condition(Is.TRUE if not service.enabled and mine else Is.FALSE)

    def revert(self, plan: Plan, action: Action) -> bool:
        """Enable it unless somebody else has disabled it meanwhile."""
        service = self._service(action.host)
        if service.enabled or service.disabled_reason != reason_of(plan):
            return False
        self._nova.enable(service)
        return True


class Enable(_Services):
    """Has the scheduler place servers on a host again, which a plan had disabled."""

    def pre_condition(self, _plan: Plan, action: Action) -> Condition:
        """Tell whether a plan had disabled it."""
        service = self._service(action.host)
        if service.enabled or service.disabled_reason.startswith(OURS):
            return Condition(Is.TRUE)
        reason = service.disabled_reason or "no reason given"
        return Condition(Is.FALSE, f"no plan has disabled it, but others: {reason}; enable it with Nova's own command")

    def execute(self, _plan: Plan, action: Action) -> None:
        """Enable its compute service."""
        self._nova.enable(self._service(action.host))

    def post_condition(self, _plan: Plan, action: Action) -> Condition:
        """Tell whether it is enabled."""
        return Condition(Is.TRUE if self._service(action.host).enabled else Is.FALSE)

    def revert(self, _plan: Plan, _action: Action) -> bool:
        """Leave it enabled."""
        return False


class Migrate(_Services):
    """Moves a server by live migration. The scheduler judges the destination, or finds one; it knows the server's
    traits, aggregates, groups, devices and NUMA. `stays`: why one cannot be moved for where its memory is.
    """

    def __init__(self, nova: Nova, stays: Stays) -> None:
        super().__init__(nova)
        self._stays = stays

    def pre_condition(self, _plan: Plan, action: Action) -> Condition:
        """Tell whether it runs on its source, and Nova does nothing with it."""
        server = self._nova.server(action.server_uuid)
        if server is None or server.host != action.host:
            return Condition(Is.WAITING)  # the post-condition tells
        if server.busy:
            return Condition(Is.WAITING, f"Nova works on it ({server.busy})")
        if not server.running:
            return Condition(Is.FALSE, "it is not running")
        stays = self._stays(action.server_uuid, action.host, server.specs)
        if stays:
            return Condition(Is.FALSE, stays)
        if action.destination:
            service = self._service(action.destination)
            if not service.enabled or not service.up:
                return Condition(Is.FALSE, f"host {action.destination} is disabled or down")
        return Condition(Is.TRUE)

    def execute(self, _plan: Plan, action: Action) -> None:
        """Ask Nova for it."""
        name = self._service(action.destination).name if action.destination else None
        self._nova.live_migrate(action.server_uuid, name)

    def post_condition(self, _plan: Plan, action: Action) -> Condition:
        """Tell whether it is off its source, and Nova has done with it."""
        server = self._nova.server(action.server_uuid)
        if server is None:
            return Condition(Is.TRUE, "it was deleted")
        if server.busy:
            return Condition(Is.WAITING)
        if server.host == action.host:
            return Condition(Is.FALSE, "Nova did not move it; `openstack server event list` of it may say why")
        return Condition(Is.TRUE, f"it is on {server.host}" if server.host != action.destination else "")

    def revert(self, _plan: Plan, _action: Action) -> bool:
        """Leave it where it is: to move it back would cost as much again."""
        return False
