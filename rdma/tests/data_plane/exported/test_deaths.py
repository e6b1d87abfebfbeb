"""The data plane is killed, at each point of the code and at random: no acknowledged write is lost."""

import os
import random
import signal
from contextlib import suppress

import pytest

from pondstack_rack.wait import wait_until
from tests.fixtures.seeds import by_night, seed

from ..processes import BLOCK, DEADLINE_SECONDS, BlockPlane, RefusedError
from .client import TRIM, ZERO, Nbd, connect

MIB, PAGE = 2**20, 4096


def await_death(plane: BlockPlane) -> None:
    """Wait until it has killed itself at a point of the code, and start the next one."""
    assert plane.await_end() == -signal.SIGKILL, plane.log()
    plane.start()
    plane.await_ready()


@pytest.mark.parametrize("point", ["created", "keeper", "recorded"])
def test_a_death_while_it_is_exported(plane: BlockPlane, point: str) -> None:
    """The next process goes on with it; no keeper is left that nobody knows of."""
    plane.kill()
    plane.start(PONDSTACK_CRASH_AT=f"{point}:1")
    plane.await_ready()
    with pytest.raises(RefusedError):
        plane.export(1)
    await_death(plane)
    assert plane.export(1)["state"] == "serving"
    assert wait_until(lambda: plane.keepers() == [plane.device()["keeper"]], DEADLINE_SECONDS)
    with connect(plane.socket) as link:
        link.write(0, b"x" * PAGE)
        plane.restart()
    with connect(plane.socket) as link:
        assert link.read(0, PAGE) == b"x" * PAGE


@pytest.mark.parametrize("point", ["forgotten", "unlinked", "destroyed"])
def test_a_death_while_it_ends(plane: BlockPlane, point: str) -> None:
    """The next process ends it."""
    plane.export(1)
    plane.kill()
    plane.start(PONDSTACK_CRASH_AT=f"{point}:1")
    plane.await_ready()
    with pytest.raises(RefusedError):
        plane.ask(verb="unexport", block=BLOCK)
    await_death(plane)
    assert wait_until(lambda: plane.ask(verb="view")["blocks"] == [], DEADLINE_SECONDS)
    assert plane.keepers() == []
    assert sorted(os.listdir(plane.folder.parent)) == ["data-plane.log", "plane"]


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)])
def test_a_death_while_its_size_changes(plane: BlockPlane, before: int, after: int) -> None:
    """It is served with one size or the other, and with all pages."""
    plane.export(before, most_mib=4)
    with connect(plane.socket) as link:
        link.write(0, b"x" * PAGE)
    plane.kill()
    plane.start(PONDSTACK_CRASH_AT="resized:1")
    plane.await_ready()
    with pytest.raises(RefusedError):
        plane.ask(verb="resize", block=BLOCK, mib=after)
    await_death(plane)
    assert plane.device()["mib"] == after
    with connect(plane.socket) as link:
        assert link.read(0, PAGE) == b"x" * PAGE
        link.write(after * MIB - 8 * PAGE, b"y" * 8 * PAGE)


@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "plain"])
@pytest.mark.parametrize("point", ["filled-journal", "journal", "mirrored", "row", "emptied", "carried-out"])
def test_a_death_while_it_writes(plane: BlockPlane, point: str, sealed: bool) -> None:
    """Each page is as it was or as it is to be; parts of pages, too, and what was never written is zeros."""
    plane.export(1, sealed=sealed)
    with connect(plane.socket) as link:
        link.write(0, b"1" * 8 * PAGE)
    for count in (1, 3):
        plane.kill()
        plane.start(PONDSTACK_CRASH_AT=f"{point}:{count}")
        plane.await_ready()
        with connect(plane.socket) as link, suppress(OSError):
            for _ in range(4):
                link.write(100, b"2" * 12 * PAGE)
        await_death(plane)
        with connect(plane.socket) as link:
            found, after = link.read(0, 14 * PAGE), b"1" * 100 + b"2" * 12 * PAGE + bytes(PAGE - 100) + bytes(PAGE)
            before = b"1" * 8 * PAGE + bytes(6 * PAGE)
            for at in range(0, 14 * PAGE, PAGE):
                assert found[at : at + PAGE] in (before[at : at + PAGE], after[at : at + PAGE])
            link.write(0, before)


class Copy:
    """What a disk has to have: of each page the contents that it may have."""

    def __init__(self, dice: random.Random, pages: int) -> None:
        self._dice, self.pages = dice, pages
        self.model = [bytes(PAGE)] * pages
        self.killed = self.commands = 0
        self.doubt: tuple[int, list[bytes]] = (0, [])
        """What was asked for last, and may have been done: the first page, and contents."""

    def work(self, link: Nbd) -> None:
        """Send commands until the server dies, then none."""
        while True:
            offset, wanted = self._change(link)
            self.commands += 1
            for at, content in enumerate(wanted):
                self.model[offset + at] = content

    def _change(self, link: Nbd) -> tuple[int, list[bytes]]:
        first = self._dice.randrange(self.pages)
        count = self._dice.randint(1, min(64, self.pages - first))
        kind = self._dice.randrange(6)
        self.doubt = (first, [bytes(PAGE)] * count)
        if kind == 0:
            link.change(TRIM, first * PAGE, count * PAGE)
        elif kind == 1:
            link.change(ZERO, first * PAGE, count * PAGE, self._dice.choice((0, 2)))
        else:
            data = self._dice.randbytes(count * PAGE)
            skipped = self._dice.choice((0, 0, self._dice.randrange(1, PAGE)))
            begun = self.model[first][:skipped] + data[skipped:]
            self.doubt = (first, [begun[at : at + PAGE] for at in range(0, len(begun), PAGE)])
            link.write(first * PAGE + skipped, data[skipped:])
        return self.doubt

    def verify(self, link: Nbd) -> None:
        """Compare all of it; what was not acknowledged may be either."""
        first, wanted = self.doubt
        for page in range(self.pages):
            found = link.read(page * PAGE, PAGE)
            may_be = [self.model[page]]
            if first <= page < first + len(wanted):
                may_be.append(wanted[page - first])
            assert found in may_be, f"page {page}"
            self.model[page] = found

    def work_until_death(self, link: Nbd, verify: bool) -> None:
        """Compare all of it, then work, until the server dies in whichever."""
        with suppress(OSError):
            if verify:
                self.verify(link)
            self.work(link)


def begin_or_die(plane: BlockPlane, **environment: str) -> Nbd | None:
    """Start it; a connection, or None where it died before, as it went on with what a dead one had begun."""
    plane.start(**environment)
    found: list[Nbd] = []

    def attempt() -> bool:
        with suppress(OSError):
            found.append(Nbd(plane.socket).begin())
        return bool(found) or not plane.runs

    assert wait_until(attempt, DEADLINE_SECONDS, 0.01)
    return found[0] if found else None


@pytest.mark.faults
def test_deaths_at_random(plane: BlockPlane) -> None:
    """At any point, also while it goes on after a death."""
    dice = random.Random(seed(20192))
    plane.export(2, sealed=dice.random() < 0.7)
    plane.kill()
    disk = Copy(dice, 2 * MIB // PAGE)
    points = ("filled-journal", "journal", "mirrored", "row", "emptied", "carried-out", "dropped")
    for _ in range(by_night(200, 24)):
        link = begin_or_die(plane, PONDSTACK_CRASH_AT=f"{dice.choice(points)}:{dice.randrange(1, 60)}")
        if link is not None:
            disk.work_until_death(link, disk.commands > 0)
            link.link.close()
        assert plane.await_end() == -signal.SIGKILL
        disk.killed += 1
    plane.start()
    with connect(plane.socket) as link:
        disk.verify(link)
    print(f"{disk.killed} deaths, {disk.commands} commands acknowledged")
    assert disk.commands > 100
