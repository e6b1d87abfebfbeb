"""Uses a build of rdma/native in all the ways that it must stand. Run as `native_process.py MODULE FOLDER SEED`.

For a build with sanitizers: those end the process at the first fault. Compares every byte, too.
"""

import importlib.machinery
import importlib.util
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import odd_calls  # beside this script

from pondstack.domain.errors import PondError
from pondstack_rdma.base import Lender, Link
from pondstack_rdma.model import Key, Operation, Read, Write
from pondstack_rdma.shm import ShmTransport

SIZE = 16 * 4096
ROUNDS = 8
ODD_ROUNDS = 3000


def load(path: str) -> Any:
    """Load a build that is not where Python would look for it."""
    loader = importlib.machinery.ExtensionFileLoader("pondstack_rdma._native", path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def main(path: str, folder: str, seed: int) -> None:
    """Exercise it."""
    dice = random.Random(seed)
    native = load(path)
    print(odd_calls.told(odd_calls.of_shared_memory(native, random.Random(seed), ODD_ROUNDS)))
    watching(native.watch, dice)
    transport = ShmTransport(Path(folder), native.ShmAccess)
    done = 0
    for _ in range(ROUNDS):
        with transport.lend("lender") as lender:
            ticket = lender.admit("host1")
            with transport.connect(ticket, 10.0) as link:
                done += one_thread(lender, link, dice)
                several_threads(lender, link, dice)
    print(f"{done} accesses, seed {seed}")


def watching(watch: Callable[[Any, bytes, float, int], bool], dice: random.Random) -> None:
    """A change anywhere is seen, by whichever thread; odd arguments are refused."""
    for size in (0, 1, 8, 4097):
        memory, known = bytearray(size), bytes(size)
        assert not watch(memory, known, 0.0, 5)
        for _ in range(5 if size else 0):
            memory = bytearray(size)
            at = dice.randrange(size)
            other = threading.Timer(0.01, memory.__setitem__, [at, 1])
            other.start()
            assert watch(memory, known, 0.001, 10**6)
            other.join()
    for wrong in ((b"12", b"1", 0.0, 1), (b"1", b"1", -1.0, 1), (b"1", b"1", 2.0, 1), (b"1", b"1", float("nan"), 1)):
        try:
            watch(*wrong)
        except ValueError:
            continue
        raise AssertionError(wrong)


def one_thread(lender: Lender, link: Link, dice: random.Random) -> int:
    """Random accesses of one region against a bytearray, right ones and wrong ones."""
    key = lender.export(lender.register(SIZE), "host1")
    model, done = bytearray(SIZE), 0
    for _ in range(200):
        operations = [draw(key, dice) for _ in range(dice.choice((1, 1, 2, 16)))]
        try:
            if len(operations) > 1:
                link.batch(operations)
            elif isinstance(operations[0], Read):
                link.read_into(key, operations[0].offset, operations[0].into)
            else:
                link.write(key, operations[0].offset, operations[0].data)
        except PondError:
            model[:] = link.read(key, 0, SIZE)  # a part of a batch may have been carried out
            continue
        for operation in operations:
            done += 1
            if isinstance(operation, Write):
                model[operation.offset : operation.offset + len(operation.data)] = operation.data
        last = operations[-1]
        if isinstance(last, Read):
            assert last.into == model[last.offset : last.offset + len(last.into)]
    assert link.read(key, 0, SIZE) == model
    lender.revoke(key)
    for access in (lambda: link.write(key, 0, b"x"), lambda: link.batch([Write(key, 0, b"x")])):
        try:
            access()
        except PondError:
            continue
        raise AssertionError("a revoked key was served")
    link.forget(key)
    return done


def draw(key: Key, dice: random.Random) -> Operation:
    """Draw an access; one of ten leaves the region."""
    size = dice.choice((0, 1, 7, 64, 4096, 5000))
    offset = dice.randrange(SIZE - size + 1) if dice.random() < 0.9 else dice.choice((-1, SIZE, SIZE - size + 1, 2**63))
    if dice.random() < 0.5:
        return Read(key, offset, bytearray(size))
    return Write(key, offset, dice.randbytes(size))


def several_threads(lender: Lender, link: Link, dice: random.Random) -> None:
    """Accesses while keys are revoked and windows are forgotten under them."""
    keys = [lender.export(lender.register(SIZE), "host1") for _ in range(4)]
    seeds = [dice.random() for _ in range(3)]

    def work(seed: float) -> None:
        own = random.Random(seed)
        for _ in range(300):
            key = own.choice(keys)
            try:
                link.batch([draw(key, own), Write(key, 0, b"x" * 4096), Read(key, 0, bytearray(4096))])
            except PondError:
                continue

    threads = [threading.Thread(target=work, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    for key in keys[:3]:
        link.forget(key)
        lender.revoke(key)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
