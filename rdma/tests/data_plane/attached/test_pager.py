"""A process under the pager: its limit, what it reads, and what comes of a store that fails, its end, a detachment."""

import os
import resource
import signal
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from pondstack_rack.wait import wait_until
from tests.fixtures.seeds import by_night

from ..policies import MODELS
from ..processes import DEADLINE_SECONDS, GUEST, DataPlane, StandinGuest

Guests = Callable[..., StandinGuest]
PAGES_PER_MIB = 256
PAGE_BYTES = 4096


def await_count(plane: DataPlane, name: str, least: int = 1) -> None:
    """Wait until a counter has come so far."""
    assert wait_until(lambda: plane.view()["counters"][name] >= least, DEADLINE_SECONDS), plane.view()


def await_quiet(plane: DataPlane) -> None:
    """Wait until two looks one after the other count the same: a frozen guest's last faults are served."""
    seen: list[dict[str, int]] = [{}, {}]

    def the_same() -> bool:
        seen[:] = [seen[1], plane.view()["counters"]]
        return seen[0] == seen[1]

    assert wait_until(the_same, DEADLINE_SECONDS)


def mirror_of(whole: bytes, damage: str) -> bytes:
    """Return a mirror that is damaged."""
    if damage == "changed":
        return bytes(byte ^ 1 for byte in whole[:4096]) * (len(whole) // 4096)
    return whole[:4096].ljust(len(whole), b"\0")


def restore(mirror: Path, whole: bytes, damaged: bytes) -> None:
    """Mend what is damaged still; a page that was evicted since then has the newer content."""
    with mirror.open("r+b") as file:
        for place in range(0, len(whole), 4096):
            file.seek(place)
            if file.read(4096).ljust(4096, b"\0") == damaged[place : place + 4096]:
                file.seek(place)
                file.write(whole[place : place + 4096])


def waits_for_pager(pid: int) -> bool:
    """Tell whether a thread of a process waits in the kernel for whoever reads its userfaultfd."""
    return any("userfault" in path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/wchan"))


def first_word(page: int, version: int) -> int:
    """Return what standin_guest.c writes to the beginning of a page, with the seed 1."""
    value = ((1 ^ page << 32 ^ version << 10) + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


@pytest.mark.parametrize("policy", sorted(MODELS))
def test_no_word_is_wrong(policy: str, plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    served = guest(8, pattern="skewed")
    plane.attach(served, tmp_path / "mirror", 2, policy=policy)
    await_count(plane, "loads", 3000)
    view = plane.view()
    assert view["state"] == "serving"
    assert view["counters"]["evictions"] > 1000
    assert view["counters"]["eviction_failures"] == view["counters"]["over_limit"] == 0
    assert view["service"]["count"] > 1000
    plane.detach()
    counts = served.finish()
    assert counts["wrong"] == 0
    assert counts["missing"] > 1000


def test_the_limit_holds_and_changes(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    served = guest(16)
    plane.attach(served, tmp_path / "mirror", 12)
    for limit_mib in (12, 3, 1, 6, 16):
        assert plane.ask(verb="limit", guest=GUEST, limit_mib=limit_mib)["limit_mib"] == limit_mib
        most = limit_mib * PAGES_PER_MIB
        assert wait_until(lambda most=most: plane.view()["resident_pages"] <= most, DEADLINE_SECONDS)
        await_count(plane, "faults", plane.view()["counters"]["faults"] + 50 * (limit_mib < 16))
        assert plane.view()["resident_pages"] <= most
    assert wait_until(lambda: plane.view()["resident_pages"] > 15 * PAGES_PER_MIB, DEADLINE_SECONDS)
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_the_guests_own_memory_is_what_is_resident(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    """The kernel says so, not only the pager: pages have left the memfd."""
    served = guest(16)
    plane.attach(served, tmp_path / "mirror", 2)
    await_count(plane, "evictions", 4000)
    os.kill(served.pid, signal.SIGSTOP)  # what it asked for is served; then nothing moves
    (path,) = (path for path in Path(f"/proc/{served.pid}/map_files").iterdir() if "ram-node0" in os.readlink(path))
    assert wait_until(lambda: path.stat().st_blocks * 512 <= 2 * 2**20, DEADLINE_SECONDS)
    os.kill(served.pid, signal.SIGCONT)
    plane.detach()
    assert served.finish()["wrong"] == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_sequential_faults_read_ahead(threads: int, plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    served = guest(8, threads=threads, pattern="sequential")
    plane.attach(served, tmp_path / "mirror", 2, read_ahead_pages=16, policy="fifo")
    await_count(plane, "read_ahead", 500)
    before = plane.view()["counters"]  # the first touch of a page is a fault, too, of which nothing is read
    await_count(plane, "read_ahead", before["read_ahead"] + 2000)
    counters = plane.view()["counters"]
    assert counters["read_ahead"] - before["read_ahead"] > 2 * (counters["faults"] - before["faults"])
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_without_read_ahead(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    served = guest(8, threads=1, pattern="sequential")
    plane.attach(served, tmp_path / "mirror", 2, read_ahead_pages=0)
    await_count(plane, "faults", 2000)
    assert plane.view()["counters"]["read_ahead"] == 0
    plane.detach()
    assert served.finish()["wrong"] == 0


@pytest.mark.parametrize("policy", sorted(MODELS))
def test_pages_of_a_chunk_come_and_leave_together(policy: str, plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    served = guest(8, pattern="skewed")
    plane.attach(served, tmp_path / "mirror", 2, policy=policy, read_ahead_pages=0, chunk_pages=16)
    await_count(plane, "loads", 20000)
    counters = plane.view()["counters"]
    # Without chunks nothing comes unasked here; two threads that fault in one chunk at once count twice.
    assert counters["read_ahead"] > counters["faults"]
    assert counters["eviction_failures"] == counters["read_failures"] == 0
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_a_guest_gives_up_pages_of_chunks(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    served = guest(8, threads=8, pattern="discard")
    plane.attach(served, tmp_path / "mirror", 2, policy="s3-fifo", read_ahead_pages=32, chunk_pages=16)
    await_count(plane, "discards", by_night(4000, 1000))
    await_count(plane, "loads", by_night(20000, 5000))
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_what_the_guest_gives_up_is_zero(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    served = guest(8, pattern="discard")
    plane.attach(served, tmp_path / "mirror", 2)
    await_count(plane, "discards", 500)
    await_count(plane, "loads", 500)
    plane.detach()
    counts = served.finish()
    assert counts["wrong"] == 0
    assert counts["discards"] >= 500


def test_no_thread_waits_for_a_pager_that_let_it_go(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    """Who gives a page up waits until somebody has read of it, who misses one until it is there; nobody would tell."""
    served = guest(8, threads=8, pattern="discard")
    for _ in range(by_night(15, 4)):
        plane.attach(served, tmp_path / "mirror", 2, policy="s3-fifo", read_ahead_pages=32, chunk_pages=16)
        await_count(plane, "discards", 100)
        plane.detach()
        assert wait_until(lambda: not waits_for_pager(served.pid), DEADLINE_SECONDS), "it waits for ever"
    assert served.finish()["wrong"] == 0


@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "plain"])
def test_the_mirror_tells_nothing_when_sealed(sealed: bool, plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    served = guest(8, threads=1)
    plane.attach(served, tmp_path / "mirror", 2, sealed=sealed)
    await_count(plane, "evictions", 3000)
    mirror = (tmp_path / "mirror").read_bytes()
    words = {struct.pack("<Q", first_word(page, version)) for page in range(8 * PAGES_PER_MIB) for version in range(30)}
    found = sum(mirror[at : at + 8] in words for at in range(0, len(mirror), PAGE_BYTES))
    assert (found > 1000) == (not sealed)
    assert not sealed or found == 0
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_a_mirror_that_takes_no_writes(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    """Pages stay and faults are slow; then all is as before."""
    served = guest(8)
    plane.attach(served, tmp_path / "mirror", 2)
    await_count(plane, "evictions", 1000)
    assert plane.process
    unlimited = resource.prlimit(plane.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(plane.process.pid, resource.RLIMIT_FSIZE, (4096, unlimited[1]))
    await_count(plane, "eviction_failures")
    await_count(plane, "over_limit")
    resource.prlimit(plane.process.pid, resource.RLIMIT_FSIZE, unlimited)
    assert wait_until(lambda: plane.view()["resident_pages"] <= 2 * PAGES_PER_MIB, DEADLINE_SECONDS)
    plane.detach()
    assert served.finish()["wrong"] == 0


@pytest.mark.parametrize("damage", ["changed", "cut off"])
def test_a_mirror_that_gives_something_else(damage: str, plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    """The guest waits, and goes on once its pages are there again."""
    mirror = tmp_path / "mirror"
    served = guest(8)
    plane.attach(served, mirror, 2)
    await_count(plane, "evictions", 1000)
    os.kill(served.pid, signal.SIGSTOP)
    await_quiet(plane)
    whole = mirror.read_bytes()
    mirror.write_bytes(mirror_of(whole, damage).rstrip(b"\0"))
    os.kill(served.pid, signal.SIGCONT)
    await_count(plane, "read_failures", 3)
    assert plane.view()["state"] == "serving"
    restore(mirror, whole, damaged=mirror_of(whole, damage))
    await_count(plane, "loads", plane.view()["counters"]["loads"] + 100)
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_detached_and_attached_again(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    mirror, record = tmp_path / "mirror", plane.folder / "guests" / f"{GUEST}.json"
    served = guest(8)
    descriptors = set[str]()
    for _ in range(3):
        plane.attach(served, mirror, 2)
        await_count(plane, "loads", 100)
        descriptors = descriptors or set(os.listdir(f"/proc/{served.pid}/fd"))
        assert mirror.exists()
        assert record.exists()
        plane.detach()
        assert not mirror.exists()
        assert not record.exists()
    assert set(os.listdir(f"/proc/{served.pid}/fd")) == descriptors
    assert served.finish()["wrong"] == 0


def test_the_guest_ends(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    served = guest(8)
    plane.attach(served, tmp_path / "mirror", 2)
    await_count(plane, "loads", 100)
    served.kill()
    assert wait_until(lambda: not plane.ask(verb="view")["guests"], DEADLINE_SECONDS)
    assert not (tmp_path / "mirror").exists()
    assert not list((plane.folder / "guests").iterdir())


def test_the_guest_ends_while_nobody_serves(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    served = guest(8)
    plane.attach(served, tmp_path / "mirror", 2)
    plane.kill()
    served.kill()
    plane.start()
    plane.await_ready()
    assert plane.ask(verb="view")["guests"] == []
    assert not (tmp_path / "mirror").exists()
    assert not list((plane.folder / "guests").iterdir())


def test_stopped_and_started(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    """SIGTERM leaves pages where they are; the limit that was set last is that of the next process."""
    served = guest(8)
    plane.attach(served, tmp_path / "mirror", 2)
    plane.ask(verb="limit", guest=GUEST, limit_mib=3)
    plane.stop()
    plane.start()
    plane.await_ready()
    assert plane.view()["limit_mib"] == 3
    await_count(plane, "loads", 100)
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_two_guests(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    both = [guest(6, seed=number) for number in (1, 2)]
    names = [GUEST[:-1] + digit for digit in "ab"]
    for name, served in zip(names, both, strict=True):
        plane.attach(served, tmp_path / name, 2, guest=name)
    plane.kill()
    plane.start()
    plane.await_ready()
    for name in names:
        assert wait_until(
            lambda name=name: plane.ask(verb="view", guest=name)["counters"]["loads"] > 500, DEADLINE_SECONDS
        )
        plane.ask(verb="detach", guest=name)
    assert wait_until(lambda: not plane.ask(verb="view")["guests"], DEADLINE_SECONDS)
    assert [served.finish()["wrong"] for served in both] == [0, 0]


@pytest.mark.parametrize("pattern", ["random", "discard"])
def test_evicted_pages_are_counted(pattern: str, plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    """What was touched is resident or evicted, and a next process counts the same."""
    served = guest(8, pattern=pattern)
    plane.attach(served, tmp_path / "mirror", 2)
    await_count(plane, "discards" if pattern == "discard" else "loads", 1000)
    served.stop()
    await_quiet(plane)
    before = plane.view()
    assert 256 < before["evicted_pages"] <= 8 * PAGES_PER_MIB - before["resident_pages"]
    plane.kill()
    plane.start()
    plane.await_ready()
    assert plane.view()["evicted_pages"] == before["evicted_pages"]
    touched = before["evicted_pages"] + before["resident_pages"]
    plane.ask(verb="limit", guest=GUEST, limit_mib=1)
    assert wait_until(lambda: plane.view()["resident_pages"] <= PAGES_PER_MIB, DEADLINE_SECONDS)
    await_quiet(plane)
    view = plane.view()
    assert view["evicted_pages"] + view["resident_pages"] == touched
    plane.detach()
    assert served.finish()["wrong"] == 0
