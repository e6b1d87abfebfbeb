"""One migration of a guest, in one of the ways, and what it took."""

import contextlib
import itertools
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.migration.guest import GuestHungError, MovingGuest
from bench.migration.hosts import Hosts, hosts
from bench.migration.network import DESTINATION, PAGES, SOURCE, STREAM, Network, Wire
from pondstack.devices.qmp import Monitor
from pondstack_rack.wait import Deadline, wait_until
from rdma.tests.data_plane.qemu_guest import MEMORY

SECONDS = 300.0
WARM_SECONDS = 2.0
AFTER_SECONDS = 1.0
"""So long the guest works before, and at the destination until the longest gap is looked for."""

PORT = 4444

ORDINARY, APART, SHARED = "ordinary", "by reference, mirrors apart", "by reference, mirrors shared"
SLICES = "slices of a shared device"


TRIES = 3


class NotBegunError(Exception):
    """There was nothing to be migrated."""


@dataclass(frozen=True)
class Machine:
    """A guest: of `ram_mib` its own program fills `words_mib`, works on `percent` of those, `rate` pages a second."""

    image: Path
    ram_mib: int
    words_mib: int
    rate: int

    def pattern(self, percent: int) -> str:
        """Return how it accesses its memory."""
        return f"hot:{percent}:{self.rate}"


@dataclass(frozen=True)
class Figure:
    """Of one migration. `wire`: from its begin until nothing of the guest is at the source any more; `gap`: the longest
    in which the guest did not get on, in seconds; `running`: until it ran at the destination; `done`: until all was
    there; `handed_mib`: what stayed with lenders."""

    wire: Wire
    running: float
    done: float
    gap: float
    wrong: int
    handed_mib: float = 0.0


@dataclass(frozen=True)
class Bench:
    """Where migrations are done."""

    network: Network
    folder: Path
    machine: Machine

    def turn(self, way: str, percent: int, name: str) -> Figure:
        """Migrate a guest whose working set is so many percent of its memory; another one, if it hung before that."""
        for at in range(TRIES):
            try:
                return self._turn(way, percent, self.folder / f"{name}-{at}")
            except NotBegunError as error:
                print(f"  a guest hung before it was migrated, and another one takes its place: {error}", flush=True)
        raise NotBegunError(f"{TRIES} guests in a row hung before they were migrated")

    def _turn(self, way: str, percent: int, folder: Path) -> Figure:
        folder.mkdir()
        try:
            return self._migrated(way, percent, folder)
        finally:
            shutil.rmtree(folder)

    def _migrated(self, way: str, percent: int, folder: Path) -> Figure:
        if way == ORDINARY:
            return self._by_qemu(folder, percent)
        if way == SLICES:
            return self._by_qemu(folder, percent, slices=folder / "device")
        with hosts(self.network, folder, self.machine.ram_mib // 2 + 16) as made:
            return self._by_reference(folder, percent, made, shared=way == SHARED)

    @contextlib.contextmanager
    def _ends(self, folder: Path, percent: int, **kind: Any) -> Iterator[tuple[MovingGuest, MovingGuest]]:
        made: list[MovingGuest] = []
        machine = self.machine
        told = machine.image, machine.words_mib, machine.ram_mib, machine.pattern(percent)
        try:
            for host in (SOURCE, DESTINATION):
                place = folder / f"qemu-{host}"
                place.mkdir()
                within = self.network.within(host)
                made.append(MovingGuest(*told, place, within, waits=host == DESTINATION, **kind))
                made[-1].await_memory()
            yield made[0], made[1]
        finally:
            for each in made:
                each.kill()

    def _by_qemu(self, folder: Path, percent: int, slices: Path | None = None) -> Figure:
        """`slices`: where half of its memory is, which both hosts reach and QEMU leaves out."""
        with self._ends(folder, percent, slices=slices) as (source, destination):
            _work(source)
            with source.monitor() as here, destination.monitor() as there:
                if slices is not None:
                    _leave_out(here, there)
                begun, before = time.monotonic(), self.network.counted()
                _migrate(here, there)
                running = time.monotonic() - begun
                wire = self.network.counted() - before
            source.kill()
            return _figure(source, destination, wire, begun, running, running)

    def _by_reference(self, folder: Path, percent: int, made: Hosts, *, shared: bool) -> Figure:
        limit_mib = self.machine.ram_mib // 2
        with self._ends(folder, percent, opened=True) as (source, destination):
            former, mirror = folder / "mirror-source", folder / "mirror-destination"
            made.source.attach(source, former, limit_mib, memory=MEMORY)
            made.lender.lend(made.source, SOURCE)
            _work(source)
            with source.monitor() as here, destination.monitor() as there:
                begun, before = time.monotonic(), self.network.counted()
                incoming = made.offer(PAGES.address(SOURCE))
                if shared:
                    incoming["mirror"] = str(former)
                made.destination.attach(destination, mirror, limit_mib, memory=MEMORY, incoming=incoming)
                made.lender.lend(made.destination, DESTINATION, handed=True)
                made.await_destination("waiting")
                _leave_out(here, there)
                _migrate(here, there)
            source.kill()
            running = time.monotonic() - begun
            made.await_all()
            done, wire = time.monotonic() - begun, self.network.counted() - before
            handed_mib = made.destination.view()["store"]["handed"] * 4096 / 2**20
            return _figure(source, destination, wire, begun, running, done, handed_mib)


def _work(source: MovingGuest) -> None:
    try:
        source.work()
    except GuestHungError as error:
        raise NotBegunError(str(error)) from error
    Deadline(0.0).pause(WARM_SECONDS)


def _leave_out(*monitors: Monitor) -> None:
    """Have both QEMUs leave out what is a shared file; QEMU 10 has no -global for it."""
    for each in monitors:
        each.execute("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True}])


def _migrate(here: Monitor, there: Monitor) -> None:
    uri = f"tcp:{STREAM.address(DESTINATION)}:{PORT}"
    there.execute("migrate-incoming", uri=uri)
    here.execute("migrate", uri=uri)

    def done() -> bool:
        here.renew()
        status = here.execute("query-migrate")["status"]
        assert status != "failed", here.execute("query-migrate")
        return bool(status == "completed")

    assert wait_until(done, SECONDS, 0.01), here.execute("query-migrate")
    there.execute("cont")


def _figure(
    source: MovingGuest,
    destination: MovingGuest,
    wire: Wire,
    begun: float,
    running: float,
    done: float,
    handed_mib: float = 0.0,
) -> Figure:
    """Look for the longest gap, and have the guest verify its memory."""
    came = len(destination.console.beats())
    assert wait_until(lambda: len(destination.console.beats()) > came + 10, SECONDS, 0.05)
    Deadline(0.0).pause(AFTER_SECONDS)
    beats = [at for each in (source, destination) for at in each.console.beats()]
    around = [at for at in beats if at > begun - WARM_SECONDS / 2]
    gap = max(after - before for before, after in itertools.pairwise(around))
    destination.stop()
    return Figure(wire, running, done, gap, destination.wrong_words(), handed_mib)
