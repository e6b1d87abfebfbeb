"""Random histories against a dict: whatever happens to lenders, links and the disk, a page is what was written last.

One thread, seeded: `pytest rdma/tests/store/test_pages_model.py -k 'seed-20181'` replays one.
MODEL_SEEDS=500 runs more.
"""

import errno
import os
import random
from pathlib import Path

import pytest

from pondstack_rdma.errors import MirrorBusy
from pondstack_rdma.fault import FaultPlan, FaultTransport
from rdma.tests.harness import PAGE, shm, tcp
from rdma.tests.rack import PAGES, Rack, rack

STEPS = 120
FIRST_SEED = 20181
SEEDS = range(FIRST_SEED, FIRST_SEED + int(os.environ.get("MODEL_SEEDS", "12")))


class History:
    """One run. Half of the contents are of few kinds, so that a wrong page may look right to nobody but the model."""

    def __init__(self, made: Rack, dice: random.Random) -> None:
        self.rack = made
        self.dice = dice
        self.model: dict[int, bytes] = {}
        self.lent = 0
        made.more = lambda pages: [self.lend(pages)]

    def lend(self, pages: int):
        """Get a lease of a random lender."""
        self.lent += 1
        return self.rack.lend(f"lender{self.dice.randrange(4)}", min(pages, 16))

    def content(self) -> bytes:
        """Draw a page."""
        return self.dice.randbytes(16) * (PAGE // 16)

    def step(self) -> None:
        """Do one thing."""
        names = ("write", "write_many", "read", "read_many", "turns", "kill", "revoke", "reclaim", "disk")
        name = self.dice.choices(names, (30, 10, 30, 10, 30, 3, 3, 4, 4))[0]
        getattr(self, name)()

    def write(self) -> None:
        """Write a page, or be refused."""
        page, data = self.dice.randrange(PAGES), self.content()
        try:
            self.rack.borrower.write(page, data)
        except MirrorBusy:
            return
        self.model[page] = data

    def write_many(self) -> None:
        """Write some pages; those before the refused one are written."""
        pages = self.dice.sample(range(PAGES), self.dice.randrange(1, 12))
        contents = {page: self.content() for page in pages}
        room = 16 - self.rack.borrower.report().mirror_queued
        try:
            self.rack.borrower.write_many(contents)
        except MirrorBusy:
            self.adopt(contents, room)
        else:
            self.model |= contents

    def adopt(self, contents: dict[int, bytes], room: int) -> None:
        """After a refusal a page is what it was, or the new one; never new behind an old one, and so many at least."""
        seen_old = False
        for index, (page, data) in enumerate(contents.items()):
            seen = self.rack.borrower.read(page)
            new = seen == data and not seen_old
            assert new or seen == self.model.get(page, bytes(PAGE))
            seen_old = seen_old or not new
            assert index >= room or new
            if new:
                self.model[page] = data

    def read(self) -> None:
        """Read a page."""
        page = self.dice.randrange(PAGES)
        assert self.rack.borrower.read(page) == self.model.get(page, bytes(PAGE))

    def read_many(self) -> None:
        """Read some pages."""
        pages = self.dice.choices(range(PAGES), k=self.dice.randrange(1, 12))
        assert self.rack.borrower.read_many(pages) == [self.model.get(page, bytes(PAGE)) for page in pages]

    def turns(self) -> None:
        """Let time go on."""
        self.rack.turns(self.dice.randrange(1, 4), self.dice.choice((0.0, 0.05, 0.6)))

    def kill(self) -> None:
        """Kill a lender; it may come back, with new keys."""
        if self.rack.lenders:
            self.rack.kill(self.dice.choice(sorted(self.rack.lenders)))

    def revoke(self) -> None:
        """Take a lease back without a word."""
        if self.rack.leases:
            self.rack.revoke(self.dice.choice(list(self.rack.leases)))

    def reclaim(self) -> None:
        """Ask for a lease back, and revoke it once it is told free."""
        used = [holding.lease for holding in self.rack.borrower.places.holdings()]
        if used:
            self.rack.borrower.reclaim(self.dice.choice(used), self.dice.choice((0.0, 1.0)))
        for lease in self.rack.freed:
            if lease in self.rack.leases:
                self.rack.revoke(lease)

    def disk(self) -> None:
        """Break the disk, or mend it."""
        self.rack.disk.failing = 0 if self.rack.disk.failing else self.dice.choice((errno.EIO, errno.ENOSPC))

    def end(self) -> None:
        """Let it recover, and read everything, from the lenders and from the mirror."""
        self.rack.disk.failing = 0
        self.rack.settle()
        self.rack.turns(10)
        for page in range(PAGES):
            want = self.model.get(page, bytes(PAGE))
            assert self.rack.borrower.read(page) == want
            if page in self.model:
                assert self.rack.borrower.from_mirror(page) == want


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed-{seed}")
@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "plain"])
@pytest.mark.parametrize("make", [shm, tcp], ids=["shm", "tcp"])
def test_a_history(tmp_path: Path, make, sealed: bool, seed: int) -> None:
    dice = random.Random(seed)
    plan = FaultPlan(seed, lost=0.02, unanswered=0.03, broken=0.03, partial=0.05)
    made = rack(FaultTransport(make(tmp_path), plan, lambda _: None), sealed=sealed)
    history = History(made, dice)
    try:
        for _ in range(STEPS):
            history.step()
        history.end()
    except BaseException:
        print(f"seed {seed}; lenders lent {history.lent} times; {made.borrower.report()}")
        raise
    finally:
        made.close()
    assert history.lent
