"""What every transport does when a lender or a link ends, freezes or dies, and that nothing is left of it."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from pondstack_rack.wait import wait_until
from pondstack_rdma.base import Link, Transport
from pondstack_rdma.errors import AccessRefused, KeyRevoked, TransportGone, TransportTimeout, UnknownKey, WrongBorrower
from pondstack_rdma.model import Key, Read
from rdma.tests.harness import (
    DEADLINE_SECONDS,
    PAGE,
    SHORT_SECONDS,
    SIZE,
    LenderProcess,
    Rig,
    connect,
    impatient,
    open_descriptors,
    pattern,
)


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


def repeat(use: Callable[[], object], ends: float) -> None:
    """Use a link again and again: the kernel may close a killed process's sockets a moment after its end."""
    while time.monotonic() < ends:
        use()


def test_a_killed_lender_is_gone_within_the_deadline(transport: Transport, process: LenderProcess) -> None:
    ticket, key = process.lend("host1")
    with connect(transport, ticket) as link:
        link.write(key, 0, b"x")
        process.kill()
        ends = time.monotonic() + DEADLINE_SECONDS
        for use in (lambda: link.read(key, 0, 1), lambda: link.write(key, 0, b"x"), link.flush):
            with pytest.raises(TransportGone):
                repeat(use, ends)
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
    with connect(transport, ticket) as link:
        link.open(key)
        with process.frozen():
            ticks = process.cpu_ticks()
            if transport.characteristics.serves_frozen:
                write_and_read_pages(link, key, data)
            else:
                with impatient(link), pytest.raises(TransportTimeout, match="no answer within"):
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
    with transport.lend("first"):  # librdmacm keeps a device open once it has used it
        pass
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
    assert wait_until(lambda: open_descriptors() <= before, DEADLINE_SECONDS)


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
        rig.after_refusal()
    # Fewer, where a thread that another test left behind has closed something of its own meanwhile.
    assert wait_until(lambda: len(open_descriptors()) <= before, DEADLINE_SECONDS)


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
