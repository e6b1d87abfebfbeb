"""Agents, lenders and page stores killed under load, seeded: no acknowledged page may be wrong or lost.

Acknowledged: answered, as long as the page store lives; flushed, when it was killed, too. What was answered and not
flushed may be told as lost then, and is never of another content.
"""

import os
import random
import threading

import pytest

from pondstack.domain.errors import PondError, Unavailable
from pondstack_rack.wait import wait_until
from pondstack_rdma.errors import PageLost

from ..lending.conftest import DEADLINE_SECONDS
from ..pagestore.conftest import content
from .conftest import Killed

SEED = int(os.environ.get("PONDSTACK_TEST_SEED", "8"))
PAGES = 1024
ROUNDS = 8
LENDERS = ("host1", "host2", "host3")


class Load:
    """Writes and reads all the time, in a thread, and checks each page that it reads."""

    def __init__(self, host, seed: str) -> None:
        self._host, self._dice = host, random.Random(seed)
        self.model: dict[int, bytes] = {}
        self.wrong: list[str] = []
        self.reads = self.writes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join(60.0)
        assert not self._thread.is_alive()

    def _run(self):
        try:
            with self._host.reader() as reader:
                while not self._stop.is_set():
                    self._step(reader)
        except PondError as error:
            self.wrong.append(f"an access failed: {error!r}")

    def _step(self, reader):
        page = self._dice.randrange(PAGES)
        if self._dice.random() < 0.5:
            data = content(page, self.writes)
            reader.write(page, data)
            self.model[page] = data
            self.writes += 1
        else:
            self.check(reader, page)

    def check(self, reader, page):
        if reader.read(page) != self.model.get(page, bytes(4096)):
            self.wrong.append(f"page {page} is not what was written last")
        self.reads += 1


def test_agents_lenders_and_page_stores_are_killed(rack) -> None:
    dice, host = random.Random(SEED), rack.borrower
    for name in LENDERS:
        rack.lend(name, 2)
    assert host.alloc(4)["borrowed_mib"] == 4
    load, killed = Load(host, f"{SEED}"), {"agent": 0, "lender": 0, "store": 0}
    again = f"again: PONDSTACK_TEST_SEED={SEED} pytest {__file__}"
    for number in range(ROUNDS):
        load.start()
        what = ("lender", "agent", "store")[number % 3] if number < 3 else dice.choice(tuple(killed))
        name = dice.choice(LENDERS)
        killed[what] += 1
        try:
            host.fuse.left = dice.randrange(1, 30) if what == "agent" else 0
            if what == "lender":
                rack[name].kill()
            else:
                rack.reclaim(name, 1)
            rack.turn(2)
        except Killed:
            pass
        finally:
            host.fuse.left = 0
        if what == "agent":
            host.restart()
        rack.turn(2)
        load.stop()
        assert load.wrong == [], again
        if what == "store":
            _kill_store(host, load, dice)
        rack.turn_until(lambda lender=name: rack.done(lender))
        rack.lend(name, 2)
        rack.turn_until(lambda: host.view()["borrowed_mib"] == 4)
    _check_all(host, load, again)
    print(f"seed {SEED}: {killed} killed under {load.writes} writes and {load.reads} reads; 0 wrong or lost")
    host.release()
    rack.turn(4)
    assert rack.free(), (again, rack.controller.ledger.buffers.find())


def _kill_store(host, load, dice):
    """What was flushed is found; what was not is that, or told as lost."""
    with host.reader() as reader:
        reader.flush()
        late = {page: content(page, 10**6) for page in dice.sample(range(PAGES), 8)}
        for page, data in late.items():
            reader.write(page, data)
        host.kill_store()
        with pytest.raises(Unavailable):
            reader.read(0)
    host.beat()
    with host.reader() as reader:
        for page, data in late.items():
            try:
                assert reader.read(page) == data
            except PageLost:
                reader.write(page, data)
            load.model[page] = data
        for page in range(PAGES):
            load.check(reader, page)


def _check_all(host, load, again):
    assert wait_until(lambda: host.view()["store"]["pages"]["moving"] == 0, DEADLINE_SECONDS)
    with host.reader() as reader:
        for page in range(PAGES):
            load.check(reader, page)
    assert load.wrong == [], again
    counts = host.view()["store"]["counts"]
    assert counts["lost"] == 0, again
