"""Live migrations of a history: a guest with a guaranteed loan moves to another host, by value or by reference.

As nova-conductor and both virt drivers do it: the claim at the source becomes the migration's, the guest's own is at
the destination, which borrows by it: anew, or what the guest has, as far as it can have that. Both hosts have what they
have until the guest is at one of them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pondstack.controller.lending.inventory import PROVIDER
from pondstack.domain.errors import PondError

from ..plan import Step
from .handover import Handover

if TYPE_CHECKING:
    from ..host import SimHost
    from ..rack import Rack
    from .tenant import Loan

LOOK_SECONDS = 0.25
"""Between two looks whether the destination has borrowed, or whether Placement answers again."""


class Moves:
    """Those of one history."""

    def __init__(self, rack: "Rack") -> None:
        self._rack = rack

    def run(self, step: Step, source: "SimHost") -> None:
        """Move a guest of a host, one that does not move yet; at its end it is at one of the two hosts."""
        target = self._rack.hosts[step.values["to"]]
        loan = self._chosen(source, step.values["which"])
        if loan is None or not target.agent_up or target.process is None or target.tenant.agent is None:
            return
        loan.moves, there = True, None
        try:
            aside = self._claim(loan, target)
            there = self._borrow(loan, target, source.name if step.values.get("by_reference") else "")
            if there is not None:
                source.tenant.run_guest(loan)
                self._rack.scheduler.sleep(step.values["seconds"])
            if there is None or there.leaving or loan.leaving or step.values["fails"]:
                self._end(there, loan, aside, moved=False)
                source.tenant.run_guest(loan)
            else:
                self._rack.scheduler.faults["borrower moved"] += 1
                Handover(self._rack, source, target, loan, there).run(step.values.get("fills", 0.0))
                self._end(loan, there, aside, moved=True)
        except PondError as error:  # Placement did not answer, and nothing has begun
            self._rack.scheduler.note(f"no move: {error}")
        finally:
            for each in (loan, there):
                if each is not None:
                    each.moves = False

    def _chosen(self, source: "SimHost", which: int) -> "Loan | None":
        assert self._rack.lent
        guaranteed = self._rack.lent.watch.guaranteed
        mine = [item for item in source.tenant.loans if item.acknowledged and not item.leaving and not item.moves]
        mine = [item for item in mine if item.uuid in guaranteed]
        return mine[which % len(mine)] if mine else None

    def _claim(self, loan: "Loan", target: "SimHost") -> str:
        """Have the loan's claim be the migration's, and claim at the destination; the migration's name, '' for none."""
        assert self._rack.lent
        claims = self._rack.lent.claims
        if claims is None or loan.consumer not in claims.present:
            return ""
        aside = f"migration-{loan.operation_id}"
        self._rack.placement.move_lent(loan.consumer, aside, target.name, PROVIDER)
        return aside

    def _borrow(self, loan: "Loan", target: "SimHost", source: str) -> "Loan | None":
        """Have the destination borrow as much, of a source what the guest has there; None where it cannot, or dies."""
        assert self._rack.lent
        process, made = target.process, list["Loan"]()
        assert process
        values = {"buffers": len(loan.places), "guaranteed": True, "forgets": False}
        if source:
            values |= {"source": source, "guest": loan.guest}
        step = Step(self._rack.scheduler.now, "borrow", target.name, {**values, "mover": loan.consumer, "made": made})
        task = self._rack.scheduler.spawn(process, self._rack.lent.tenant, step, target)
        while task in process.tasks and target.process is process:
            self._rack.scheduler.sleep(LOOK_SECONDS)
        return next((item for item in made if item.acknowledged and not item.leaving), None)

    def _end(self, gone: "Loan | None", stays: "Loan", aside: str, *, moved: bool) -> None:
        """Have one loan go, whose host goes on with that at its next heartbeat; the claim is the other one's."""
        assert self._rack.lent
        claims = self._rack.lent.claims
        if gone is not None:
            gone.leaving, gone.consumer = True, ""
        if claims is None or not aside:
            return
        claims.only(stays.consumer, stays.uuid)
        placement = self._rack.placement
        self._insist(lambda: placement.drop(aside) if moved else placement.put_back(stays.consumer, aside))

    def _insist(self, call: Callable[[], None]) -> None:
        while True:
            try:
                return call()
            except PondError as error:
                self._rack.scheduler.note(f"again: {error}")
                self._rack.scheduler.sleep(LOOK_SECONDS)
