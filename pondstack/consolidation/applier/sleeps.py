"""Actions that put hosts to sleep or wake them, by the operation of the leader (pondstack.controller.sleep).

A sleep disables, lends and suspends; its end wakes, takes back and enables. So a plan has one action for each.
"""

from typing import Protocol
from uuid import UUID, uuid5

from pondstack.consolidation.applier.actions import Condition, Is
from pondstack.domain.host_sleep import BACK, HostSleep, SleepState
from pondstack.domain.plan import Action, Plan, reason_of


class Sleeps(Protocol):
    """Those of one leader."""

    def suspend(self, host: str, operation_id: str, *, disabled_by: str) -> object:
        """Begin to put a host to sleep; `disabled_by`: the reason with which the caller has disabled it.

        Raises Conflict, HostUnusable, NotFound, Unavailable.
        """

    def wake(self, host: str, operation_id: str) -> object:
        """Have a host wake; raises Conflict: it is awake."""

    def newest(self, host: str) -> HostSleep | None:
        """Return a host's newest sleep, one that has ended, too."""

    def begun(self, operation_id: str) -> HostSleep | None:
        """Return the sleep that began by an operation."""


WOKEN = frozenset({SleepState.AWAKE, SleepState.ABORTED})
"""How a sleep ends that somebody has called back; one that came to nothing by itself has FAILED."""


def operation_of(plan: Plan, action: Action) -> str:
    """Return the operation of one try of an action: whoever repeats it begins nothing anew."""
    return str(uuid5(UUID(plan.uuid), f"{action.number} {action.tries}"))


class Suspend:
    """Puts a host to sleep, which lends its memory meanwhile."""

    def __init__(self, sleeps: Sleeps) -> None:
        self._sleeps = sleeps

    def pre_condition(self, _plan: Plan, _action: Action) -> Condition:
        """Tell that it may begin: who suspends a host looks whether it is empty."""
        return Condition(Is.TRUE)

    def execute(self, plan: Plan, action: Action) -> None:
        """Begin the sleep."""
        self._sleeps.suspend(action.host, operation_of(plan, action), disabled_by=reason_of(plan))

    def post_condition(self, plan: Plan, action: Action) -> Condition:
        """Tell whether it is asleep, on its way there, or will not get there."""
        newest = self._sleeps.newest(action.host)
        if newest is not None and newest.state is SleepState.ASLEEP:
            return Condition(Is.TRUE)
        mine = self._sleeps.begun(operation_of(plan, action))
        if mine is None:
            return Condition(Is.FALSE, "it was not begun")
        if mine.is_open:  # one that turns round, too: a next try, or the end of the plan, comes once it is awake
            return Condition(Is.WAITING, mine.reason)
        if mine.state in WOKEN:
            return Condition(Is.NEVER, "it was woken by others than this plan, and stays awake")
        return Condition(Is.FALSE, mine.reason or f"its sleep is {mine.state}")

    def revert(self, plan: Plan, action: Action) -> bool:
        """Wake it; it goes on in the background."""
        newest = self._sleeps.newest(action.host)
        if newest is None or not newest.is_open:
            return False
        self._sleeps.wake(action.host, str(uuid5(UUID(plan.uuid), f"{action.number} back")))
        return True


class Wake:
    """Wakes a host, takes its memory back, and enables it."""

    def __init__(self, sleeps: Sleeps) -> None:
        self._sleeps = sleeps

    def pre_condition(self, _plan: Plan, action: Action) -> Condition:
        """Tell whether it sleeps."""
        newest = self._sleeps.newest(action.host)
        if newest is None or not newest.is_open:
            return Condition(Is.FALSE, "it does not sleep by `openstack memory host suspend`")
        return Condition(Is.TRUE)

    def execute(self, plan: Plan, action: Action) -> None:
        """Call it."""
        self._sleeps.wake(action.host, operation_of(plan, action))

    def post_condition(self, _plan: Plan, action: Action) -> Condition:
        """Tell whether it is awake and enabled, or on its way."""
        newest = self._sleeps.newest(action.host)
        if newest is None or newest.state is SleepState.AWAKE:
            return Condition(Is.TRUE)
        if newest.state in BACK:
            return Condition(Is.WAITING, newest.reason)
        return Condition(Is.FALSE, newest.reason or f"its sleep is {newest.state}")

    def revert(self, _plan: Plan, _action: Action) -> bool:
        """Leave it awake."""
        return False
