"""The kernel tiers between local and pool memory as the agent's policy says: shown by the kernel's own counters."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from pondstack.devices import pool_uuid
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant

from .channel import Started
from .conftest import Hardware
from .cxl_rack import PYTHON, SERIAL, TABLE, CxlRack, make_device
from .figures import Figures
from .host import EmulatedHost
from .machine import Machine

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(1200)]

HOST, SLICES, SLICE_MIB = "host1", 6, 128
TPP = {"demotion": "true", "promotion": "2", "watermark": "100", "weights": [5, 1]}
COLD_MIB, HEADROOM_MIB, INTERLEAVED_MIB = 256, 192, 192
"""Left alone until it is demoted; how much more than what is free is asked of the local node; interleaved memory."""
TOUCH_SECONDS, IDLE_SCANS = 10, 5
"""How long a process uses its pages at a time; after how many of the kernel's scans without a promotion to give up."""
HOT_MIB, WATCHED_MIB = 48, 144
WINDOWS = ["--hot", "20", "--warm", "40"]
"""Long enough for a whole round over the pages on a busy machine."""
SAME_TIER = (
    *("-object", "memory-backend-ram,id=near,size=1024M", "-numa", "node,nodeid=0,cpus=0-1,memdev=near"),
    *("-object", "memory-backend-ram,id=far,size=512M", "-numa", "node,nodeid=1,memdev=far"),
)
"""A node without CPUs that the firmware describes as ordinary memory."""


@pytest.fixture(scope="module")
def host(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedHost]:
    """One host with tier slices that are online."""
    folder = tmp_path_factory.mktemp("pool") / "device"
    make_device(folder, SLICES, SLICE_MIB)
    with hardware.hosts(Machine(HOST, (folder / "memory",), shares={TABLE: folder})) as hosts:
        rack, extents = CxlRack(hosts, folder), (Extent(0, SLICES),)
        rack.device.grant(HOST, extents, tag="tier", epoch=1)
        grant = Grant("tier", "host", HOST, pool_uuid(SERIAL), "pool0", {}, SLICE_MIB, extents, 1, "tier")
        assert [backing.host_node for backing in rack.open(HOST).attach(grant)] == [1]
        yield hosts[0]


@pytest.fixture(scope="module")
def tiering(host: EmulatedHost) -> Any:
    """The agent's tiering in that host."""
    return host.remote("tests.hardware.guest.tiering:Host")


@contextmanager
def process(host: EmulatedHost, command: Sequence[str], ready: str = "") -> Iterator[Started]:
    """A process in the host, ended afterwards."""
    started = host.start(command, env={"PYTHONPATH": "/opt/code"})
    try:
        started.wait_for(ready)
        yield started
    finally:
        started.kill()


def memory(host: EmulatedHost, mib: int, *policy: str) -> Any:
    """Return a process with so much memory, filled."""
    return process(host, [PYTHON, "-m", "tests.hardware.guest.pages", str(mib), *policy], "filled")


def moved(tiering: Any, before: dict[str, int], prefix: str) -> int:
    """Return how many pages moved since."""
    return sum(count - before[name] for name, count in tiering.vmstat().items() if name.startswith(prefix))


def test_settings_are_the_kernels_and_are_put_back(tiering: Any) -> None:
    before = tiering.settings()
    tiering.start(TPP)
    report = tiering.report()
    print(report)
    assert report["trouble"] == []
    assert report["settings"] == {
        "demotion": "true",
        "promotion": "2",
        "watermark_scale_factor": "100",
        "interleave_node0": "5",
        "interleave_node1": "1",
    }
    local, pool = (next(int(tier) for tier, nodes in report["tiers"].items() if n in nodes) for n in (0, 1))
    assert local < pool
    assert set(report["settings"].values()) <= set(tiering.settings().values())
    tiering.stop()
    assert tiering.settings() == before
    # Killed with everything set; the next start has no policy any more.
    tiering.start_killed(TPP)
    assert tiering.settings() != before
    tiering.start({})
    assert tiering.settings() == before


def test_an_order_switches_tiering_at_run_time_and_holds_over_a_restart(tiering: Any) -> None:
    before = tiering.settings()
    tiering.start({}, True)
    tiering.order(True)
    assert tiering.report()["settings"] == {"demotion": "true", "promotion": "2"}
    tiering.stop()
    assert tiering.settings() == before
    tiering.start({}, True)
    assert tiering.report()["settings"] == {"demotion": "true", "promotion": "2"}
    assert tiering.report()["trouble"] == []
    tiering.order(False)
    assert tiering.report()["settings"] == {"demotion": "false"}
    tiering.order(None)
    assert tiering.settings() == before
    tiering.stop()


@pytest.fixture
def tpp(tiering: Any) -> Iterator[Any]:
    """The policy in force."""
    tiering.start(TPP)
    assert tiering.report()["trouble"] == []
    yield tiering
    tiering.stop()


def test_a_sixth_of_interleaved_pages_is_on_the_pool_node(host: EmulatedHost, tpp: Any, figures: Figures) -> None:
    with memory(host, INTERLEAVED_MIB, "weighted", "0", "1") as started:
        pages = tpp.pages(started.pid, INTERLEAVED_MIB)
    figures.add("weighted interleave 5:1, share on the pool node", pages[1] / sum(pages.values()), "", "1/6 +- 1 %")
    assert pages[1] / sum(pages.values()) == pytest.approx(1 / 6, rel=0.01)


def test_memory_of_a_guest_follows_the_policy_that_its_qemu_was_started_with(
    host: EmulatedHost, tpp: Any, figures: Figures
) -> None:
    """A memory backend without a policy of its own: what one VM's emulator shim with numactl comes to."""
    backend = f"memory-backend-ram,id=ram0,size={INTERLEAVED_MIB}M,prealloc=on"
    qemu = ["qemu-system-x86_64", "-accel", "tcg", "-S", "-display", "none", "-nodefaults", "-monitor", "stdio"]
    guest = ["-machine", "q35,memory-backend=ram0", "-m", f"{INTERLEAVED_MIB}M", "-object", backend]
    with process(host, ["numactl", "--weighted-interleave=0,1", *qemu, *guest], "QEMU") as started:
        pages = tpp.pages(started.pid, INTERLEAVED_MIB)
    figures.add("the same, RAM of a QEMU under numactl", pages[1] / sum(pages.values()), "", "1/6 +- 2 %")
    assert pages[1] / sum(pages.values()) == pytest.approx(1 / 6, rel=0.02)


def test_cold_pages_are_demoted_under_pressure_and_promoted_when_hot(
    host: EmulatedHost, tpp: Any, figures: Figures
) -> None:
    with memory(host, COLD_MIB) as cold:
        at_first, before = tpp.pages(cold.pid, COLD_MIB // 2), tpp.vmstat()
        assert at_first == {0: COLD_MIB * 256}
        wanted = tpp.free_mib(0) + HEADROOM_MIB
        with memory(host, wanted, "bind", "0") as bound:  # as the local node of a guest is bound
            demoted, below = moved(tpp, before, "pgdemote_"), tpp.pages(cold.pid, COLD_MIB // 2).get(1, 0)
            figures.add(
                "pages of bound memory that are demoted all the same", tpp.pages(bound.pid, 64).get(1, 0), "pages"
            )
        figures.add("pages demoted under pressure", demoted, "pages", "> 0")
        figures.add("of them, pages that were left alone", below, "pages", "> 0")
        assert demoted > 0
        assert below > 0
        before = tpp.vmstat()
        left = touched_until(
            cold, lambda: tpp.pages(cold.pid, COLD_MIB // 2).get(1, 0), lambda: tpp.scans(cold.pid), below // 2
        )
        promoted = moved(tpp, before, "pgpromote_success")
        figures.add("pages promoted when hot", promoted, "pages", "> 0")
        assert promoted > 0
        assert left <= below // 2


def touched_until(process: Started, count: Callable[[], int], scans: Callable[[], int], limit: int) -> int:
    """Have the process use its pages until no more than `limit` are counted; return the least count.

    The kernel promotes what is used within a second of its scan of the process, and scans only after 32 times as much
    use as the last scan took (task_numa_work), which was 40 s in a host on a busy machine. So scans are waited for.
    """
    least, scanned, number = count(), scans(), 0
    while least > limit and scans() - scanned < IDLE_SCANS:
        number += 1
        process.write(f"{TOUCH_SECONDS} {COLD_MIB}\n")
        process.wait_for(f"touched {number} ")
        left = count()
        if left < least:
            least, scanned = left, scans()
    return least


@pytest.mark.night
def test_the_profiler_finds_what_a_process_uses(host: EmulatedHost, figures: Figures) -> None:
    with memory(host, WATCHED_MIB) as watched:
        watched.write(f"600 {HOT_MIB}\n")
        command = ["pondstack-profile", "--pid", str(watched.pid), *WINDOWS, "--json"]
        found = json.loads(host.run(command).check().stdout)
    anon, cost = found["types"]["anon"], found["cost"]
    print(found)
    figures.add(f"profiler: hot of {HOT_MIB} MiB that are used", anon["hot"] / 1024, "MiB", "+- 15 %")
    figures.add(f"profiler: cold of {WATCHED_MIB - HOT_MIB} MiB", anon["cold"] / 1024, "MiB", "+- 15 %")
    figures.add("profiler: processor time of one table", cost["processor_seconds"], "s")
    assert anon["hot"] == pytest.approx(HOT_MIB * 1024, rel=0.15)
    assert anon["cold"] == pytest.approx((WATCHED_MIB - HOT_MIB) * 1024, rel=0.15)


@pytest.mark.night
def test_pool_memory_in_the_tier_of_local_memory_is_told(hardware: Hardware) -> None:
    machine = Machine("host2", memory_mib=1536, qemu_options=SAME_TIER)
    with hardware.hosts(machine) as [host]:
        tiering = host.remote("tests.hardware.guest.tiering:Host")
        tiering.start({"demotion": "true"})
        report = tiering.report()
        tiering.stop()
    print(report)
    assert report["settings"] == {"demotion": "true"}
    [trouble] = report["trouble"]
    assert trouble.startswith("node 1 is not in a lower memory tier than local memory")
