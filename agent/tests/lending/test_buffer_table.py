"""The book of a lender's process, over a transport that is a few dicts, and over TCP."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from pondstack.domain.errors import Conflict, InUse, NotFound
from pondstack.domain.units import MIB
from pondstack_agent.lending.buffer_table import BufferTable
from pondstack_agent.lending.model import Buffer
from pondstack_rdma.base import Lender
from pondstack_rdma.errors import KeyRevoked, RegistrationFailed, RevokeFailed
from pondstack_rdma.model import Key, Region, Ticket
from pondstack_rdma.tcp import TcpTransport


@dataclass
class FakeLender(Lender):
    """Regions and keys in dicts; after `room` regions or keys there is no memory left."""

    room: int = 100
    regions: dict[int, Region] = field(default_factory=dict)
    keys: dict[int, Key] = field(default_factory=dict)
    last: int = 0
    failing: set[int] = field(default_factory=set)
    """Numbers of keys that the device does not end."""

    def _number(self) -> int:
        if not self.room:
            raise RegistrationFailed("no memory")
        self.room -= 1
        self.last += 1
        return self.last

    def admit(self, borrower: str) -> Ticket:
        return Ticket("fake", "here", borrower, b"secret")

    def register(self, size_bytes: int) -> Region:
        region = Region(self._number(), size_bytes, True)
        self.regions[region.number] = region
        return region

    def export(self, region: Region, borrower: str) -> Key:
        key = Key(self._number(), borrower, region.size_bytes, b"token")
        self.keys[key.number] = key
        return key

    def revoke(self, key: Key) -> bool:
        if key.number in self.failing:
            raise RevokeFailed("ibv_dereg_mr: EIO")
        return self.keys.pop(key.number, None) is not None

    def dismiss(self, borrower: str) -> bool:
        raise NotImplementedError

    def deregister(self, region: Region) -> bool:
        return self.regions.pop(region.number, None) is not None

    def load(self, region: Region, offset: int, size: int) -> bytes:
        raise NotImplementedError

    def store(self, region: Region, offset: int, data: object) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


@pytest.fixture
def lender() -> FakeLender:
    return FakeLender()


@pytest.fixture
def book(lender: FakeLender) -> BufferTable:
    """Three buffers."""
    made = BufferTable(lender, 64)
    assert [made.register() for _ in range(3)] == [0, 1, 2]
    return made


def test_a_lost_answer_is_repeated(book: BufferTable, lender: FakeLender) -> None:
    first = book.export([0, 2], "host2")
    assert list(first["keys"]) == ["0", "2"]
    assert book.export([0, 2], "host2") == first
    assert len(lender.keys) == 2


def test_a_buffer_is_one_borrowers(book: BufferTable, lender: FakeLender) -> None:
    book.export([1], "host2")
    with pytest.raises(InUse, match="buffer 1 has a live key of borrower host2"):
        book.export([0, 1], "host3")
    assert len(lender.keys) == 1
    with pytest.raises(NotFound):
        book.export([0, 7], "host3")
    assert len(lender.keys) == 1


def test_no_memory_for_a_key_leaves_what_was(book: BufferTable, lender: FakeLender) -> None:
    book.export([0], "host2")
    lender.room = 1
    with pytest.raises(RegistrationFailed):
        book.export([0, 1, 2], "host2")
    assert [buffer.borrower for buffer in book.buffers()] == ["host2", "", ""]
    assert len(lender.keys) == 1


def test_a_new_key_is_a_new_generation(book: BufferTable) -> None:
    first = book.export([0], "host2")["keys"]["0"]
    assert book.revoke([0]) == [0]
    assert book.buffers()[0] == Buffer(0, "", 1, backed=False, locked=True)
    assert book.export([0], "host3")["keys"]["0"] != first
    assert book.buffers()[0] == Buffer(0, "host3", 2, backed=True, locked=True)


def test_memory_is_not_given_back_while_a_key_lives(book: BufferTable, lender: FakeLender) -> None:
    book.export([1], "host2")
    with pytest.raises(InUse, match=r"\[1\] live"):
        book.withdraw([0, 1])
    assert len(lender.regions) == 3
    assert book.revoke([1, 9]) == [1, 9]
    assert book.withdraw([0, 1, 9]) == [0, 1, 9]
    assert [buffer.index for buffer in book.buffers()] == [2]
    assert book.register() == 3  # a number does not come again


def test_a_key_that_the_device_does_not_end_is_told(book: BufferTable, lender: FakeLender) -> None:
    key = Key.from_dict(book.export([0, 1], "host2")["keys"]["0"])
    lender.failing = {key.number}
    for _ in range(2):
        assert book.revoke([0, 1]) == [1]
        assert [buffer.failed for buffer in book.buffers()] == ["ibv_dereg_mr: EIO", "", ""]
    for borrower in ("host2", "host3"):
        with pytest.raises(InUse, match="aside: ibv_dereg_mr"):
            book.export([0], borrower)
    with pytest.raises(InUse):
        book.withdraw([0])
    lender.failing = set()
    assert book.revoke([0]) == [0]
    assert book.buffers()[0] == Buffer(0, "", 1, backed=False, locked=True)
    assert book.export([0], "host3")


def test_a_lender_that_does_not_know_a_key_has_not_ended_it(book: BufferTable, lender: FakeLender) -> None:
    book.export([0], "host2")
    lender.keys.clear()
    assert book.revoke([0]) == []
    assert "does not know key" in book.buffers()[0].failed


def test_the_holding_of_a_former_process_has_no_failures() -> None:
    told = Buffer(0, "host2", 1).to_wire(64)
    del told["failed"]
    assert Buffer.from_wire(told) == Buffer(0, "host2", 1)


@pytest.fixture
def tcp() -> Iterator[tuple[TcpTransport, BufferTable]]:
    transport = TcpTransport()
    with transport.lend("host1") as lender:
        yield transport, BufferTable(lender, 1)


def test_over_tcp(tcp: tuple[TcpTransport, BufferTable]) -> None:
    transport, book = tcp
    book.register()
    answer = book.export([0], "host2")
    key = Key.from_dict(answer["keys"]["0"])
    with transport.connect(Ticket.from_dict(answer["ticket"]), 10.0) as link:
        link.write(key, MIB - 2, b"ab")
        assert link.read(key, MIB - 2, 2) == b"ab"
        book.revoke([0])
        with pytest.raises(KeyRevoked):
            link.read(key, 0, 1)


def test_a_late_revoke_spares_the_key_of_a_later_owner(book: BufferTable) -> None:
    book.export([0], "host2", {0: 1})
    assert book.revoke([0], {0: 1}) == [0]
    book.export([0, 1], "host3", {0: 2, 1: 1})
    assert book.revoke([0, 1], {0: 1, 1: 1}) == [1], "that of buffer 0 is another owner's"
    assert [buffer.borrower for buffer in book.buffers()] == ["host3", "", ""]


def test_a_late_export_makes_no_key(book: BufferTable, lender: FakeLender) -> None:
    book.revoke([0], {0: 1})
    with pytest.raises(Conflict, match="late"):
        book.export([0], "host2", {0: 1})
    book.export([0], "host3", {0: 3})
    with pytest.raises(Conflict, match="late"):
        book.export([1, 0], "host3", {1: 1, 0: 2})
    assert len(lender.keys) == 1


def test_a_promised_key_becomes_its_owners(book: BufferTable, lender: FakeLender) -> None:
    promised = book.export([0], "host2", {0: 1})
    assert book.export([0], "host2", {0: 2}) == promised
    assert book.revoke([0], {0: 1}) == [], "what ended the promise is late"
    assert len(lender.keys) == 1
    assert book.buffers()[0].generation == 2


def escrow(book: BufferTable, borrower: str, generation: int = 1, indexes: tuple[int, ...] = (0, 1, 2)) -> dict:
    return book.escrow(indexes, borrower, dict.fromkeys(indexes, generation))["keys"]


def borrowers(book: BufferTable, index: int = 0) -> list[str]:
    return sorted(key.borrower for key in book.keys(index))


def test_in_escrow_a_buffer_has_a_key_for_each_borrower(book: BufferTable, lender: FakeLender) -> None:
    first, second = escrow(book, "host2"), escrow(book, "host3")
    assert escrow(book, "host2") == first
    assert first["0"]["number"] != second["0"]["number"]
    assert len(lender.keys) == 6
    assert book.escrow([], "host4", {}) == {"ticket": lender.admit("host4").to_dict(), "keys": {}}
    assert (borrowers(book), [buffer.borrower for buffer in book.buffers()]) == (["host2", "host3"], ["host2"] * 3)


def test_who_gets_a_buffer_in_escrow_keeps_its_key_and_the_others_end(book: BufferTable) -> None:
    keys = escrow(book, "host3")
    escrow(book, "host2")
    assert book.export([1], "host3", {1: 4})["keys"] == {"1": keys["1"]}
    assert (borrowers(book, 1), borrowers(book, 0)) == (["host3"], ["host2", "host3"])
    with pytest.raises(InUse, match="host3, who uses it"):
        escrow(book, "host2", 5, (1,))
    assert book.revoke([1], {1: 3}) == [], "what comes late ends no key of the owner's"
    assert book.revoke([1], {1: 4}) == [1]
    assert escrow(book, "host2", 5, (1,))


def test_a_stranger_gets_no_buffer_in_escrow(book: BufferTable) -> None:
    escrow(book, "host2")
    with pytest.raises(InUse):
        book.export([0], "host3", {0: 2})
    assert borrowers(book) == ["host2"]


def test_all_keys_in_escrow_end_together_and_with_them_the_memory(book: BufferTable) -> None:
    escrow(book, "host2")
    escrow(book, "host3")
    with pytest.raises(InUse, match="live"):
        book.withdraw([0])
    assert book.revoke([0, 1], {0: 1, 1: 0}) == [0]
    assert [buffer.backed for buffer in book.buffers()] == [False, True, True]
    assert borrowers(book, 1) == ["host2", "host3"]
    assert book.withdraw([0]) == [0]


def test_keys_in_escrow_are_of_one_generation(book: BufferTable) -> None:
    escrow(book, "host2", 2)
    for late in (1, 3):
        with pytest.raises(Conflict, match="asked for late"):
            escrow(book, "host3", late)
    book.revoke([0], {0: 5})
    with pytest.raises(Conflict, match="it has had 5"):
        escrow(book, "host3", 5, (0,))
    assert escrow(book, "host3", 6, (0,))


def test_no_memory_for_a_key_in_escrow_leaves_those_of_others(book: BufferTable, lender: FakeLender) -> None:
    escrow(book, "host2")
    lender.room = 1
    with pytest.raises(RegistrationFailed):
        escrow(book, "host3")
    assert [borrowers(book, index) for index in range(3)] == [["host2"]] * 3


def test_a_key_of_another_that_the_device_does_not_end_keeps_the_buffer_aside(
    book: BufferTable, lender: FakeLender
) -> None:
    escrow(book, "host2")
    keys = escrow(book, "host3")
    lender.failing = {book.keys(0)[0].number}
    with pytest.raises(InUse, match="a key of another borrower lives"):
        book.export([0], "host3", {0: 2})
    assert book.buffers()[0].failed
    assert book.revoke([0], {0: 2}) == []
    lender.failing = set()
    assert book.revoke([0], {0: 2}) == [0]
    assert not book.buffers()[0].failed
    assert keys["0"]["borrower"] == "host3"


def test_a_buffer_in_use_has_a_key_for_the_host_that_its_consumer_moves_to(book: BufferTable) -> None:
    first = book.export([0], "host2", {0: 3})["keys"]
    second = book.share([0], "host3", {0: 3})["keys"]
    assert first["0"]["number"] != second["0"]["number"]
    assert book.share([0], "host3", {0: 3})["keys"] == second
    assert book.export([0], "host3", {0: 4})["keys"]["0"]["number"] == second["0"]["number"]
    assert borrowers(book) == ["host3"], "the former owner's has ended"


def test_a_move_that_fails_leaves_the_owner_its_key(book: BufferTable) -> None:
    first = book.export([0], "host2", {0: 3})["keys"]
    book.share([0], "host3", {0: 3})
    assert book.export([0], "host2", {0: 4})["keys"]["0"]["number"] == first["0"]["number"]
    assert borrowers(book) == ["host2"]


def test_a_call_from_before_it_was_shared_ends_no_key(book: BufferTable) -> None:
    first = book.export([0], "host2", {0: 3})["keys"]
    second = book.share([0], "host3", {0: 3})["keys"]
    assert book.export([0], "host2", {0: 3})["keys"] == first
    assert book.share([0], "host3", {0: 3})["keys"] == second
    assert borrowers(book) == ["host2", "host3"]
    book.export([0], "host3", {0: 4})
    assert borrowers(book) == ["host3"]


def test_what_is_shared_is_in_use(book: BufferTable) -> None:
    book.export([0], "host2", {0: 3})
    book.share([0], "host3", {0: 3})
    with pytest.raises(InUse):
        escrow(book, "host4", 3, (0,))


def test_only_what_lives_is_shared(book: BufferTable) -> None:
    with pytest.raises(Conflict, match="no key of generation 1"):
        book.share([0], "host3", {0: 1})
    book.export([0, 1], "host2", {0: 3, 1: 3})
    for late in (2, 4):
        with pytest.raises(Conflict, match="its newest one is 3"):
            book.share([0], "host3", {0: late})
    with pytest.raises(Conflict):
        book.share([1, 2], "host3", {1: 3, 2: 3})
    assert borrowers(book, 1) == ["host2"], "all or none"
    with pytest.raises(NotFound):
        book.share([7], "host3", {7: 3})
