"""Calls of rdma/native that Python's own code never makes: drawn arguments, right and odd ones in any mixture.

For a build with sanitizers, in the process that loads it. What a lender or a borrower that is not honest can choose is
among them: the word of a key, its slot, addresses and sizes of a region.
"""

import socket
from array import array
from collections import Counter
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

from pondstack_rdma.model import Key, Read, Write

TRIED, REFUSED, ACCEPTED = "tried", "refused", "accepted"
ODD_NUMBERS = (-1, 0, 1, 7, 8, 4095, 4096, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**70))
ODD_OBJECTS: tuple[Any, ...] = (None, 0.5, float("nan"), "text", b"bytes", [], {}, object(), True, 10**400)
SIZE = 8 * 4096


class OddCalls:
    """Counts what was drawn, and what came of it. Errors of Python are refusals; anything else ends the process."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.counts: Counter[str] = Counter()

    def number(self, most: int) -> Any:
        """Draw a number up to `most`, or something odd in its place."""
        draw = self.dice.random()
        if draw < 0.6:
            return self.dice.randrange(most)
        return self.dice.choice(ODD_NUMBERS if draw < 0.9 else ODD_OBJECTS)

    def buffer(self) -> Any:
        """Draw a buffer, of any kind."""
        size = self.dice.choice((0, 1, 7, 64, 4096, SIZE, SIZE + 1))
        kinds: tuple[Callable[[], Any], ...] = (
            lambda: bytearray(size),
            lambda: bytearray(size),
            lambda: bytes(size),
            lambda: memoryview(bytearray(size)),
            lambda: memoryview(bytearray(size)).toreadonly(),
            lambda: memoryview(bytearray(2 * size))[::2],
            lambda: array("d", bytes(size // 8 * 8)),
            lambda: self.dice.choice(ODD_OBJECTS),
        )
        return self.dice.choice(kinds)()

    def operation(self, keys: list[Any]) -> Any:
        """Draw an operation, or what looks like one."""
        key, offset, buffer = self.dice.choice(keys), self.number(SIZE), self.buffer()
        made: tuple[Callable[[], Any], ...] = (
            lambda: Read(key, offset, buffer),
            lambda: Write(key, offset, buffer),
            lambda: SimpleNamespace(key=key, offset=offset, into=buffer, data=buffer),
            lambda: (key, offset, buffer),
            lambda: self.dice.choice(ODD_OBJECTS),
        )
        return self.dice.choices(made, (8, 8, 1, 1, 1))[0]()

    def operations(self, keys: list[Any]) -> Any:
        """Draw a batch."""
        found = [self.operation(keys) for _ in range(self.dice.choice((0, 1, 2, 16, 17)))]
        return self.dice.choice((found, found, tuple(found), iter(found), self.dice.choice(ODD_OBJECTS)))

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call, and count."""
        self.counts[TRIED] += 1
        try:
            found = function(*arguments)
        except (TypeError, ValueError, OverflowError, OSError, BufferError, RuntimeError):
            self.counts[REFUSED] += 1
            return None
        self.counts[ACCEPTED] += 1
        return found


def of_shared_memory(native: Any, dice: Random, rounds: int) -> Counter[str]:
    """Call ShmAccess and watch of a build."""
    odd = OddCalls(dice)
    left, right = socket.socketpair()
    access = native.ShmAccess(left.fileno(), Read, Write)
    region, words = memoryview(bytearray(SIZE)), memoryview(bytearray(4096)).cast("Q")
    known = [Key(number, "host1", SIZE, b"token") for number in range(1, 9)]
    keys = [*known, *ODD_OBJECTS[:4]]
    verbs: list[Callable[[], Any]] = [
        lambda: odd.call(access.add, dice.choice(keys), region, words, odd.number(600), odd.number(9)),
        lambda: odd.call(access.add, dice.choice(keys), odd.buffer(), words, odd.number(512), odd.number(9)),
        lambda: odd.call(access.remove, dice.choice(keys)),
        lambda: odd.call(access.read, dice.choice(keys), odd.number(SIZE), odd.buffer()),
        lambda: odd.call(access.write, dice.choice(keys), odd.number(SIZE), odd.buffer()),
        lambda: odd.call(access.batch, odd.operations(keys)),
        lambda: odd.call(access.batch, odd.operations(known)),
        lambda: odd.call(access.read, *(dice.choice(ODD_OBJECTS) for _ in range(dice.randrange(5)))),
        lambda: odd.call(
            native.watch, odd.buffer(), odd.buffer(), dice.choice((0.0, -1.0, 2.0, 1e-9)), dice.randrange(3)
        ),
        lambda: odd.call(native.ShmAccess, odd.number(9), dice.choice((Read, None, int)), dice.choice((Write, "x"))),
        lambda: words.__setitem__(dice.randrange(len(words)), dice.choice((0, 1, 5, 2**64 - 1))),
    ]
    for _ in range(rounds):
        dice.choice(verbs)()
    right.close()  # the lender has ended
    for _ in range(rounds // 10):
        dice.choice(verbs)()
    for key in keys:
        odd.call(access.remove, key)
    left.close()
    return odd.counts


def of_a_requester(native: Any, dice: Random, rounds: int, address: int, most_bytes: int) -> Counter[str]:
    """Call a connected Requester of a build, whose device knows a region at `address` by the keys 7 and 8."""
    odd = OddCalls(dice)
    known = [Key(number, "host1", most_bytes, b"token") for number in range(1, 9)]
    keys = [*known, *ODD_OBJECTS[:4]]

    def request() -> Any:
        made = (bool(dice.randrange(2)), odd.number(2**20), odd.number(16), odd.buffer())
        return dice.choice((made, made, made[:3], None))

    verbs: list[Callable[[], Any]] = [
        lambda: odd.call(native.add, dice.choice(keys), address, dice.choices((7, 8, 10), (20, 20, 1))[0], most_bytes),
        lambda: odd.call(native.add, dice.choice(keys), odd.number(2**20), dice.choice((7, 8)), odd.number(2**17)),
        lambda: odd.call(native.remove, dice.choice(keys)),
        lambda: odd.call(native.read, dice.choice(keys), odd.number(most_bytes), odd.buffer()),
        lambda: odd.call(native.write, dice.choice(keys), odd.number(most_bytes), odd.buffer()),
        lambda: odd.call(native.batch, odd.operations(keys)),
        lambda: odd.call(native.batch, odd.operations(known)),
        lambda: odd.call(native.carry_out, tuple(request() for _ in range(dice.randrange(4))), 0.01),
        lambda: odd.call(native.carry_out, dice.choice(ODD_OBJECTS), dice.choice(ODD_OBJECTS)),
        lambda: odd.call(native.time_reads, dice.choice(keys), odd.number(most_bytes), odd.buffer(), dice.randrange(4)),
        lambda: odd.call(native.read, *(dice.choice(ODD_OBJECTS) for _ in range(dice.randrange(5)))),
    ]
    for _ in range(rounds):
        dice.choice(verbs)()
    for key in keys:
        odd.call(native.remove, key)
    return odd.counts


def told(counts: Counter[str]) -> str:
    """Return the counts as whoever reads the output looks for them."""
    return ", ".join(f"{counts[name]} {name}" for name in (TRIED, REFUSED, ACCEPTED))
