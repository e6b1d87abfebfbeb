"""Who borrows on a host, and owns the pages there: what it knows of its loans is on the host's disk."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import oslo_messaging

from pondstack.domain.errors import BufferShortage, Conflict, PondError, Unavailable
from pondstack.domain.requests import BorrowRequest
from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.borrower.records import Held

from ..invariants import Violation
from .data_plane import SimDataPlane
from .lender import MARK_BYTES
from .plan import BUFFER_MIB
from .watch import Place

if TYPE_CHECKING:
    from pondstack_agent.build import Agent

    from ..api import SimControllerAPI
    from ..host import SimHost
    from ..kernel import Process
    from ..plan import Step
    from .claims import LoanClaims

FAILED = (PondError, oslo_messaging.MessagingTimeout)
"""What a call of the controller may end with."""
INSIST_SECONDS = 0.7
"""Between two calls of a borrower that insists."""


@dataclass(slots=True)
class Loan:
    """An allocation. `leaving`: it is not wanted any more. `forgotten`: whoever asked died before it knew.

    `consumer`: who claims it in Placement, "" when it needs no claim. `moves`: its guest moves to another host.
    `guest`: of a guaranteed one, whose it is. `handed`: places with pages of another host's loan, to be read only;
    `versions`: what is in its places, of what was written and not lost since. `frozen`: its guest does not run here.
    """

    operation_id: str
    uuid: str = ""
    places: set[Place] = field(default_factory=set)
    acknowledged: bool = False
    leaving: bool = False
    forgotten: bool = False
    consumer: str = ""
    moves: bool = False
    guest: str = ""
    handed: set[Place] = field(default_factory=set)
    versions: dict[Place, bytes] = field(default_factory=dict)
    frozen: bool = False


class Tenant:
    """Implements pondstack_agent.borrower.pages.Pages. `agent`: of the host's present life.

    `data_plane`: what reaches the buffers; it outlives the agent.
    """

    def __init__(self, host: "SimHost") -> None:
        self._host, self._rack = host, host.rack
        self.loans: list[Loan] = []
        self.data_plane = SimDataPlane(host)
        self.agent: Agent | None = None
        self._drawn: set[str] = set()

    @property
    def _borrower(self) -> Borrower:
        assert self.agent
        assert self.agent.borrower
        return self.agent.borrower

    @property
    def _claims(self) -> "LoanClaims | None":
        assert self._rack.lent
        return self._rack.lent.claims

    def _new_id(self, process: "Process") -> str:
        """Return an id that was not drawn before: an agent that starts again draws what its former self drew.

        The ledger would answer a second operation of the same id with what it answered the first.
        """
        while (new := str(UUID(int=process.rng.getrandbits(128), version=4))) in self._drawn:
            pass
        self._drawn.add(new)
        return new

    # Pages

    def arrived(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Nothing: `_use` looks and writes."""

    def lost(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Nothing: its mirror serves."""

    def leave(self, allocation_uuid: str, held: Held, indexes: Sequence[int]) -> None:
        """Use buffers no more."""
        self._rack.moments.pass_by("agent.leave")
        for index in indexes:
            self._drop(allocation_uuid, Place(held.lender, held.incarnation, index))

    def _drop(self, allocation_uuid: str, place: Place) -> None:
        """Use a buffer no more for a loan; another loan of this host may have the same one by now."""
        assert self._rack.lent
        users = self._rack.lent.watch.users
        if users.get(place) == (self._host.name, allocation_uuid):
            del users[place]
        for loan in self.loans:
            if loan.uuid == allocation_uuid:
                loan.places.discard(place)
        self.loans = [loan for loan in self.loans if loan.places or not loan.uuid]

    # What it wants

    def borrow(self, process: "Process", controller: "SimControllerAPI", step: "Step") -> None:
        """Ask for memory and use it."""
        loan = Loan(self._new_id(process), forgotten=step.values["forgets"])
        loan.moves = bool(step.values.get("mover"))
        mib = step.values["buffers"] * BUFFER_MIB
        request = BorrowRequest(f"vm-{self._host.name}", self._host.name, mib, guaranteed=step.values["guaranteed"])
        if request.guaranteed:
            loan.guest = step.values.get("guest") or f"vm-{loan.operation_id}"
            request = replace(request, consumer_uuid=loan.guest, source=step.values.get("source", ""))
        self.loans.append(loan)
        step.values.get("made", []).append(loan)
        claims, mover = self._claims if request.guaranteed else None, step.values.get("mover", "")
        claimed_mib = step.values.get("claimed_mib", mib)
        try:
            if claims is not None:
                loan.consumer = mover or f"vm-{loan.operation_id}"
                request = replace(request, consumer_uuid=loan.consumer)
                if claimed_mib and not mover:
                    claims.claim(loan.consumer, self._host.name, claimed_mib)
            answer = self._ask(controller, loan, request, step)
            if request.guaranteed:
                self._rack.lent.watch.guaranteed.add(answer["allocation_uuid"])
            if claims is not None:
                if claimed_mib < mib:
                    raise Violation("admitted_unclaimed", f"{mib} MiB for {self._host.name}, {claimed_mib} are claimed")
                claims.consumer_of[answer["allocation_uuid"]] = loan.consumer
            if answer["buffers"] and not loan.forgotten:
                self._take(controller, loan, answer)
        except FAILED as error:
            self._rack.scheduler.note(f"borrow failed: {error}")
            loan.leaving = True
        if not loan.uuid:
            # Not known here: the controller takes back what nobody acknowledges.
            self.loans = [other for other in self.loans if other is not loan]
            if claims is not None and not loan.forgotten and not mover:
                claims.drop(loan.consumer)
        elif loan.leaving:
            self.give_back(controller, loan)

    def _ask(self, controller: "SimControllerAPI", loan: Loan, request: BorrowRequest, step: "Step") -> dict[str, Any]:
        """Borrow; who insists does so again while others make room, which is known to be enough."""
        scheduler, insists = self._rack.scheduler, step.values.get("insists", 0.0)
        ends = scheduler.now + insists
        while True:
            try:
                answer = controller.borrow(loan.operation_id, request)
            except BufferShortage as error:
                if insists:
                    raise Violation("shortage_refused", f"{self._host.name} is refused: {error}") from error
                raise
            except Unavailable as error:
                if not insists:
                    raise
                if scheduler.now > ends:
                    raise Violation("shortage_not_met", f"{self._host.name} still waits: {error}") from error
                scheduler.sleep(INSIST_SECONDS)
            else:
                if insists:
                    self._check_shortage(step.values["missing"], step.values["roomy"])
                return answer

    def _check_shortage(self, missing: int, roomy: str) -> None:
        """A shortage was met by a host that was asked and by loans that gave way: not by more than was missing."""
        scheduler, life = self._rack.scheduler, self._rack.hosts[roomy].life
        lent = len(life.book.buffers()) if life is not None else 0
        gave_way = scheduler.faults["best effort gave way"]
        # A host that was asked and did not answer in time may lend nevertheless.
        if lent + gave_way > missing and not self._rack.history.faults:
            raise Violation("asked_for_too_much", f"{missing} were missing; {lent} were lent, and {gave_way} given way")
        if lent and gave_way:
            scheduler.faults["shortage met by both"] += 1

    def _take(self, controller: "SimControllerAPI", loan: Loan, answer: dict[str, Any]) -> None:
        loan.uuid = answer["allocation_uuid"]
        loan.places = {_place(item) for item in answer["buffers"]}
        loan.handed = {_place(item) for item in answer["buffers"] if item.get("handed")}
        for lender, made in answer["lenders"].items():
            self._borrower.prepare(lender, allocation_uuid=loan.uuid, **made)
        try:
            for place in sorted(loan.places):
                if place.lender not in answer["lenders"]:
                    self._borrower.adopt(loan.uuid, place.lender, place.incarnation, [place.index])
        except Conflict as error:
            # A promise of a zombie that was being taken back when it went to sleep again: there is no key.
            self._rack.scheduler.note(f"loan goes back: {error}")
            loan.leaving = True
            return
        controller.acknowledge_borrowed(
            operation_id=loan.operation_id,
            allocation_uuid=loan.uuid,
            host=self._host.name,
            opened=[(place.incarnation, place.index) for place in sorted(loan.places)],
        )
        self._acknowledged(loan)

    def _acknowledged(self, loan: Loan) -> None:
        assert self._rack.lent
        if loan.leaving:
            return
        loan.acknowledged = True
        self._rack.scheduler.acknowledged += 1
        watch = self._rack.lent.watch
        for place in sorted(loan.places):
            # The controller may have asked for some back since it was acknowledged.
            if not self._opened(place):
                loan.places.discard(place)
            elif place not in loan.handed:
                watch.users[place] = self._host.name, loan.uuid
        watch.look()
        for place in sorted(loan.places - loan.handed):
            self._use(loan, place)

    def _opened(self, place: Place) -> bool:
        held = self._borrower._store.get(place.lender, place.incarnation).buffers.get(place.index)
        return held is not None and not held.leaving

    def _use(self, loan: Loan, place: Place) -> None:
        """Look whether a buffer is fresh, and write into it."""
        assert self._rack.lent
        held, found = self._borrower._store.get(place.lender, place.incarnation), bytearray(MARK_BYTES)
        mark = loan.uuid[:MARK_BYTES].encode()
        key = held.keys.get(place.index)
        if key is None:
            return
        try:
            link = self.data_plane.link(held)
            link.read_into(key, 0, found)
            if any(found) and self._was_ours(place, bytes(found)):
                self._rack.scheduler.faults["zombie's buffer used again"] += 1
            elif any(found) and bytes(found) != mark:
                raise Violation("not_fresh", f"{self._host.name} finds {bytes(found)!r} in {place}, which it borrowed")
            link.write(key, 0, mark)
            self._rack.lent.watch.wrote[mark] = self._host.name
            loan.versions[place] = mark
            if link.life().frozen:
                self._rack.scheduler.faults["zombie served"] += 1
        except PondError as error:
            self._rack.scheduler.note(f"{place} is served from the mirror: {error}")

    # Of guests that move; see handover.py

    def read(self, place: Place) -> bytes | None:
        """Return what a lender has there; None: it does not give it."""
        held, found = self._borrower._store.get(place.lender, place.incarnation), bytearray(MARK_BYTES)
        key = held.keys.get(place.index)
        try:
            if key is not None:
                self.data_plane.link(held).read_into(key, 0, found)
        except PondError as error:
            self._rack.scheduler.note(f"{place} is not given: {error}")
            return None
        return bytes(found) if key is not None else None

    def run_guest(self, loan: Loan) -> None:
        """Have a loan's guest write something else to all of it, unless it does not run here."""
        assert self._rack.lent
        watch, number = self._rack.lent.watch, len(self._rack.lent.watch.wrote)
        for place in sorted(loan.places):
            held = self._borrower._store.get(place.lender, place.incarnation)
            key = held.keys.get(place.index)
            if key is None or not self.may_write(loan, place):
                continue
            mark = f"{loan.uuid[:20]}{number:012}".encode()
            try:
                self.data_plane.link(held).write(key, 0, mark)
                watch.wrote[mark] = self._host.name
                loan.versions[place] = mark
            except PondError:
                loan.versions.pop(place, None)  # the mirror has it

    def may_write(self, loan: Loan, place: Place) -> bool:
        """Return whether a loan's guest runs here, and has a buffer to itself."""
        return not loan.frozen and place not in loan.handed

    def _was_ours(self, place: Place, mark: bytes) -> bool:
        """Return whether this host wrote it there, in a loan of before: nobody else can have had that buffer meanwhile.

        Its lender may be awake by now.
        """
        assert self._rack.lent
        watch = self._rack.lent.watch
        item = watch.buffers.get(place)
        return (
            watch.wrote.get(mark) == self._host.name
            and item is not None
            and (item.promised_to == self._host.name or (place, item.allocation_uuid or "") in watch.again)
        )

    def give_back(self, controller: "SimControllerAPI", loan: Loan) -> None:
        """Want a loan no more; what is not done is tried again by `tidy`."""
        loan.leaving = True
        if self._claims is not None and loan.consumer:
            self._claims.drop(loan.consumer)
        if not loan.uuid:
            return  # it is being asked for
        try:
            for lender, incarnation in sorted({(place.lender, place.incarnation) for place in loan.places}):
                self._give_back(controller, loan, lender, incarnation)
        except FAILED as error:
            self._rack.scheduler.note(f"give back goes on later: {error}")

    def _give_back(self, controller: "SimControllerAPI", loan: Loan, lender: str, incarnation: str) -> None:
        mine = sorted(p.index for p in loan.places if (p.lender, p.incarnation) == (lender, incarnation))
        about = {"allocation_uuid": loan.uuid, "lender": lender, "incarnation": incarnation}
        gone = self._borrower.give_back(indexes=mine, **about)
        if gone:  # never opened, or closed before
            assert self._host.process
            operation = self._new_id(self._host.process)
            controller.release_buffers(operation_id=operation, host=self._host.name, indexes=gone, **about)
            for index in gone:
                self._drop(loan.uuid, Place(lender, incarnation, index))

    def tidy(self, controller: "SimControllerAPI") -> None:
        """Go on with what was not done; with each heartbeat."""
        for loan in list(self.loans):
            if loan.leaving:
                self.give_back(controller, loan)
        self.loans = [loan for loan in self.loans if loan.places or not loan.uuid]

    def began(self) -> None:
        """A new life of the agent: what was asked for in the former one and not acknowledged is not wanted."""
        for loan in list(self.loans):
            if not loan.uuid:
                self.loans.remove(loan)
            elif not loan.acknowledged:
                loan.leaving = True

    def unclaim(self, step: "Step") -> None:
        """Have the claim of a loan go, and come back if the step says so; who uses the loan does not know."""
        mine = [loan for loan in self.loans if loan.acknowledged and loan.consumer and not loan.leaving | loan.moves]
        if not mine or self._claims is None:
            return
        claims, loan = self._claims, mine[step.values["which"] % len(mine)]
        mib = claims.present.get(loan.consumer)
        if mib is None:
            return
        claims.drop(loan.consumer)
        self._rack.scheduler.faults["claims gone"] += 1
        if step.values["seconds"]:
            self._rack.scheduler.sleep(step.values["seconds"])
            if not loan.leaving:
                claims.claim(loan.consumer, self._host.name, mib)

    def lose_books(self) -> None:
        """The host was installed anew: nobody knows there what it has borrowed, and its guests are gone."""
        self.died()
        self._host.memory.folder("borrowing").clear()
        self.loans = []

    def died(self) -> None:
        """The host lost power, and its guests with it."""
        self.data_plane.crash()
        assert self._rack.lent
        for place, (host, _) in list(self._rack.lent.watch.users.items()):
            if host == self._host.name:
                del self._rack.lent.watch.users[place]
        for loan in self.loans:
            loan.leaving = True


def _place(item: dict[str, Any]) -> Place:
    return Place(item["lender"], item["incarnation"], item["index"])
