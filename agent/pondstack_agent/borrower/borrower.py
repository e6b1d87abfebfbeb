"""What a host does as a borrower: notes whose buffers it has and for which allocation, and gives them back.

prepare: on disk -> Pages.arrived
give_back: "leaving" on disk -> Pages.leave -> "released" on disk -> the controller is told
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from oslo_log import log

from pondstack.domain.errors import BadRequest, Conflict, HostUnusable, PondError
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.borrower.links import Links
from pondstack_agent.borrower.pages import Pages
from pondstack_agent.borrower.records import BorrowedBuffer, Held, Store, name_of
from pondstack_agent.executor import Executor, RecurringWork
from pondstack_agent.locks import NamedLocks
from pondstack_rdma.model import Key, Ticket

LOG = log.getLogger(__name__)


class Borrower:
    """The borrower side of one agent. `driver`: of its transport, which a lender's ticket has to name.

    `links`: of the data plane. None: there is none, and this host cannot use the free memory of lenders that sleep.
    """

    def __init__(
        self,
        *,
        host: str,
        driver: str,
        store: Store,
        pages: Pages,
        controller: ControllerAPI,
        executor: Executor,
        links: Links | None = None,
    ) -> None:
        self._links = links
        self._host, self._driver, self._store, self._pages = host, driver, store, pages
        self._controller, self._executor = controller, executor
        self._locks = NamedLocks()
        self._guard = threading.Lock()
        self._maintenance = RecurringWork(executor, self._maintain)
        self._leaving: set[str] = set()
        self._trouble: dict[str, str] = {}

    def prepare(
        self,
        lender: str,
        incarnation: str,
        ticket: Mapping[str, Any],
        keys: Mapping[str, Any],
        allocation_uuid: str = "",
    ) -> list[int]:
        """Have a lender's ticket and keys of its buffers, all or none; asks no lender.

        Idempotent by the keys; returns the buffers. A newer key of a buffer takes the place of the one that is held,
        which is dead then: a lender has one key of a buffer. Raises BadRequest, Conflict.
        """
        shown, given = Ticket.from_dict(ticket), _keys(keys)
        self._check_ticket(lender, shown)
        with self._locks.holding(name_of(lender, incarnation)):
            before = self._store.get(lender, incarnation)
            for index, key in given.items():
                _check_new(before, index, key, allocation_uuid)
            new = {index: BorrowedBuffer(allocation_uuid, key) for index, key in given.items()}
            held = self._store.put(before, ticket=dict(ticket), buffers={**before.buffers, **new})
            self._tell_dead(before, given)
            self._pages.arrived(allocation_uuid, held, sorted(given))
        return sorted(given)

    def connect(self, lender: str, incarnation: str, ticket: Mapping[str, Any]) -> bool:
        """Have the data plane connect to a lender, which is about to sleep; returns whether it is connected.

        Idempotent. Raises BadRequest, Unavailable, HostUnusable where there is no data plane.
        """
        self._check_ticket(lender, Ticket.from_dict(ticket))
        if self._links is None:
            raise HostUnusable(f"host {self._host} has no data plane that connects to lenders")
        self._links.connect(lender, incarnation, ticket)
        return (lender, incarnation) in set(self._links.alive())

    def give_back(self, allocation_uuid: str, lender: str, incarnation: str, indexes: Sequence[int]) -> list[int]:
        """Stop using buffers (US_reclaim, Zombieland 4.3), then forget their keys.

        Goes on in the background, after a restart, too, and tells the controller; returns which are released already.
        Raises Conflict when a buffer is another allocation's.
        """
        with self._locks.holding(name_of(lender, incarnation)):
            held = self._store.get(lender, incarnation)
            mine = [index for index in indexes if index in held.buffers]
            if strangers := [
                index for index in mine if held.buffers[index].allocation_uuid not in ("", allocation_uuid)
            ]:
                raise Conflict(
                    f"the buffers {strangers} of lender {lender} are not of allocation {allocation_uuid}; look again"
                )
            if mine:
                # What was only promised may have become the allocation's: the controller is told of that one.
                leaving = {
                    index: replace(held.buffers[index], allocation_uuid=allocation_uuid, leaving=True) for index in mine
                }
                held = self._store.put(held, buffers={**held.buffers, **leaving})
                self._executor.submit(self._return, lender, incarnation)
        return sorted(set(indexes) - set(mine))

    def adopt(self, allocation_uuid: str, lender: str, incarnation: str, indexes: Sequence[int]) -> None:
        """Have buffers that were promised to this host before their lender went to sleep. Idempotent; all or none.

        A lender that sleeps lets no new link in: until it is awake, the mirror serves the pages that are to be there.
        Raises Conflict when this host has not got their keys, or has them for another allocation.
        """
        with self._locks.holding(name_of(lender, incarnation)):
            held = self._store.get(lender, incarnation)
            for index in indexes:
                known = held.buffers.get(index)
                if known is None or known.leaving or known.allocation_uuid not in ("", allocation_uuid):
                    raise Conflict(f"buffer {index} of lender {lender}, which sleeps, was not promised to this host")
            mine = {index: replace(held.buffers[index], allocation_uuid=allocation_uuid) for index in indexes}
            if any(not held.buffers[index].allocation_uuid for index in indexes):
                LOG.warning(
                    "Lender %s sleeps, or is about to: while it does, the mirror serves the pages on the %d buffers of "
                    "it that allocation %s has now",
                    lender,
                    len(mine),
                    allocation_uuid,
                )
            held = self._store.put(held, buffers={**held.buffers, **mine})
            self._pages.arrived(allocation_uuid, held, sorted(indexes))

    def held(self, allocation_uuid: str) -> dict[tuple[str, str], list[int]]:
        """Return the buffers of an allocation by lender and incarnation, with those that are going back."""
        found = {(each.lender, each.incarnation): each.by_allocation() for each in self._store.all()}
        return {place: by[allocation_uuid] for place, by in found.items() if allocation_uuid in by}

    def report(self) -> dict[str, Any]:
        """Return what is borrowed and of whom; doc/source/admin/lending.md has all of it."""
        found: dict[str, Any] = {"lenders": [_view(held) for held in self._store.all()]}
        if self._links is not None:
            found["links"] = [list(link) for link in sorted(self._links.alive())]
        return found

    def recover(self) -> None:
        """Go on with what a former life of the agent was giving back, in the background."""
        self.maintain(float("inf"))

    def maintain(self, keep_seconds: float) -> None:
        """Go on giving back and telling; in the background."""
        self._maintenance.submit(keep_seconds)

    def _maintain(self, keep_seconds: float) -> None:
        for held in self._store.all():
            if held.by_allocation(leaving=True) or held.telling:
                self._return(held.lender, held.incarnation)
        self._store.prune(keep_seconds)

    def _return(self, lender: str, incarnation: str) -> None:
        name = name_of(lender, incarnation)
        with self._guard:
            if name in self._leaving:
                return  # another thread is at it, and `maintain` comes again
            self._leaving.add(name)
        try:
            # More may be asked for while it is at it.
            while leaving := (held := self._store.get(lender, incarnation)).by_allocation(leaving=True):
                for allocation_uuid, indexes in leaving.items():
                    self._leave(held, allocation_uuid, indexes)
            self._tell(lender, incarnation)
            self._trouble.pop(name, None)
        except PondError as error:
            if self._trouble.get(name) != error.message:  # once, not at each heartbeat
                self._trouble[name] = error.message
                LOG.warning("Buffers of lender %s are not given back yet: %s", name, error)
        finally:
            with self._guard:
                self._leaving.discard(name)

    def _leave(self, held: Held, allocation_uuid: str, indexes: Sequence[int]) -> None:
        self._pages.leave(allocation_uuid, held, indexes)  # not under the lock: it may copy for long
        with self._locks.holding(held.name):
            held = self._store.get(held.lender, held.incarnation)
            numbers = {index: held.buffers[index].key.number for index in indexes}
            operation = str(uuid5(NAMESPACE_OID, f"{held.name} {allocation_uuid} {sorted(numbers.items())}"))
            rest = {index: item for index, item in held.buffers.items() if index not in numbers}
            telling = {**held.telling, operation: {"allocation_uuid": allocation_uuid, "indexes": list(indexes)}}
            left = {**held.left, **dict.fromkeys(numbers, allocation_uuid)}
            self._store.put(held, buffers=rest, released={**held.released, **numbers}, left=left, telling=telling)

    def _tell(self, lender: str, incarnation: str) -> None:
        for operation_id, release in self._store.get(lender, incarnation).telling.items():
            self._controller.release_buffers(
                operation_id=operation_id, host=self._host, lender=lender, incarnation=incarnation, **release
            )
            with self._locks.holding(name_of(lender, incarnation)):
                held = self._store.get(lender, incarnation)
                left = {key: value for key, value in held.telling.items() if key != operation_id}
                self._store.put(held, telling=left)

    def _tell_dead(self, held: Held, given: Mapping[int, Key]) -> None:
        """Tell the owners of pages of keys in whose place newer ones have come."""
        dead = [index for index, key in given.items() if index in held.buffers and held.buffers[index].key != key]
        for allocation_uuid, indexes in held.by_allocation().items():
            if mine := [index for index in indexes if index in dead]:
                self._pages.lost(allocation_uuid, held, mine)

    def _check_ticket(self, lender: str, ticket: Ticket) -> None:
        if ticket.borrower != self._host:
            raise BadRequest(f"the ticket is borrower {ticket.borrower}'s, not this host's ({self._host})")
        if ticket.driver != self._driver:
            raise BadRequest(
                f"lender {lender} speaks {ticket.driver} and this host {self._driver}: set the same [lending] "
                "transport in all of a rack"
            )


def _view(held: Held) -> dict[str, Any]:
    return {
        "lender": held.lender,
        "incarnation": held.incarnation,
        "allocations": held.by_allocation(leaving=False),
        "leaving": held.by_allocation(leaving=True),
        "released": list(held.telling.values()),
    }


def _keys(keys: Mapping[str, Any]) -> dict[int, Key]:
    """Return keys by buffer; raises BadRequest. JSON has made the numbers texts."""
    try:
        return {int(index): Key.from_dict(key) for index, key in keys.items()}
    except (AttributeError, ValueError) as error:
        raise BadRequest("keys come as {index of the buffer: key}, as the lender's export answers them") from error


def _check_new(held: Held, index: int, key: Key, allocation_uuid: str) -> None:
    """Raise Conflict unless a key is new here, newer than a dead one, or held for the same allocation."""
    known = held.buffers.get(index)
    if known is not None and not _same(known, key, allocation_uuid) and not _newer(known, key):
        raise Conflict(
            f"buffer {index} of lender {held.lender} is held with another key or allocation; give it back first"
        )
    if _was_released(held, index, key, allocation_uuid):
        raise Conflict(f"this key of buffer {index} of lender {held.lender} was given back; export the buffer anew")


def _was_released(held: Held, index: int, key: Key, allocation_uuid: str) -> bool:
    """Return whether a key was given back. That of a lender that sleeps is told again, to another allocation."""
    newest = held.released.get(index, 0)
    again = bool(allocation_uuid) and held.left.get(index, allocation_uuid) != allocation_uuid
    return key.number < newest or (key.number == newest and not again)


def _same(known: BorrowedBuffer, key: Key, allocation_uuid: str) -> bool:
    """Return whether it is the key that is held; one that was only promised so far may become an allocation's."""
    return known.key == key and not known.leaving and known.allocation_uuid in ("", allocation_uuid)


def _newer(known: BorrowedBuffer, key: Key) -> bool:
    return not known.leaving and key.number > known.key.number
