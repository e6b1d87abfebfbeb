"""What a host lends, in a history: the real BufferTable and rules of keys, in a process that outlives the agent."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pondstack.domain.errors import NotFound, PondError
from pondstack.domain.lending import LenderKind
from pondstack_agent.helper.client import HelperGone, HelperSilent
from pondstack_agent.lending.buffer_table import BufferTable
from pondstack_agent.lending.model import Holding
from pondstack_rdma.base import Link, Transport
from pondstack_rdma.errors import RevokeFailed, TransportGone
from pondstack_rdma.keyring import Keyring
from pondstack_rdma.lending import SoftwareLender
from pondstack_rdma.model import Characteristics, Key, Operation, Read, Region, Ticket

from ..invariants import Violation
from .plan import BUFFER_MIB

if TYPE_CHECKING:
    from ..host import SimHost

DRIVER = "sim"
MARK_BYTES = 32
"""So much of a buffer is kept: who wrote it last."""


class SimMemory:
    """The first bytes of a region."""

    locked = True

    def __init__(self) -> None:
        self._bytes = bytearray(MARK_BYTES)

    @property
    def view(self) -> memoryview:
        """All of it."""
        return memoryview(self._bytes)

    def close(self) -> None:
        """Nothing to give back."""


class SimServer:
    """Where borrowers connect."""

    def __init__(self, address: str) -> None:
        self.address = address

    def close(self) -> None:
        """End."""


class SimLender(SoftwareLender[SimMemory]):
    """The lender side of the transport. `ended(key, region)`, `returned(region)`: told of an end before it is one."""

    def __init__(
        self, life: str, rng: Random, ended: Callable[[Key, int], None], returned: Callable[[Region], None]
    ) -> None:
        super().__init__(DRIVER, life, Keyring(rng.randbytes))
        self._where = SimServer(life)
        self._ended, self._returned = ended, returned
        self.fails: Callable[[int], bool] = lambda _region: False
        """Whether the device does not end keys of a region now."""

    @property
    def _server(self) -> Any:
        return self._where

    def _allocate(self, size_bytes: int) -> SimMemory:
        del size_bytes
        return SimMemory()

    def _key_ended(self, key: Key) -> None:
        if self.fails(self._region_of[key.number]):
            raise RevokeFailed(f"the device did not end key {key.number}")
        self._ended(key, self._region_of[key.number])

    def _key_made(self, key: Key) -> None:
        self._region_of[key.number] = next(n for k, n in self._keyring._live.values() if k.number == key.number)

    @property
    def _region_of(self) -> dict[int, int]:
        return self.__dict__.setdefault("_regions_of_keys", {})

    def deregister(self, region: Region) -> bool:
        """Give memory back."""
        self._returned(region)
        return super().deregister(region)

    def access(self, borrower: str, key: Key) -> memoryview:
        """Return the memory of a key; raises AccessRefused."""
        return self._check(borrower, key).view

    def greet(self, ticket: Ticket) -> None:
        """Let a borrower in; raises WrongBorrower."""
        self._check_borrower(ticket.borrower, ticket.secret)


class Life:
    """One life of a host's lent memory. `frozen_until`: its CPU does nothing before; what was opened serves on.

    `partly_until`: until then it ends only some of the keys that the controller has it end, and says which.
    """

    def __init__(self, host: "SimHost") -> None:
        assert host.rack.lent
        births = host.rack.lent.births
        self.incarnation = str(UUID(int=births.getrandbits(128), version=4))
        self.host, self.kind, self.frozen_until, self.by_host = host, LenderKind.ACTIVE, 0.0, False
        self.partly_until = 0.0
        watch = host.rack.lent.watch
        self.lender = SimLender(
            self.incarnation,
            births,
            lambda key, region: watch.key_ends(self, key, region - 1),
            lambda region: watch.memory_returns(self, region.number - 1),
        )
        self.book = BufferTable(self.lender, BUFFER_MIB)

    def host_may_take(self) -> bool:
        """Return whether its host's reclaim is past its deadline, and it may help itself."""
        now = self.host.wall_seconds()
        entries = self.host.memory.folder("lending").values()
        return any(e["verb"] == "reclaim" and e["state"] == "pending" and now >= e["ends_at"] for e in entries)

    @property
    def frozen(self) -> bool:
        """Whether it answers nobody now."""
        return self.host.asleep or self.frozen_until > self.host.rack.scheduler.now


class SimClient:
    """pondstack_agent.lending.client.LenderClient of a host of a history."""

    buffer_mib = BUFFER_MIB

    def __init__(self, host: "SimHost") -> None:
        self._host = host

    def start(self) -> None:
        """Start a life, unless there is one."""
        if self._host.life is None:
            self._host.life = Life(self._host)

    def hold(self, seconds: float | None = None) -> Holding:
        """Return what there is."""
        del seconds
        try:
            life = self._life()
        except HelperGone:
            return Holding()
        return Holding(life.incarnation, life.kind, BUFFER_MIB, life.book.buffers())

    def become(self, incarnation: str, kind: LenderKind) -> None:
        """Note the kind."""
        self._life(incarnation).kind = kind

    def register(self, incarnation: str) -> int:
        """Take memory."""
        return self._life(incarnation).book.register()

    def export(self, incarnation: str, indexes: Sequence[int], borrower: str, generations: Any = None) -> Any:
        """Make keys."""
        return self._changed(self._life(incarnation).book.export(indexes, borrower, generations))

    def escrow(self, incarnation: str, indexes: Sequence[int], borrower: str, generations: Any) -> Any:
        """Make keys for one of several borrowers."""
        return self._changed(self._life(incarnation).book.escrow(indexes, borrower, generations))

    def share(self, incarnation: str, indexes: Sequence[int], borrower: str, generations: Any) -> Any:
        """Make keys more for the host that a consumer moves to."""
        return self._changed(self._life(incarnation).book.share(indexes, borrower, generations))

    def revoke(self, incarnation: str, indexes: Sequence[int], generations: Any = None) -> list[int]:
        """End keys; without generations it is the host's own doing."""
        life = self._life(incarnation)
        life.by_host = generations is None
        ended = set(indexes)
        if not life.by_host and life.partly_until > self._host.rack.scheduler.now:
            self._host.rack.scheduler.faults["keys ended in part"] += 1
            ended = set(indexes[: len(indexes) // 2])
        # What its device fails to end the lender tells, too; a region's number is its buffer's and one.
        life.lender.fails = lambda region: region - 1 in set(indexes) - ended
        try:
            return self._changed(life.book.revoke(indexes, generations))
        finally:
            life.lender.fails = lambda _region: False

    def withdraw(self, incarnation: str, indexes: Sequence[int]) -> list[int]:
        """Give memory back."""
        return self._life(incarnation).book.withdraw(indexes)

    def end(self, incarnation: str) -> None:
        """End an empty life."""
        if self._life(incarnation).book.buffers():
            raise Violation("ended_with_buffers", f"{self._host.name} ends a lender that holds something")
        self._host.life = None

    def _life(self, incarnation: str = "") -> Life:
        rack = self._host.rack
        rack.moments.pass_by("lender")
        life = self._host.life
        if life is None:
            raise HelperGone("no lender's process runs")
        if life.frozen:
            rack.scheduler.sleep(1.0)
            raise HelperSilent("the lender's process does not answer")
        if incarnation not in ("", life.incarnation):
            raise NotFound(f"this lender is incarnation {life.incarnation}, not {incarnation}")
        return life

    def _changed(self, answer: Any) -> Any:
        assert self._host.rack.lent
        self._host.rack.lent.watch.look()
        self._host.rack.moments.pass_by("lender")
        return answer


class SimTransport(Transport):
    """How borrowers of a history reach lenders: one-sided. A key says where its memory is.

    So a frozen lender serves whoever was connected before, keys that are disclosed later too.
    """

    characteristics = Characteristics(DRIVER, True, True, "device", True, False, False, 64, 1 << 20, 1 << 20)

    def __init__(self, host: "SimHost") -> None:
        self._host = host

    def lend(self, name: str) -> Any:
        """Lenders are processes of their own here."""
        raise NotImplementedError(name)

    def connect(self, ticket: Ticket, timeout_seconds: float) -> "SimLink":
        """Connect; raises TransportGone, WrongBorrower."""
        del timeout_seconds
        link = SimLink(self._host, ticket)
        life = link.life()
        if life.frozen:
            raise TransportGone(f"lender {life.host.name} is frozen")
        life.lender.greet(ticket)
        return link


class SimLink(Link):
    """A borrower's connection."""

    characteristics = SimTransport.characteristics

    def __init__(self, host: "SimHost", ticket: Ticket) -> None:
        self._host, self._ticket, self._opened = host, ticket, set[int]()

    def life(self) -> Life:
        """Return the lender's life; raises TransportGone when it is over, or cut off."""
        rack = self._host.rack
        lives = [host.life for host in rack.hosts.values() if host.life is not None]
        for life in lives:
            reached = rack.network.reaches(life.host.name) and rack.network.reaches(self._host.name)
            if life.incarnation == self._ticket.address and reached:
                return life
        raise TransportGone("the lender is gone")

    def open(self, key: Key) -> None:
        """Make a key ready."""
        life = self.life()
        life.lender.access(self._ticket.borrower, key)
        self._opened.add(key.number)

    def forget(self, key: Key) -> None:
        """Forget it."""
        self._opened.discard(key.number)

    def flush(self) -> None:
        """All is there at once."""
        self.life()

    def close(self) -> None:
        """Hang up."""
        self._opened.clear()

    def _run(self, operations: Sequence[Operation], local: Sequence[memoryview]) -> tuple[int, Any]:
        for done, (operation, buffer) in enumerate(zip(operations, local, strict=True)):
            try:
                self.open(operation.key)
                memory = self.life().lender.access(self._ticket.borrower, operation.key)
            except PondError as error:
                return done, error
            if isinstance(operation, Read):
                buffer[:] = memory[operation.offset : operation.offset + len(buffer)]
            else:
                memory[operation.offset : operation.offset + len(buffer)] = buffer
        return len(operations), None
