"""Uses a build of rdma/native's requester, with the fake device of fake_verbs.c. Arguments: the module, a seed.

For a build with sanitizers: those end the process at the first fault. Compares every byte, too.
"""

import importlib.machinery
import importlib.util
import random
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import odd_calls  # beside this script

from pondstack_rdma.model import Key, Operation, Read, Write
from pondstack_rdma.verbs.requester import HUNG_UP, LEFT_TO_PYTHON, SILENT, Native, NativeType, Request

ADDRESS, REGION_BYTES, GOOD, LATE, MUTE, FORGED = 0x10000, 65536, 7, 8, 9, 10
KEPT = 6
DEPTH, STAGE_BYTES = 16, 32768
CONNECTIONS, ODD_ROUNDS = 20, 100
REFUSED = 10
LONG_SECONDS, SHORT_SECONDS = 10.0, 0.05
GID = bytes(16)


def load(path: str) -> NativeType:
    """Load a build that is not where Python would look for it."""
    loader = importlib.machinery.ExtensionFileLoader("pondstack_rdma._verbs", path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    made: NativeType = module.Requester
    return made


def region(native: Native, rkey: int) -> Key:
    """Let a requester know all of the fake's region by a new key, served as `rkey` is."""
    key = Key(rkey, "host1", REGION_BYTES, b"token")
    assert native.add(key, ADDRESS, rkey, REGION_BYTES)
    return key


class Fake:
    """Makes connected requesters of the fake device, one at a time."""

    def __init__(self, make: NativeType) -> None:
        self._make = make

    @contextmanager
    def connect(
        self, seconds: float = LONG_SECONDS, peer: int = 5, close: bool = True
    ) -> Iterator[tuple[Native, Sequence[Callable[[], object]]]]:
        """Yield a connected requester, and what tells it of the lender's end, in either way."""
        (ours, theirs), (manager, events) = socket.socketpair(), socket.socketpair()
        with ours, theirs, manager, events:
            stage = self.stage = memoryview(bytearray(STAGE_BYTES))
            native = self._make("fake0", manager.fileno(), ours.fileno(), DEPTH, stage, seconds, Read, Write)
            assert native.qpn == 17
            native.connect(GID, peer, 1, 2, 1, 1, 5, 16, 0, 14, 6)
            yield native, (partial(theirs.shutdown, socket.SHUT_RDWR), partial(events.send, b"e"))
            if not close:
                return
            assert [native.close() for _ in range(2)] == [True, True]
            stage.release()  # nothing holds it any more
            assert native.read(Key(1, "host1", 1, b""), 0, bytearray(1)) == LEFT_TO_PYTHON


def random_accesses(fake: Fake, dice: random.Random) -> int:
    """Right and wrong ones against a bytearray: wrong ones are left to Python, with nothing done."""
    with fake.connect() as (native, _):
        keys = [region(native, GOOD), region(native, LATE)]
        model = bytearray(REGION_BYTES)
        assert native.carry_out((Request(True, ADDRESS, GOOD, memoryview(model)[:STAGE_BYTES]),), 10.0) == (1, 0)
        assert native.carry_out(
            (Request(True, ADDRESS + STAGE_BYTES, GOOD, memoryview(model)[STAGE_BYTES:]),), 10.0
        ) == (
            1,
            0,
        )
        done = 0
        for _ in range(2000):
            operations = [draw(dice.choice(keys), dice) for _ in range(dice.choice((1, 1, 2, DEPTH, DEPTH + 1)))]
            done += check(native, operations, model)
        whole = bytearray(STAGE_BYTES)
        assert native.read(keys[0], REGION_BYTES - STAGE_BYTES, whole) == 0
        assert whole == model[-STAGE_BYTES:]
        return done


def check(native: Native, operations: list[Operation], model: bytearray) -> int:
    """Carry operations out: how many are done."""
    sizes = [len(each.into if isinstance(each, Read) else each.data) for each in operations]
    within = all(
        0 <= each.offset <= REGION_BYTES - size and size <= STAGE_BYTES
        for each, size in zip(operations, sizes, strict=True)
    )
    good = within and len(operations) <= DEPTH and sum(sizes) <= STAGE_BYTES
    first = operations[0]
    if len(operations) > 1:
        wanted = (len(operations), 0) if good else (0, LEFT_TO_PYTHON)
        assert native.batch(operations if sizes[0] % 2 else tuple(operations)) == wanted  # type: ignore[arg-type]
    elif isinstance(first, Read):
        assert native.read(first.key, first.offset, first.into) == (0 if good else LEFT_TO_PYTHON)
    else:
        assert native.write(first.key, first.offset, first.data) == (0 if good else LEFT_TO_PYTHON)
    for operation, size in zip(operations if good else [], sizes, strict=False):
        part = slice(operation.offset, operation.offset + size)
        if isinstance(operation, Read):
            assert operation.into == model[part]
        else:
            model[part] = operation.data
    return len(operations) if good else 0


def draw(key: Key, dice: random.Random) -> Operation:
    """Draw an access; one of twenty leaves the region or the staging memory."""
    size = dice.choice((0, 1, 7, 64, 2000, 4096))
    offset = dice.randrange(REGION_BYTES - size + 1)
    if dice.random() < 0.05:
        offset, size = dice.choice(((-1, 8), (REGION_BYTES, 1), (2**63, 8), (-(2**70), 8), (0, STAGE_BYTES + 1)))
    if dice.random() < 0.5:
        return Read(key, offset, bytearray(size))
    return Write(key, offset, dice.randbytes(size))


def what_the_device_says(fake: Fake) -> None:
    """A refusal, silence and a lender that ends are told apart, and end the connection."""
    for rkey, status, seconds in ((FORGED, REFUSED, LONG_SECONDS), (MUTE, SILENT, SHORT_SECONDS)):
        with fake.connect(seconds=seconds) as (native, _):
            good, bad = region(native, GOOD), region(native, rkey)
            into = bytearray(4)
            done = 1 if status == REFUSED else 0
            assert native.batch([Read(good, 0, into), Write(bad, 0, b"x"), Read(good, 0, into)]) == (done, status)
            assert native.read(good, 0, into) == LEFT_TO_PYTHON
            assert native.batch([Read(good, 0, into)]) == (0, LEFT_TO_PYTHON)
            raises(ValueError, lambda native=native: native.carry_out((), 1.0))  # type: ignore[misc]
    for way in (0, 1):
        with fake.connect() as (native, ends):
            bad = region(native, MUTE)
            threading.Timer(0.05, ends[way]).start()
            assert native.read(bad, 0, bytearray(4)) == HUNG_UP


def timed_reads(fake: Fake) -> None:
    """So many times as there were reads, and the bytes of the last one."""
    with fake.connect() as (native, _):
        key, into = region(native, GOOD), bytearray(8)
        assert native.write(key, 8, b"12345678") == 0
        times = memoryview(native.time_reads(key, 8, into, 50)).cast("q")
        assert len(times) == 50
        assert min(times) > 0
        assert into == b"12345678"
        assert native.time_reads(key, REGION_BYTES, into, 5) == b""
        assert native.time_reads(key, 0, into, 0) == b""
        raises(TypeError, lambda: native.time_reads(key, 0, into))  # type: ignore[call-arg]
    with fake.connect(seconds=SHORT_SECONDS) as (native, _):
        key, mute = region(native, GOOD), region(native, MUTE)
        assert native.time_reads(mute, 0, into, 5) == b""
        assert native.time_reads(key, 0, into, 5) == b"", "the connection has ended"


def regions(fake: Fake) -> None:
    """Known by identity only; those that find no room, and those that were forgotten, are left to Python."""
    with fake.connect() as (native, _):
        key = region(native, GOOD)
        twin = Key(key.number, key.borrower, key.size_bytes, key.token)
        assert not native.add(key, ADDRESS, GOOD, 1)
        assert native.read(twin, 0, bytearray(1)) == LEFT_TO_PYTHON
        native.remove(twin)
        assert native.read(key, 0, bytearray(1)) == 0
        native.remove(key)
        assert native.read(key, 0, bytearray(1)) == LEFT_TO_PYTHON
        keys = [Key(number, "host1", 1, b"") for number in range(1500)]
        known = [native.add(each, ADDRESS, GOOD, 1) for each in keys]
        assert sum(known) > 900
        for each, is_known in zip(keys, known, strict=True):
            assert native.read(each, 0, bytearray(1)) == (0 if is_known else LEFT_TO_PYTHON)


def queue_pair_that_stays(fake: Fake) -> None:
    """While the device may write to the staging memory, nobody else gets it; a repetition may release it."""
    with fake.connect(peer=KEPT) as (native, _):
        key = region(native, GOOD)
        assert native.close() is False
        raises(BufferError, fake.stage.release)
        assert native.read(key, 0, bytearray(1)) == LEFT_TO_PYTHON
    with fake.connect(peer=KEPT, close=False):
        pass
    raises(BufferError, fake.stage.release)  # the requester is gone, and its staging memory held for good


def odd_arguments(fake: Fake) -> None:
    """Are refused, or left to Python, and hold nothing."""
    with fake.connect() as (native, _):
        key = region(native, GOOD)
        odd: list[list[object]] = [[], [1], [Read(key, 0, b"constant")], [Read(key, 0.5, bytearray(1))]]  # type: ignore[arg-type]
        for operations in odd:
            assert native.batch(operations) == (0, LEFT_TO_PYTHON)  # type: ignore[arg-type]
        data = bytearray(8)
        assert native.batch([Write(key, 0, data), 1]) == (0, LEFT_TO_PYTHON)  # type: ignore[list-item]
        data.clear()  # a buffer that is held could not change its size
        assert native.read(key, 0, memoryview(bytearray(8))[::2]) == LEFT_TO_PYTHON
        raises(TypeError, lambda: native.read(key, 0))  # type: ignore[call-arg]
        raises(ValueError, lambda: native.connect(b"short", 5, 1, 2, 1, 1, 5, 16, 0, 14, 6))
        raises(OSError, lambda: native.connect(GID, 0, 1, 2, 1, 1, 5, 16, 0, 14, 6))
        too_many = tuple(Request(False, ADDRESS, GOOD, memoryview(b"x")) for _ in range(DEPTH + 1))
        raises(ValueError, lambda: native.carry_out(too_many, 1.0))
        raises(
            ValueError, lambda: native.carry_out((Request(False, 0, GOOD, memoryview(bytes(STAGE_BYTES + 1))),), 1.0)
        )
        raises(BufferError, lambda: native.carry_out((Request(True, 0, GOOD, memoryview(b"constant")),), 1.0))
        raises(TypeError, lambda: native.carry_out((1,), 1.0))  # type: ignore[arg-type]


def one_call_at_a_time(fake: Fake) -> None:
    """Whoever comes meanwhile is told so; the one that waits is not disturbed."""
    for seconds in (0.5, 5.0, 50.0):  # on a machine that stands still, one that waits shortly may end alone
        with fake.connect(seconds=seconds) as (native, _):
            mute = region(native, MUTE)
            into, found = bytearray(8), list[int]()
            waiting = threading.Thread(target=lambda: found.append(native.read(mute, 0, into)))  # noqa: B023 (joined)
            waiting.start()
            told = False
            while waiting.is_alive() and not told:
                try:
                    native.read(Key(1, "host1", 1, b""), 0, bytearray(1))
                except RuntimeError:
                    told = True
            waiting.join()
            assert found == [SILENT]
        if told:
            return
    raise AssertionError("nobody was told")


def raises(kind: type[Exception], call: Callable[[], object]) -> None:
    """Fail unless a call ends with that error."""
    try:
        call()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def odd_mixtures(fake: Fake, dice: random.Random) -> Counter[str]:
    """Arguments that nobody checks before, over connections of which many end by it; nothing is held after that."""
    counts: Counter[str] = Counter()
    for _ in range(CONNECTIONS):
        with fake.connect(seconds=SHORT_SECONDS) as (native, _):
            counts += odd_calls.of_a_requester(native, dice, ODD_ROUNDS, ADDRESS, REGION_BYTES)
    return counts


def main(path: str, seed: int) -> None:
    """Exercise it."""
    make = load(path)
    fake = Fake(make)
    raises(OSError, lambda: make("rxe7", 0, 0, 1, memoryview(bytearray(1)), 1.0, Read, Write))
    done = random_accesses(fake, random.Random(seed))
    print(odd_calls.told(odd_mixtures(fake, random.Random(seed))))
    for part in (what_the_device_says, timed_reads, regions, queue_pair_that_stays, odd_arguments, one_call_at_a_time):
        part(fake)
    print(f"{done} accesses of a fake device, seed {seed}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
