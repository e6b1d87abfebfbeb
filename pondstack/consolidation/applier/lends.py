"""Actions that have hosts lend their memory and stay awake, by the operation of the leader that operators have, too."""

from typing import Protocol
from uuid import UUID, uuid5

from pondstack.consolidation.applier.actions import Condition, Is
from pondstack.consolidation.applier.sleeps import operation_of
from pondstack.domain.plan import Action, Plan


class Lends(Protocol):
    """Those of one leader. All raise Unavailable."""

    def begin(self, host: str, operation_id: str) -> None:
        """Have a host lend all that it can spare; raises Conflict, HostUnusable."""

    def waits(self, host: str, operation_id: str) -> str | None:
        """Return what a lend that is under way waits for, None: it is not under way."""

    def ended(self, operation_id: str) -> tuple[int, str] | None:
        """Return how much was lent at its end, and why less; None: there is no word of its end."""

    def take_back(self, host: str, operation_id: str, back_id: str) -> bool:
        """Have a host take back what it has lent since that lend began; False: nothing."""


class Delegate:
    """Has a host lend, which stays awake and disabled."""

    def __init__(self, lends: Lends) -> None:
        self._lends = lends

    def pre_condition(self, _plan: Plan, _action: Action) -> Condition:
        """Tell that it may begin: what is claimed of the host is never lent."""
        return Condition(Is.TRUE)

    def execute(self, plan: Plan, action: Action) -> None:
        """Begin the lend."""
        self._lends.begin(action.host, operation_of(plan, action))

    def post_condition(self, plan: Plan, action: Action) -> Condition:
        """Tell whether it lends something, waits for its memory, or has ended without."""
        operation = operation_of(plan, action)
        ended = self._lends.ended(operation)
        if ended is not None:
            mib, why = ended
            return Condition(Is.TRUE, f"it lends {mib} MiB") if mib else Condition(Is.FALSE, why or "it lends nothing")
        waits = self._lends.waits(action.host, operation)
        return Condition(Is.FALSE, "it was not begun") if waits is None else Condition(Is.WAITING, waits)

    def revert(self, plan: Plan, action: Action) -> bool:
        """Have it take that back; it goes on in the background."""
        back = str(uuid5(UUID(plan.uuid), f"{action.number} back"))
        return self._lends.take_back(action.host, operation_of(plan, action), back)
