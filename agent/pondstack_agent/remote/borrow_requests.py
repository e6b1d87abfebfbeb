"""Buffers for a consumer: asked of the controller, taken with their keys, acknowledged; or given back again.

Each step is on disk before it is taken, and may be taken twice: the controller answers the same operation id the same.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from oslo_log import log

from pondstack.domain.errors import BufferShortage, Conflict, PondError, Unavailable, Unclaimed
from pondstack.domain.requests import BorrowRequest
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.remote.records import Borrow, BorrowState, Consumer, Consumers

LOG = log.getLogger(__name__)

Place = tuple[str, str]
"""A lender and its incarnation."""


class BorrowRequests:
    """The requests of one host to the controller."""

    def __init__(self, host: str, consumers: Consumers, controller: ControllerAPI, borrower: Borrower) -> None:
        self._host, self._consumers, self._controller, self._borrower = host, consumers, controller, borrower

    def carry(self, mine: Consumer, borrow: Borrow) -> Consumer:
        """Take a request to its end: OPEN, or dropped when there was nothing; the consumer as it is now.

        Raises Unavailable when nobody knows what became of it (carry it again), Conflict when the controller has taken
        it back (it is UNDOING), and other refusals, after which it is dropped. Of a guaranteed consumer's request all
        lenders have to give their keys: else it is UNDOING, and Unavailable is raised.
        """
        try:
            given = self._ask(mine, borrow)
        except Unavailable:
            raise
        except Conflict:  # it was given before, and taken back; keys of it may be here
            self._consumers.change(mine, borrow, state=BorrowState.UNDOING)
            raise
        except PondError:
            self._consumers.drop(mine, borrow)
            raise
        if not given["buffers"]:
            return self._consumers.drop(mine, borrow)
        # Before any key is taken: who owns the pages is looked up by the allocation.
        mine, borrow = self._consumers.change(mine, borrow, allocation_uuid=given["allocation_uuid"])
        failed = self._take(borrow.allocation_uuid, given)
        if failed and (mine.guaranteed or len(failed) == len(_places(given))):
            self._consumers.change(mine, borrow, state=BorrowState.UNDOING)
            raise Unavailable(f"lenders do not give their buffers: {'; '.join(sorted(set(failed.values())))}")
        for place in failed:
            self._let_go(borrow, place, _places(given)[place])
        taken = {place: indexes for place, indexes in _places(given).items() if place not in failed}
        try:
            self._controller.acknowledge_borrowed(
                operation_id=_derived(borrow, "open"),
                allocation_uuid=borrow.allocation_uuid,
                host=self._host,
                opened=[(incarnation, index) for (_, incarnation), indexes in taken.items() for index in indexes],
            )
        except Conflict:  # some were asked back while their keys were on the way
            self._consumers.change(mine, borrow, state=BorrowState.UNDOING)
            raise
        return self._consumers.change(mine, borrow, state=BorrowState.OPEN)[0]

    def undo(self, mine: Consumer, borrow: Borrow) -> Consumer:
        """Give back what came of a request; it is dropped once nothing of it is left. Raises Unavailable."""
        given: Mapping[str, Any] = {"buffers": []}
        if borrow.state != BorrowState.OPEN:
            try:
                given = self._ask(mine, borrow)
            except (BufferShortage, Conflict, Unclaimed):
                LOG.debug("Nothing is left of operation %s at the controller", borrow.operation_id)
        if given["buffers"] and not borrow.allocation_uuid:
            mine, borrow = self._consumers.change(mine, borrow, allocation_uuid=given["allocation_uuid"])
        held = self._borrower.held(borrow.allocation_uuid) if borrow.allocation_uuid else {}
        for (lender, incarnation), indexes in held.items():
            self._borrower.give_back(borrow.allocation_uuid, lender, incarnation, indexes)
        for place, indexes in _places(given).items():
            if untaken := sorted(set(indexes) - set(held.get(place, ()))):
                self._let_go(borrow, place, untaken)
        return mine if held else self._consumers.drop(mine, borrow)

    def _ask(self, mine: Consumer, borrow: Borrow) -> dict[str, Any]:
        request = BorrowRequest(
            consumer_uuid=mine.borrower_uuid,
            host=self._host,
            remote_mib=borrow.mib,
            guaranteed=mine.guaranteed,
            project_id=mine.project_id,
            user_id=mine.user_id,
            source=borrow.source,
        )
        return self._controller.borrow(borrow.operation_id, request)

    def _take(self, allocation_uuid: str, given: Mapping[str, Any]) -> dict[Place, str]:
        """Take the keys of each lender; why those failed that did."""
        failed: dict[Place, str] = {}
        for (lender, incarnation), indexes in _places(given).items():
            try:
                self._take_one(allocation_uuid, lender, incarnation, indexes, given["lenders"].get(lender))
            except PondError as error:
                LOG.warning("Lender %s was to give %d buffers and does not: %s", lender, len(indexes), error)
                failed[lender, incarnation] = error.message
        return failed

    def _take_one(
        self, allocation_uuid: str, lender: str, incarnation: str, indexes: list[int], made: Mapping[str, Any] | None
    ) -> None:
        if made is None:  # it sleeps: its keys came before
            self._borrower.adopt(allocation_uuid, lender, incarnation, indexes)
            return
        keys = {index: key for index, key in made["keys"].items() if int(index) in indexes}
        self._borrower.prepare(lender, incarnation, made["ticket"], keys, allocation_uuid)

    def _let_go(self, borrow: Borrow, place: Place, indexes: Iterable[int]) -> None:
        """Tell the controller of buffers that were never taken here."""
        lender, incarnation = place
        self._controller.release_buffers(
            operation_id=_derived(borrow, f"unopened {place} {sorted(indexes)}"),
            host=self._host,
            allocation_uuid=borrow.allocation_uuid,
            lender=lender,
            incarnation=incarnation,
            indexes=sorted(indexes),
        )


def _derived(borrow: Borrow, what: str) -> str:
    return str(uuid5(NAMESPACE_OID, f"{borrow.operation_id} {what}"))


def _places(given: Mapping[str, Any]) -> dict[Place, list[int]]:
    found: dict[Place, list[int]] = {}
    for item in given["buffers"]:
        found.setdefault((item["lender"], item["incarnation"]), []).append(int(item["index"]))
    return found
