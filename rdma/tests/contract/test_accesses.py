"""What every transport does with accesses: reads, writes, batches, and their bounds."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from pondstack.domain.errors import BadRequest, NotFound
from pondstack_rdma.errors import OutOfBounds, PartialBatch
from pondstack_rdma.model import Operation, Read, Write
from rdma.tests.harness import DEADLINE_SECONDS, PAGE, SIZE, Rig, pattern

BEYOND = [(SIZE, 1), (SIZE - 1, 2), (-1, 1), (-SIZE, SIZE), (2**31, 1), (2**63 - 1, 8), (2**64 - 4, 8), (-(2**63), 8)]
"""Offsets and lengths outside a region, those included that wrap around in 32 and 64 bits."""


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


def test_a_lender_sees_what_is_written_while_it_watches(rig: Rig) -> None:
    assert not rig.lender.watch(rig.region, 8, bytes(8), 0.001, 3)
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(rig.lender.watch, rig.region, 8, bytes(8), 0.001, 10**6)
        rig.link.write(rig.key, 0, b"elsewher")
        rig.link.write(rig.key, 16, b"elsewher")
        with pytest.raises(TimeoutError):
            watching.result(0.05)
        rig.link.write(rig.key, 15, b"x")
        assert watching.result(DEADLINE_SECONDS)
    assert rig.lender.watch(rig.region, 15, b"y", 0.001, 10**6)
    with pytest.raises(OutOfBounds):
        rig.lender.watch(rig.region, SIZE - 7, bytes(8), 0.001, 1)


def test_memory_that_is_watched_can_be_given_back(rig: Rig) -> None:
    """Its watcher sees what comes next: zeros, then the end of the region."""
    rig.link.write(rig.key, 0, b"x")
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(rig.lender.watch, rig.region, 0, b"x", 0.001, 10**6)
        assert rig.lender.revoke(rig.key)
        assert watching.result(DEADLINE_SECONDS)
        watching = pool.submit(rig.lender.watch, rig.region, 0, b"\0", 0.001, 10**6)
        assert rig.lender.deregister(rig.region)
        with pytest.raises(NotFound):
            watching.result(DEADLINE_SECONDS)
