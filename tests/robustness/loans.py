"""Workers that borrow memory which hosts lend: real agents, real lender processes, shared memory.

Host-a borrows of host-b and the other way round. A worker writes a mark into each buffer that it was given, and looks
for it before it gives the buffer back: who else has the buffer would be seen in its bytes, too.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import UUID, uuid5

from pondstack.domain.errors import PondError, StaleEpoch, Unavailable
from pondstack.domain.requests import BorrowRequest
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_rack.daemon import DaemonFailed
from pondstack_rack.wait import wait_until
from pondstack_rdma.base import Link
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.shm import ShmTransport
from tests.robustness.caller import NO_ANSWER, Caller
from tests.robustness.history import Kind, Loan, Outcome, Recorder
from tests.robustness.rack import AGENTS, BUFFER_MIB, LENT_BUFFERS, Rack

T = TypeVar("T")

GIVE_UP = 0.1
LEND_SECONDS = 60.0
ACCESS_SECONDS = 10.0
EMPTY = bytes(36)


@dataclass(frozen=True)
class Return:
    """What a loan has of one life of a lender, on its way back under one operation id."""

    loan: Loan
    lender: str
    incarnation: str
    operation_id: str

    @property
    def indexes(self) -> list[int]:
        """Of the buffers."""
        here = (self.lender, self.incarnation)
        return sorted(index for lender, life, index in self.loan.buffers if (lender, life) == here)


class Borrower:
    """Borrow, open the keys, acknowledge; later look at the bytes and give all back."""

    def __init__(self, rack: Rack, recorder: Recorder, caller: Caller) -> None:
        self._rack, self._recorder, self._caller = rack, recorder, caller
        self._controller: ControllerAPI = rack.client()
        self._agents: AgentAPI = rack.agent_client()
        self._transport = ShmTransport(folder=str(rack.shm))
        self.held: list[Loan] = []
        self.open: list[tuple[str, BorrowRequest]] = []
        self._leaving: list[Return] = []

    def turn(self, think: Callable[[], None]) -> None:
        """One loan's life; what it holds when the run ends it keeps."""
        self.take(give_up=self._caller.rng.random() < GIVE_UP)
        think()
        if not self._caller.over.is_set():
            self.drop()

    def take(self, give_up: bool = False) -> None:
        """Borrow some buffers."""
        rng = self._caller.rng
        request = BorrowRequest(
            self._caller.new_id(),
            rng.choice(AGENTS),
            remote_mib=rng.randint(1, 3) * BUFFER_MIB,
            guaranteed=rng.random() < 0.5,
        )
        self._borrow(self._caller.new_id(), request, 1 if give_up else float("inf"))

    def _borrow(self, operation_id: str, request: BorrowRequest, tries: float) -> None:
        host = request.host
        about = {"operation_id": operation_id, "consumer_uuid": request.consumer_uuid}
        answer = self._caller.persist(
            Kind.BORROW,
            host,
            about,
            lambda: self._controller.borrow(operation_id, request),
            tries=tries,
        )
        if answer.outcome is Outcome.UNKNOWN:
            self.open.append((operation_id, request))
        elif answer.value is not None and answer.value["buffers"]:
            self._take(operation_id, host, answer.value)

    def _take(self, operation_id: str, host: str, given: dict[str, Any]) -> None:
        loan = Loan(
            operation_id,
            host,
            given["allocation_uuid"],
            tuple((item["lender"], item["incarnation"], item["index"]) for item in given["buffers"]),
        )
        self.held.append(loan)
        self._recorder.loan(loan)
        about = {"operation_id": operation_id, "consumer_uuid": "", "allocation_uuid": loan.allocation_uuid}
        for lender, made in given["lenders"].items():
            call = partial(self._prepare, host, lender, loan.allocation_uuid, made)
            if self._caller.persist(Kind.PREPARE, host, about, call).outcome is not Outcome.OK:
                return  # given back by drop(): it was never acknowledged
        answer = self._caller.persist(
            Kind.ACKNOWLEDGE_BORROWED,
            host,
            about,
            lambda: self._controller.acknowledge_borrowed(
                operation_id=operation_id,
                allocation_uuid=loan.allocation_uuid,
                host=host,
                opened=[(life, index) for _, life, index in loan.buffers],
            ),
        )
        if answer.outcome is Outcome.OK:
            loan.keys = {lender: (made["ticket"], made["keys"]) for lender, made in given["lenders"].items()}
            self._look(loan, EMPTY)
            loan.acknowledged = self._recorder.now()

    def _prepare(self, host: str, lender: str, allocation_uuid: str, made: dict[str, Any]) -> None:
        about = {"lender": lender, "allocation_uuid": allocation_uuid}
        self._command(lambda epoch: self._agents.prepare(host, epoch=epoch, **about, **made))

    def _command(self, call: Callable[[int], T]) -> T:
        """Give an agent a command in the leader's name; to repeat when the next one comes while it is on its way."""
        try:
            return call(self._rack.reader.leader().epoch)
        except StaleEpoch as error:
            raise Unavailable(error.message) from error

    def _look(self, loan: Loan, expected: bytes) -> None:
        """Compare the first bytes of each buffer with what they should be, and write the loan's mark."""
        for lender, (ticket, keys) in loan.keys.items():
            with self._transport.connect(Ticket.from_dict(ticket), ACCESS_SECONDS) as link:
                for index, key in keys.items():
                    self._compare(loan, link, f"buffer {lender}/{index}", Key.from_dict(key), expected)

    def _compare(self, loan: Loan, link: Link, where: str, key: Key, expected: bytes) -> None:
        try:
            found = link.read(key, 0, len(expected))
            link.write(key, 0, loan.mark)
        except PondError as error:
            loan.wrong.append(f"{where}: {error.message}")
            return
        if found != expected:
            loan.wrong.append(f"{where} holds {found!r} instead of {expected!r}")

    def drop(self) -> None:
        """Give all back that is held; what nobody answers for when the run ends is on its way until the next time."""
        while self.held:
            loan = self.held.pop()
            if loan.acknowledged is not None:
                self._look(loan, loan.mark)
            loan.returned = self._recorder.now()
            lives = sorted({(lender, life) for lender, life, _ in loan.buffers})
            self._leaving += [Return(loan, *life, self._caller.new_id()) for life in lives]
        self._give_all_back()

    def _give_all_back(self) -> None:
        self._leaving = [item for item in self._leaving if not self._give_back(item)]

    def _give_back(self, item: Return) -> bool:
        """Tell whether it is known to be back."""
        loan, indexes = item.loan, item.indexes
        about = {"operation_id": item.operation_id, "consumer_uuid": "", "allocation_uuid": loan.allocation_uuid}
        named = {"allocation_uuid": loan.allocation_uuid, "lender": item.lender, "incarnation": item.incarnation}

        def leave() -> None:
            gone = self._command(lambda epoch: self._agents.give_back(loan.host, epoch=epoch, indexes=indexes, **named))
            if gone:  # never opened, or closed before: the agent does not tell of it
                # At each repetition it may be more of them, which is another operation then.
                operation_id = str(uuid5(UUID(item.operation_id), str(gone)))
                self._controller.release_buffers(operation_id=operation_id, host=loan.host, indexes=gone, **named)

        if self._caller.persist(Kind.GIVE_BACK, loan.host, about, leave).outcome is not Outcome.UNKNOWN:
            return True
        if not self._caller.over.is_set():
            raise RuntimeError(f"allocation {loan.allocation_uuid} cannot be given back")
        return False

    def settle(self) -> None:
        """Ask again for what nobody knows the outcome of: what was given is held then, what was to go back is back."""
        while self.open:
            self._borrow(*self.open.pop(), tries=float("inf"))
        self._give_all_back()


def lend(rack: Rack) -> None:
    """Have each agent's host lend, and wait until the ledger knows."""
    for host in AGENTS:
        _patiently(
            lambda host=host: rack.client().delegate_host(name=host, mib=LENT_BUFFERS * BUFFER_MIB, kind="active")
        )
    wanted = dict.fromkeys(AGENTS, LENT_BUFFERS * BUFFER_MIB)
    if not wait_until(lambda: {item.host: item.lent_mib for item in rack.reader.lenders()} == wanted, LEND_SECONDS):
        raise DaemonFailed("the hosts do not lend; see the agents' logs")


def take_back(rack: Rack) -> bool:
    """Have each host take all back, without force; returns whether all of it is its own again."""
    for item in rack.reader.lenders():
        _patiently(
            lambda item=item: rack.client().reclaim_host(name=item.host, mib=item.lent_mib, seconds=10 * LEND_SECONDS)
        )
    return wait_until(lambda: not rack.reader.lenders(), LEND_SECONDS, 0.5) and all(
        not rack.agent_client().get_lending(host)["buffers"] for host in AGENTS
    )


def _patiently(call: Callable[[], object]) -> None:
    """Call until there is an answer."""
    pause = threading.Event()
    for _ in range(int(LEND_SECONDS)):
        try:
            call()
        except NO_ANSWER:
            pause.wait(1.0)
        else:
            return
    raise DaemonFailed("no controller answers")
