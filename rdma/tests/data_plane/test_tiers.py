"""What a tier in a lender's memory promises, whatever the driver: shm, tcp, and verbs where there is an RDMA device."""

import errno
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..harness import VERBS, LenderProcess
from . import tiers
from .tiers import Tiers

PAGE_BYTES = 4096
SLOTS = 200
MOST = 64
"""Slots of one call."""

DEADLINE_MS, SHORT_MS = 20_000, 300
SLACK_MS = 20_000
"""A busy machine may be so late; what is tested is that the wait ends."""

DRIVERS = ("verbs",) if os.environ.get(VERBS) else ("shm", "tcp")
"""Over verbs these run in an emulated host (tests/hardware/test_rdma_contract.py)."""

FROZEN_SERVE = ("shm", "verbs")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiers.program(tmp_path_factory.mktemp("tiers"))


@pytest.fixture(params=sorted(DRIVERS))
def lender(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LenderProcess]:
    made = LenderProcess(request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture
def connect(program: Path, lender: LenderProcess) -> Iterator[Callable[..., Tiers]]:
    """Connect to the lender, with a key of SLOTS slots or more of them."""
    started: list[Tiers] = []

    def begin(keys: int = 1, deadline_ms: int = DEADLINE_MS) -> Tiers:
        started.append(Tiers(program))
        for number in range(keys):
            ticket, key = lender.lend("host1", SLOTS * PAGE_BYTES)
            if number == 0:
                assert started[-1].connect(ticket, deadline_ms) == ""
            assert started[-1].open(key) == ""
        return started[-1]

    yield begin
    for each in started:
        each.close()


def test_what_is_written_is_read(connect: Callable[..., Tiers]) -> None:
    """In any order, at any place, adjacent or not, up to the most in one call."""
    made, dice = connect(), random.Random(20181)
    content = dict.fromkeys(range(SLOTS), 1)
    for first in range(0, SLOTS, 50):
        assert made.write([first, 50], 1, adjacent=True) == 0
    for seed in range(2, 40):
        slots = dice.sample(range(SLOTS), dice.choice((1, 2, 17, MOST)))
        assert made.write(slots, seed) == 0
        content |= dict.fromkeys(slots, seed)
        slots = dice.sample(range(SLOTS), MOST)
        for found in sorted({content[slot] for slot in slots}):
            assert made.read([slot for slot in slots if content[slot] == found], found) == 0
    for slot, seed in content.items():
        assert made.read([slot, 1], seed, adjacent=True) == 0


def test_a_later_write_wins_and_is_read(connect: Callable[..., Tiers]) -> None:
    """In one call too: accesses are in order."""
    made = connect()
    for seed in range(1, 100):
        assert made.write([7] * 5, seed) == 0
        assert made.read([7], seed) == 0


def test_it_is_the_lenders_memory(connect: Callable[..., Tiers], lender: LenderProcess) -> None:
    made = connect()
    assert made.write([3], 5) == 0
    slot = bytes.fromhex(lender.ask("load", region=0, offset=3 * PAGE_BYTES, size=PAGE_BYTES))
    assert slot == b"".join((((5 * 1000003 + 3) * 512 + at) % 2**64).to_bytes(8, "little") for at in range(512))


def test_regions_are_apart(connect: Callable[..., Tiers]) -> None:
    made = connect(keys=3)
    for tier in range(3):
        assert made.write([0, MOST], 10 + tier, tier=tier, adjacent=True) == 0
    for tier in range(3):
        assert made.read([0, MOST], 10 + tier, tier=tier, adjacent=True) == 0


def test_what_is_beyond_is_not_asked_for(connect: Callable[..., Tiers]) -> None:
    """Other slots are what they were, and the link goes on."""
    made = connect()
    assert made.write([0, 1], 1) == 0
    for slots in ([SLOTS], [5, 6, SLOTS], [2**32 - 1]):
        assert made.write(slots, 2) == errno.EINVAL
        assert made.read(slots, 2) == errno.EINVAL
    assert made.write([SLOTS - 1, 2], 2, adjacent=True) == errno.EINVAL
    assert made.read([0, 1], 1) == 0


def test_a_frozen_lender(connect: Callable[..., Tiers], lender: LenderProcess) -> None:
    """One-sided drivers serve; over tcp an access ends at its deadline, and the next one at once."""
    made = connect(keys=2, deadline_ms=DEADLINE_MS if lender.driver in FROZEN_SERVE else SHORT_MS)
    with lender.frozen():
        if lender.driver in FROZEN_SERVE:
            assert made.write([0, MOST], 3, adjacent=True) == 0
            assert made.read(range(MOST), 3) == 0
            return
        answer = made.ask(read=[0], seed=1, tier=0)
        assert answer["error"] == errno.ETIMEDOUT
        assert SHORT_MS - 1 <= answer["ms"] < SHORT_MS + SLACK_MS
        assert [made.write([0], tier=tier) for tier in (0, 1)] == [errno.ECONNRESET] * 2
    assert made.read([0], tier=1) == errno.ECONNRESET  # a late answer is no answer of another question


def test_a_frozen_lender_whose_writes_fill_the_wire(connect: Callable[..., Tiers], lender: LenderProcess) -> None:
    """The deadline counts for what is sent, too."""
    made = connect(deadline_ms=SHORT_MS if lender.driver not in FROZEN_SERVE else DEADLINE_MS)
    with lender.frozen():
        answer = made.ask(write=[0, MOST], seed=1, tier=0, adjacent=True)
    assert answer["error"] == (0 if lender.driver in FROZEN_SERVE else errno.ETIMEDOUT)
    assert answer["ms"] < SHORT_MS + SLACK_MS


def test_a_killed_lender(connect: Callable[..., Tiers], lender: LenderProcess) -> None:
    made = connect(keys=2)
    assert made.write([0], 1) == 0
    lender.kill()
    error = 0
    while not error:  # shm looks once a millisecond
        error = made.write([1], 1)
    assert error in (errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT)
    assert made.read([0], 1, tier=1) != 0


def test_a_revoked_key(connect: Callable[..., Tiers], lender: LenderProcess) -> None:
    """Its tier gives nothing any more."""
    made = connect(keys=2)
    assert made.write([0], 1) == 0
    lender.ask("revoke", number=0)
    assert made.write([0], 2) == errno.EACCES
    assert made.read([0], 1) != 0
    if lender.driver != "verbs":  # whose device ends the queue pair
        assert made.write([0], 3, tier=1) == 0


@pytest.mark.parametrize("what", ["ticket", "key"])
def test_what_a_lender_refuses(what: str, program: Path, lender: LenderProcess) -> None:
    made = Tiers(program)
    ticket, key = lender.lend("host1", PAGE_BYTES)
    change = {"secret": "00" * 16} if what == "ticket" else {}
    refusal = made.connect(ticket, DEADLINE_MS, **change)
    if what == "key":
        assert refusal == ""
        refusal = made.open(key, token="00" * 16)
        assert made.open(key) == ""
    assert refusal.startswith("lender lender1 refuses: this lender")
    made.close()


def test_nobody_there(program: Path, lender: LenderProcess) -> None:
    made, (ticket, _) = Tiers(program), lender.lend("host1", PAGE_BYTES)
    for address in ("", "127.0.0.1", "127.0.0.1:x", "nobody:1", "127.0.0.1:1", "/nowhere"):
        assert made.connect(ticket, SHORT_MS, address=address).startswith("lender lender1"), address
    made.close()
