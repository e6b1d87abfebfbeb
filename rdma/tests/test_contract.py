"""What every transport does. A new driver adds one factory to HARNESSES in harness.py and passes unchanged."""

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from pondstack.domain.errors import BadRequest, InUse, NotFound
from pondstack_rdma.base import Lender, Link, Transport
from pondstack_rdma.errors import (
    AccessRefused,
    KeyRevoked,
    OutOfBounds,
    PartialBatch,
    TransportGone,
    TransportTimeout,
    UnknownKey,
    WrongBorrower,
)
from pondstack_rdma.model import Key, Operation, Read, Region, Ticket, Write

from .harness import (
    DEADLINE_SECONDS,
    HARNESSES,
    PAGE,
    SHORT_SECONDS,
    SIZE,
    LenderProcess,
    connect,
    open_descriptors,
    pattern,
    wait_for,
)

BEYOND = [(SIZE, 1), (SIZE - 1, 2), (-1, 1), (-SIZE, SIZE), (2**31, 1), (2**63 - 1, 8), (2**64 - 4, 8), (-(2**63), 8)]
"""Offsets and lengths outside a region, those included that wrap around in 32 and 64 bits."""


@dataclass
class Rig:
    """A lender in this process, a region of it, and a borrower with a key of it."""

    transport: Transport
    lender: Lender
    region: Region
    key: Key
    link: Link

    def borrow(self, borrower: str) -> Link:
        """Connect another borrower."""
        return connect(self.transport, self.lender.admit(borrower))


@pytest.fixture(params=HARNESSES, ids=lambda factory: factory.__name__)
def transport(request: pytest.FixtureRequest, tmp_path: Path) -> Transport:
    made: Transport = request.param(tmp_path)
    return made


@pytest.fixture
def rig(transport: Transport) -> Iterator[Rig]:
    with transport.lend("lender1") as lender:
        region = lender.register(SIZE)
        key = lender.export(region, "host1")
        with connect(transport, lender.admit("host1")) as link:
            yield Rig(transport, lender, region, key, link)


@pytest.fixture
def process(transport: Transport, tmp_path: Path) -> Iterator[LenderProcess]:
    """A lender in a process of its own."""
    made = LenderProcess(transport.characteristics.driver, tmp_path)
    yield made
    made.close()


def test_what_is_written_is_read(rig: Rig) -> None:
    data = pattern(1, 3 * PAGE)
    rig.link.write(rig.key, PAGE - 5, data)
    rig.link.flush()
    assert rig.link.read(rig.key, PAGE - 5, len(data)) == data
    assert rig.lender.load(rig.region, PAGE - 5, len(data)) == data
    assert rig.link.read(rig.key, 0, PAGE - 5) == bytes(PAGE - 5)


def test_what_the_lender_stores_is_read(rig: Rig) -> None:
    rig.lender.store(rig.region, SIZE - 3, b"end")
    into = bytearray(b"....")
    rig.link.read_into(rig.key, SIZE - 3, memoryview(into)[:3])
    assert into == b"end."


def test_nothing_is_a_legal_length(rig: Rig) -> None:
    rig.link.write(rig.key, SIZE, b"")
    assert rig.link.read(rig.key, 0, 0) == b""
    rig.link.batch([])


def test_a_batch_in_random_order(rig: Rig) -> None:
    dice = random.Random(7)
    pages = {page: pattern(page, PAGE) for page in dice.sample(range(SIZE // PAGE), SIZE // PAGE)}
    rig.link.batch([Write(rig.key, page * PAGE, data) for page, data in pages.items()])
    buffers = {page: bytearray(PAGE) for page in dice.sample(sorted(pages), len(pages))}
    rig.link.batch([Read(rig.key, page * PAGE, buffer) for page, buffer in buffers.items()])
    assert buffers == pages


def test_a_batch_is_in_order(rig: Rig) -> None:
    before, after = bytearray(1), bytearray(1)
    key = rig.key
    rig.link.batch([Write(key, 9, b"a"), Read(key, 9, before), Write(key, 9, b"b"), Read(key, 9, after)])
    assert (before, after) == (b"a", b"b")


def test_a_batch_ends_at_the_first_failure(rig: Rig) -> None:
    late = bytearray(b"late")
    operations: list[Operation] = [
        Write(rig.key, 0, b"first"),
        Write(rig.key, SIZE, b"beyond"),
        Write(rig.key, 8, b"third"),
        Read(rig.key, 0, late),
    ]
    with pytest.raises(PartialBatch, match="1 of 4") as caught:
        rig.link.batch(operations)
    assert caught.value.done == 1
    assert isinstance(caught.value.reason, OutOfBounds)
    assert rig.lender.load(rig.region, 0, 13) == b"first" + bytes(8)
    assert late == b"late"


def test_what_a_driver_cannot_take_is_refused_as_a_whole(rig: Rig) -> None:
    limits = rig.transport.characteristics
    with pytest.raises(BadRequest, match=f"takes {limits.max_batch} operations"):
        rig.link.batch([Write(rig.key, 0, b"x")] * (limits.max_batch + 1))
    with pytest.raises(BadRequest, match="bytes per operation"):
        rig.link.write(rig.key, 0, bytes(limits.max_message_bytes + 1))
    with pytest.raises(BadRequest, match="writable"):
        rig.link.read_into(rig.key, 0, memoryview(b"constant"))
    with pytest.raises(BadRequest, match="contiguous"):
        rig.link.write(rig.key, 0, memoryview(b"a.b.")[::2])
    assert rig.lender.load(rig.region, 0, 8) == bytes(8)


@pytest.mark.parametrize(("offset", "length"), BEYOND)
def test_out_of_bounds_is_refused(rig: Rig, offset: int, length: int) -> None:
    neighbour = rig.lender.register(SIZE)
    rig.lender.store(neighbour, 0, pattern(3, SIZE))
    rig.lender.store(rig.region, 0, pattern(4, SIZE))
    with pytest.raises(OutOfBounds):
        rig.link.write(rig.key, offset, b"x" * length)
    with pytest.raises(OutOfBounds):
        rig.link.read_into(rig.key, offset, bytearray(length))
    with pytest.raises(OutOfBounds):
        rig.link.read(rig.key, offset, length)
    assert rig.lender.load(neighbour, 0, SIZE) == pattern(3, SIZE)
    assert rig.lender.load(rig.region, 0, SIZE) == pattern(4, SIZE)


@pytest.mark.parametrize("length", [-1, -(2**63), 2**63, 2**64 + 1, 2**200])
def test_a_length_that_is_none_is_refused_before_memory_is_taken(rig: Rig, length: int) -> None:
    with pytest.raises(OutOfBounds):
        rig.link.read(rig.key, 0, length)


@pytest.mark.parametrize("offset", [2**64, -(2**64) - 1, pytest.param(10**5000, id="huge")])
def test_an_offset_that_no_device_knows_is_refused(rig: Rig, offset: int) -> None:
    with pytest.raises(OutOfBounds):
        rig.link.write(rig.key, offset, b"x")


def forged(key: Key) -> st.SearchStrategy[Key]:
    """Keys that are almost right: one part of a real one was changed."""
    bits = st.integers(0, 8 * len(key.token) - 1)
    flipped = bits.map(lambda bit: (int.from_bytes(key.token, "little") ^ (1 << bit)).to_bytes(16, "little"))
    return st.one_of(
        flipped.map(lambda token: replace(key, token=token)),
        st.binary(max_size=64).filter(lambda token: token != key.token).map(lambda token: replace(key, token=token)),
        st.integers(-(2**70), 2**70).filter(lambda n: n != key.number).map(lambda n: replace(key, number=n)),
        st.integers(-(2**70), 2**70).filter(lambda n: n != key.size_bytes).map(lambda n: replace(key, size_bytes=n)),
        st.text(max_size=40).filter(lambda name: name != key.borrower).map(lambda name: replace(key, borrower=name)),
    )


@seed(20181)
@settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_forged_key_is_refused_and_disturbs_nothing(rig: Rig, data: st.DataObject) -> None:
    rig.lender.store(rig.region, 0, pattern(5, SIZE))
    key = data.draw(forged(rig.key))
    offset = data.draw(st.integers(0, SIZE - 8))
    with pytest.raises(AccessRefused):
        rig.link.write(key, offset, b"overwrit")
    with pytest.raises(AccessRefused):
        rig.link.read_into(key, offset, bytearray(8))
    assert rig.link.read(rig.key, 0, SIZE) == pattern(5, SIZE)


def test_a_key_of_another_lender_is_unknown(rig: Rig) -> None:
    with rig.transport.lend("lender2") as other:
        key = other.export(other.register(SIZE), "host1")
        with pytest.raises(UnknownKey):
            rig.link.write(key, 0, b"x")


def test_a_ticket_that_is_not_right_does_not_connect(rig: Rig) -> None:
    ticket = rig.lender.admit("host1")
    for wrong in (replace(ticket, secret=bytes(16)), replace(ticket, secret=b""), replace(ticket, borrower="host2")):
        with pytest.raises(WrongBorrower, match="ask for a new one"):
            connect(rig.transport, wrong)
    assert rig.lender.admit("host1") == ticket


def test_another_borrowers_key_is_refused(rig: Rig) -> None:
    rig.link.write(rig.key, 0, b"of host1")
    with rig.borrow("host2") as thief:
        with pytest.raises(WrongBorrower, match="host2"):
            thief.read(rig.key, 0, 8)
        with pytest.raises(AccessRefused):
            thief.write(replace(rig.key, borrower="host2"), 0, b"of host2")
    assert rig.link.read(rig.key, 0, 8) == b"of host1"


def test_a_revoked_key_is_refused_at_once_and_others_are_not_disturbed(rig: Rig) -> None:
    other = rig.lender.export(rig.lender.register(SIZE), "host2")
    with rig.borrow("host2") as second:
        second.write(other, 0, b"of host2")
        rig.link.write(rig.key, 0, b"of host1")
        assert rig.lender.revoke(rig.key) is True
        for _ in range(2):
            with pytest.raises(KeyRevoked, match="revoked"):
                rig.link.write(rig.key, 0, b"x")
            with pytest.raises(KeyRevoked, match="revoked"):
                rig.link.read_into(rig.key, 0, bytearray(1))
        assert second.read(other, 0, 8) == b"of host2"
        second.write(other, 8, b"goes on")
    assert rig.lender.revoke(rig.key) is False


def test_a_revoked_key_is_refused_by_a_link_that_never_used_it(rig: Rig) -> None:
    rig.lender.revoke(rig.key)
    with pytest.raises(KeyRevoked):
        rig.link.open(rig.key)


def test_a_forged_key_is_not_revoked(rig: Rig) -> None:
    assert rig.lender.revoke(replace(rig.key, token=bytes(16))) is False
    rig.link.write(rig.key, 0, b"goes on")


def test_a_key_is_rotated_without_loss(rig: Rig) -> None:
    rig.link.write(rig.key, 0, b"content")
    fresh = rig.lender.export(rig.region, "host1")
    assert rig.lender.revoke(rig.key)
    with pytest.raises(KeyRevoked):
        rig.link.read(rig.key, 0, 7)
    assert rig.link.read(fresh, 0, 7) == b"content"


def test_the_next_borrower_finds_zeros(rig: Rig) -> None:
    rig.link.write(rig.key, 0, pattern(6, SIZE))
    rig.lender.revoke(rig.key)
    key = rig.lender.export(rig.region, "host2")
    with rig.borrow("host2") as second:
        assert second.read(key, 0, SIZE) == bytes(SIZE)
        second.write(key, 0, b"of host2")
        with pytest.raises(KeyRevoked):
            rig.link.write(rig.key, 0, b"of host1")
        assert second.read(key, 0, 8) == b"of host2"


def test_writes_that_race_with_a_revocation_never_reach_the_next_borrower(rig: Rig) -> None:
    """Again and again: host1 writes as fast as it can while its key ends and host2 gets the region."""
    with rig.borrow("host2") as second:
        key = rig.key
        for _ in range(20):
            started = threading.Event()
            with ThreadPoolExecutor(1) as pool:
                writing = pool.submit(write_until_refused, rig.link, key, started)
                assert started.wait(DEADLINE_SECONDS)
                rig.lender.revoke(key)
                next_key = rig.lender.export(rig.region, "host2")
                assert isinstance(writing.result(DEADLINE_SECONDS), KeyRevoked)
            assert second.read(next_key, 0, SIZE) == bytes(SIZE)
            rig.lender.revoke(next_key)
            key = rig.lender.export(rig.region, "host1")


def write_until_refused(link: Link, key: Key, started: threading.Event) -> AccessRefused:
    """Fill a region again and again; returns the refusal."""
    data = b"\xff" * SIZE
    try:
        while True:
            link.write(key, 0, data)
            started.set()
    except AccessRefused as error:
        return error


def test_a_region_is_given_back_only_without_keys(rig: Rig) -> None:
    with pytest.raises(InUse, match="revoke them first"):
        rig.lender.deregister(rig.region)
    rig.link.write(rig.key, 0, b"still there")
    rig.lender.revoke(rig.key)
    assert rig.lender.deregister(rig.region) is True
    assert rig.lender.deregister(rig.region) is False
    with pytest.raises(NotFound, match="deregistered"):
        rig.lender.export(rig.region, "host1")


@pytest.mark.parametrize("size", [0, -PAGE, PAGE + 1])
def test_a_region_is_whole_pages(rig: Rig, size: int) -> None:
    with pytest.raises(BadRequest, match=f"{PAGE} bytes"):
        rig.lender.register(size)


def test_forgetting_twice_and_coming_back(rig: Rig) -> None:
    rig.link.write(rig.key, 0, b"kept")
    rig.link.forget(rig.key)
    rig.link.forget(rig.key)
    assert rig.link.read(rig.key, 0, 4) == b"kept"


def test_close_is_idempotent_and_ends_all(rig: Rig) -> None:
    rig.link.open(rig.key)
    for _ in range(2):
        rig.link.close()
    for use in (rig.link.flush, lambda: rig.link.open(rig.key), lambda: rig.link.write(rig.key, 0, b"x")):
        with pytest.raises(TransportGone):
            use()
    rig.link.forget(rig.key)
    ticket = rig.lender.admit("host1")
    for _ in range(2):
        rig.lender.close()
    with pytest.raises(TransportGone):
        rig.lender.admit("host1")
    with pytest.raises(TransportGone):
        rig.lender.register(SIZE)
    with pytest.raises(TransportGone):
        connect(rig.transport, ticket)


def test_a_lender_that_closes_lets_nobody_in(rig: Rig) -> None:
    rig.link.open(rig.key)
    rig.lender.close()
    with pytest.raises((TransportGone, KeyRevoked)):
        rig.link.write(rig.key, 0, b"x")
    with pytest.raises(TransportGone):
        rig.link.flush()


def test_a_killed_lender_is_gone_within_the_deadline(transport: Transport, process: LenderProcess) -> None:
    ticket, key = process.lend("host1")
    with connect(transport, ticket) as link:
        link.write(key, 0, b"x")
        process.kill()
        begun = time.monotonic()
        for use in (lambda: link.read(key, 0, 1), lambda: link.write(key, 0, b"x"), link.flush):
            with pytest.raises(TransportGone):
                use()
        assert time.monotonic() - begun < DEADLINE_SECONDS
    with pytest.raises(TransportGone, match="agent"):
        connect(transport, ticket)


def test_a_lender_comes_back_under_the_same_name(transport: Transport, process: LenderProcess) -> None:
    ticket, key = process.lend("host1")
    process.kill()
    with transport.lend("process") as lender:
        with connect(transport, lender.admit("host1")) as link, pytest.raises(UnknownKey):
            link.open(key)
    with pytest.raises((WrongBorrower, TransportGone)):
        connect(transport, ticket)


def test_a_frozen_lender(transport: Transport, process: LenderProcess) -> None:
    """It serves where the driver says so, without a tick of its CPU; elsewhere the borrower is told in time."""
    ticket, key = process.lend("host1")
    data = pattern(8, SIZE)
    with connect(transport, ticket, SHORT_SECONDS if not transport.characteristics.serves_frozen else 10) as link:
        link.open(key)
        with process.frozen():
            ticks = process.cpu_ticks()
            if transport.characteristics.serves_frozen:
                write_and_read_pages(link, key, data)
            else:
                with pytest.raises(TransportTimeout, match="no answer within"):
                    link.write(key, 0, data)
            assert process.cpu_ticks() == ticks
        if transport.characteristics.serves_frozen:
            assert bytes.fromhex(process.ask("load", region=0, offset=0, size=SIZE)) == data


def write_and_read_pages(link: Link, key: Key, data: bytes) -> None:
    """Write and read a region page by page in a seeded random order, and compare."""
    order = random.Random(9).sample(range(0, len(data), PAGE), len(data) // PAGE)
    for offset in order:
        link.write(key, offset, data[offset : offset + PAGE])
    link.flush()
    for offset in reversed(order):
        assert link.read(key, offset, PAGE) == data[offset : offset + PAGE]


def test_a_frozen_lender_takes_no_new_borrower(transport: Transport, process: LenderProcess) -> None:
    ticket, _ = process.lend("host1")
    with process.frozen(), pytest.raises(TransportTimeout, match="frozen"):
        connect(transport, ticket, SHORT_SECONDS)


def test_nothing_is_left_open(transport: Transport) -> None:
    before = open_descriptors()
    with transport.lend("lender1") as lender:
        for turn in range(3):
            region = lender.register(SIZE)
            key = lender.export(region, "host1")
            with connect(transport, lender.admit("host1")) as link:
                link.write(key, 0, b"x")
                with pytest.raises(UnknownKey):
                    link.open(replace(key, number=10**6 + turn))
                lender.revoke(key)
                with pytest.raises(KeyRevoked):
                    link.write(key, 0, b"x")
            with pytest.raises(WrongBorrower):
                connect(transport, replace(lender.admit("host1"), secret=b"wrong"))
            lender.deregister(region)
    wait_for(lambda: open_descriptors() <= before)


def test_a_revoked_region_leaves_nothing_open_at_either_side(rig: Rig) -> None:
    rig.link.open(rig.key)
    before = len(open_descriptors())
    for _ in range(5):
        region = rig.lender.register(SIZE)
        key = rig.lender.export(region, "host1")
        rig.link.write(key, 0, b"x")
        rig.lender.revoke(key)
        with pytest.raises(KeyRevoked):
            rig.link.read(key, 0, 1)
        rig.link.forget(key)
        rig.lender.deregister(region)
    assert len(open_descriptors()) == before


def test_several_threads_share_a_link(rig: Rig) -> None:
    """Each has pages of its own; one more thread is refused all the time, and disturbs nobody."""
    threads, rounds = 4, 25
    stop = threading.Event()

    def work(mine: int) -> None:
        for turn in range(rounds):
            data = pattern(mine * rounds + turn, PAGE)
            page = mine + threads * (turn % (SIZE // PAGE // threads))
            rig.link.write(rig.key, page * PAGE, data)
            into = bytearray(PAGE)
            rig.link.batch([Read(rig.key, page * PAGE, into)])
            assert into == data

    def disturb() -> int:
        count = 0
        while not stop.is_set():
            with pytest.raises(AccessRefused):
                rig.link.write(replace(rig.key, token=count.to_bytes(16, "little")), 0, b"forged")
            count += 1
        return count

    with ThreadPoolExecutor(threads + 1) as pool:
        disturbing = pool.submit(disturb)
        try:
            for done in [pool.submit(work, mine) for mine in range(threads)]:
                done.result(DEADLINE_SECONDS)
        finally:
            stop.set()
        assert disturbing.result(DEADLINE_SECONDS) >= 0


def test_a_close_amid_other_threads_is_clean(rig: Rig) -> None:
    """They end with TransportGone: never a fault, never another file's bytes."""
    started = threading.Barrier(4)

    def work() -> None:
        started.wait(DEADLINE_SECONDS)
        with pytest.raises(TransportGone):
            write_for_ever(rig.link, rig.key)

    with ThreadPoolExecutor(3) as pool:
        working = [pool.submit(work) for _ in range(3)]
        started.wait(DEADLINE_SECONDS)
        rig.link.close()
        for done in working:
            done.result(DEADLINE_SECONDS)


def write_for_ever(link: Link, key: Key) -> None:
    """Write until that raises."""
    while True:
        link.write(key, 0, bytes(PAGE))


def test_tickets_and_keys_cross_json(rig: Rig) -> None:
    ticket = rig.lender.admit("host1")
    assert Ticket.from_dict(ticket.to_dict()) == ticket
    assert Key.from_dict(rig.key.to_dict()) == rig.key
    assert "secret" not in repr(ticket)
    assert "token" not in repr(rig.key)
