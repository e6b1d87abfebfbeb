"""Access scans of real processes: hot is what was used since the scan before, and a scan costs what is allowed."""

import itertools
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pondstack.rpc.wire import Sample
from pondstack_agent.qemu.process import under_kvm
from pondstack_agent.telemetry import access, referenced, untouched
from pondstack_agent.telemetry.access import FIRST, AccessLook, Clocks
from pondstack_agent.telemetry.damon import NONE, Damon, Watched
from pondstack_agent.telemetry.mappings import Mapped
from pondstack_agent.telemetry.outbox import Outbox
from pondstack_agent.telemetry.referenced import Used

from .conftest import MIB, UUID, Guest, GuestMaker

OTHER = "99999999-9999-4999-8999-999999999999"
PAGES_PER_MIB = 256
EXACT = 0.05
"""Pages that the kernel itself touches, and bits that it clears, in between."""

pytestmark = pytest.mark.usefixtures("root")


class FakeDamon(Damon):
    """A DAMON that cannot be had, or finds what it is told and costs half a second."""

    def __init__(self, why_not: str = NONE, *used: Used) -> None:
        self._why_not, self._used = why_not, list(used)

    def why_not(self) -> str:
        return self._why_not

    def watch(self, _pid: int, ranges: Sequence[Mapped]) -> Watched:
        assert len(ranges) == len(self._used)
        return Watched(self._used, 0.5)


@dataclass
class Rig:
    """Looks at guests with a clock of the test's own."""

    running: dict[str, int]
    cpu_percent: float = 100.0
    costs: list[float] = field(default_factory=list)
    outbox: Outbox = field(default_factory=lambda: Outbox(itertools.count(0, 3600).__next__))
    now: float = 0.0
    cpu: float = 0.0
    damon: FakeDamon = field(default_factory=FakeDamon)

    def __post_init__(self) -> None:
        self.look = AccessLook(
            self.outbox,
            10.0,
            self.cpu_percent,
            self.damon,
            running=lambda: self.running,
            clocks=Clocks(self._wall, self._cpu),
        )

    def _wall(self) -> float:
        self.now += 1.0
        return self.now

    def _cpu(self) -> float:
        """Each scan reads it twice, and costs the next of `costs` in between."""
        self.cpu += self.costs.pop(0) if self.costs else 0.0
        return self.cpu

    def run(self) -> dict[tuple[str, str, int | None], Sample]:
        self.look.run()
        return {(item.consumer_uuid, item.metric, item.node): item for item in self.outbox.take()}


def test_hot_is_what_was_used_since_the_scan_before(start_guest: GuestMaker) -> None:
    guest = start_guest(local=(96, 15000), pool=(64, 3000))
    rig = Rig({UUID: guest.pid})
    first = rig.run()
    assert first[UUID, "hot_mib", None].reason == FIRST
    assert first[UUID, "hot_mib", None].readings == 0
    guest.touch(6000)
    second = rig.run()
    before, hot, cold = pages(guest)
    assert second[UUID, "hot_mib", 0].mean == pytest.approx(hot / PAGES_PER_MIB, rel=EXACT)
    assert second[UUID, "cold_mib", 0].mean == pytest.approx(cold / PAGES_PER_MIB, rel=EXACT)
    assert second[UUID, "hot_mib", 1].mean == 0
    assert second[UUID, "cold_mib", 1].mean == pytest.approx(guest.pool_pages / PAGES_PER_MIB, rel=EXACT)
    assert second[UUID, "hot_mib", None].mean == second[UUID, "hot_mib", 0].mean
    assert before == guest.local_pages
    third = rig.run()
    assert third[UUID, "hot_mib", None].mean == pytest.approx(0, abs=0.5)


def pages(guest: Guest) -> tuple[int, int, int]:
    """Return the pages of local memory touched first, since, and of all those only first: the guest's own numbers."""
    random.seed(1)
    count = guest.local_mib * PAGES_PER_MIB
    first = set(random.sample(range(count), guest.local_pages))
    random.sample(range(guest.pool_mib * PAGES_PER_MIB), guest.pool_pages)
    since = set(random.sample(range(count), 6000))
    return len(first), len(since), len(first - since)


def test_a_scan_that_would_cost_too_much_is_skipped_and_said(start_guest: GuestMaker) -> None:
    """0.16 GiB at 0.05 s of a CPU for each, against 0.01 % of 10 s."""
    guest = start_guest()
    rig = Rig({UUID: guest.pid}, cpu_percent=0.01)
    found = rig.run()
    assert found[UUID, "hot_mib", None].reason.startswith("skipped: the scan would take about 0.008 s of a CPU")
    assert (UUID, "scan_seconds", None) not in found


def test_the_cost_is_measured_told_and_limits_the_next(start_guest: GuestMaker) -> None:
    guest = start_guest()
    rig = Rig({UUID: guest.pid}, costs=[0.0, 11.0])
    first = rig.run()
    assert first[UUID, "scan_cpu_seconds", None].mean == 11.0
    assert first[UUID, "scan_seconds", None].mean == 1.0
    assert rig.run()[UUID, "hot_mib", None].reason.startswith("skipped: the scan would take about 11.000 s")


def test_a_limit_for_one_takes_turns(start_guest: GuestMaker) -> None:
    one, two = start_guest(), start_guest()
    rig = Rig({UUID: one.pid, OTHER: two.pid}, costs=[0.0, 9.996] * 4)
    scanned = []
    for _ in range(3):
        found = rig.run()
        scanned.append({name for name, metric, _ in found if metric == "scan_seconds"})
    assert scanned == [{UUID}, {OTHER}, {UUID}]


def test_another_process_of_the_same_guest_begins_anew(start_guest: GuestMaker) -> None:
    guest = start_guest()
    rig = Rig({UUID: guest.pid})
    rig.run()
    rig.running = {UUID: start_guest().pid}
    assert rig.run()[UUID, "hot_mib", None].reason == FIRST


def test_guests_of_kvm_are_known(tmp_path: Path, start_guest: GuestMaker) -> None:
    folder = tmp_path / "7" / "fd"
    folder.mkdir(parents=True)
    os.symlink("anon_inode:kvm-vm", folder / "12")
    assert under_kvm(7, tmp_path)
    assert not under_kvm(start_guest().pid)


def test_guests_under_kvm_are_watched_by_damon(start_guest: GuestMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel's thread took counts as the scan's cost, and the first scan tells already."""
    monkeypatch.setattr(access, "under_kvm", lambda _pid, _proc: True)
    damon = FakeDamon("", Used(3 * MIB, 5 * MIB), Used(0, 2 * MIB))
    rig = Rig({UUID: start_guest().pid}, costs=[0.0, 2.0], damon=damon)
    found = rig.run()
    assert [found[UUID, "hot_mib", node].mean for node in (0, 1, None)] == [3.0, 0.0, 3.0]
    assert [found[UUID, "cold_mib", node].mean for node in (0, 1, None)] == [5.0, 2.0, 7.0]
    assert found[UUID, "scan_cpu_seconds", None].mean == 2.5


def test_where_damon_cannot_be_had_guests_under_kvm_say_so(
    start_guest: GuestMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "under_kvm", lambda _pid, _proc: True)
    found = Rig({UUID: start_guest().pid}).run()
    assert found[UUID, "hot_mib", None].reason == found[UUID, "cold_mib", None].reason == NONE
    assert (UUID, "scan_seconds", None) not in found


def test_what_smaps_cannot_tell_is_said(start_guest: GuestMaker, tmp_path: Path) -> None:
    guest = start_guest()
    (group,) = untouched.groups(guest.pid)[1:]
    whole = group.ranges[0]
    half = Mapped(whole.start, whole.start + MIB)
    assert referenced.scan(guest.pid, [half])[0].reason == referenced.CUT
    (tmp_path / "7").mkdir()
    smaps = "7f0000000000-7f0000200000 rw-s 00000000 00:0f 9 /dev/hugepages/x\nRss: 0 kB\nKernelPageSize: 2048 kB\n"
    (tmp_path / "7" / "smaps").write_text(smaps)
    huge = Mapped(0x7F0000000000, 0x7F0000200000)
    assert referenced.scan(7, [huge], tmp_path)[0].reason == referenced.HUGE


def test_real_clocks_measure(start_guest: GuestMaker) -> None:
    guest = start_guest()
    outbox = Outbox(lambda: 0.0)
    AccessLook(outbox, 1800.0, 1.0, FakeDamon(), running=lambda: {UUID: guest.pid}).run()
    costs = {item.metric: item.mean for item in outbox.take() if item.readings}
    wall, cpu = costs["scan_seconds"], costs["scan_cpu_seconds"]
    assert wall is not None
    assert cpu is not None
    assert 0 < cpu < 18
    assert wall > 0
