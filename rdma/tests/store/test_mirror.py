"""The mirror: what it gives, how it holds writers back, and what a failing disk does to it."""

import errno
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest, InUse, NotFound
from pondstack_rack.wait import wait_until
from pondstack_rdma.errors import MirrorBusy, MirrorDegraded, PageCorrupt, PageLost
from pondstack_rdma.store.mirror.disk import FileDisk, Survives
from pondstack_rdma.store.mirror.mirror import Mirror, MirrorLimits, MirrorState, layout_of
from pondstack_rdma.store.worker import Worker
from rdma.tests.disks import MemoryDisk
from rdma.tests.harness import DEADLINE_SECONDS, PAGE, pattern

PAGES = 16
LIMITS = MirrorLimits(queue_pages=4, batch_pages=3, patience_seconds=0.0, retry_seconds=0.01)
SIZE = layout_of(PAGES, LIMITS).size_bytes


def content(page: int, version: int) -> bytes:
    """What a test writes as that version."""
    return pattern(1000 * page + version, PAGE)


def write(mirror: Mirror, page: int, version: int) -> None:
    """Put a page and make it durable."""
    mirror.put(page, version, content(page, version))
    while mirror.turn() is not None:
        pass


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk(SIZE)


@pytest.fixture
def mirror(disk: MemoryDisk) -> Mirror:
    return Mirror(disk, PAGES, LIMITS)


def test_a_page_is_found_while_it_waits_and_afterwards(mirror: Mirror) -> None:
    mirror.put(3, 1, content(3, 1))
    assert (mirror.queued, mirror.get(3, 1)) == (1, content(3, 1))
    assert mirror.turn() == 0.0
    assert (mirror.queued, mirror.get(3, 1), mirror.version(3)) == (0, content(3, 1), 1)
    assert mirror.turn() is None


def test_no_other_version_is_given(mirror: Mirror) -> None:
    with pytest.raises(PageLost, match="version 1 of page 3, only 0"):
        mirror.get(3, 1)
    write(mirror, 3, 1)
    mirror.put(3, 2, content(3, 2))
    assert mirror.get(3, 2) == content(3, 2)
    assert mirror.get(3, 1) == content(3, 1)  # until the next one is durable
    mirror.turn()
    with pytest.raises(PageLost):
        mirror.get(3, 1)


def test_what_waits_is_replaced_and_takes_no_more_room(mirror: Mirror, disk: MemoryDisk) -> None:
    for version in range(1, 50):
        mirror.put(0, version, content(0, version))
    assert mirror.queued == 1
    mirror.turn()
    assert disk.syncs == 2  # the first block's, and one
    assert mirror.get(0, 49) == content(0, 49)


def test_a_full_queue_refuses_and_changes_nothing(mirror: Mirror) -> None:
    for page in range(4):
        mirror.put(page, 1, content(page, 1))
    with pytest.raises(MirrorBusy, match="4 pages wait") as caught:
        mirror.put(4, 1, content(4, 1))
    assert not isinstance(caught.value, MirrorDegraded)
    assert mirror.version(4) == 0
    mirror.put(0, 2, content(0, 2))
    mirror.turn()
    mirror.put(4, 1, content(4, 1))


def test_a_flush_returns_when_what_waits_is_durable(mirror: Mirror) -> None:
    mirror.put(0, 1, content(0, 1))
    with pytest.raises(MirrorBusy):
        mirror.flush(0)
    mirror.turn()
    mirror.flush(0)
    assert mirror.version(0) == 1


def test_a_flush_returns_when_what_is_being_written_is_durable(mirror: Mirror, disk: MemoryDisk) -> None:
    """Its batch has begun, and no page waits besides."""
    disk.failing = errno.EIO
    mirror.put(0, 1, content(0, 1))
    mirror.turn()
    with pytest.raises(MirrorDegraded):
        mirror.flush(0)
    disk.failing = 0
    mirror.turn()
    mirror.flush(0)
    assert mirror.version(0) == 1


def test_a_writer_waits_for_room(disk: MemoryDisk) -> None:
    mirror = Mirror(disk, PAGES, MirrorLimits(queue_pages=1, batch_pages=1, patience_seconds=DEADLINE_SECONDS))
    mirror.put(0, 1, content(0, 1))
    thread = threading.Thread(target=mirror.put, args=(1, 1, content(1, 1)))
    thread.start()
    mirror.turn()
    thread.join(DEADLINE_SECONDS)
    assert mirror.get(1, 1) == content(1, 1)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_failing_disk_loses_nothing(mirror: Mirror, disk: MemoryDisk, error: int) -> None:
    write(mirror, 0, 1)
    disk.failing = error
    for page in range(4):
        mirror.put(page, 2, content(page, 2))
    assert mirror.turn() == LIMITS.retry_seconds
    assert mirror.state is MirrorState.DEGRADED
    assert "make room on it or replace it" in mirror.reason
    with pytest.raises(MirrorDegraded, match="4 pages wait in memory"):
        mirror.put(9, 1, content(9, 1))
    with pytest.raises(MirrorDegraded):
        mirror.flush(0)
    assert [mirror.get(page, 2) for page in range(4)] == [content(page, 2) for page in range(4)]
    disk.failing = 0
    while mirror.turn() is not None:
        pass
    assert (mirror.state, mirror.reason, mirror.queued) == (MirrorState.GOOD, "", 0)
    again = Mirror(disk.crash_none(), PAGES, LIMITS)
    assert [again.get(page, 2) for page in range(4)] == [content(page, 2) for page in range(4)]


def test_a_batch_is_written_again_as_a_whole(mirror: Mirror, disk: MemoryDisk) -> None:
    """After a sync that failed the kernel may have dropped all of it."""
    for page in range(3):
        mirror.put(page, 1, content(page, 1))
    disk.failing = errno.EIO
    mirror.turn()
    disk.failing = 0
    disk.writes_left = 1
    mirror.put(3, 1, content(3, 1))
    assert mirror.turn() == LIMITS.retry_seconds
    disk.writes_left = None
    assert mirror.turn() == 0.0
    mirror.turn()
    again = Mirror(disk.crash_none(), PAGES, LIMITS)
    assert [again.get(page, 1) for page in range(4)] == [content(page, 1) for page in range(4)]


def test_slots_go_round(mirror: Mirror) -> None:
    """Every page is written many times, on three spare slots."""
    for version in range(1, 20):
        for page in range(PAGES):
            write(mirror, page, version)
    assert all(mirror.get(page, 19) == content(page, 19) for page in range(PAGES))


def test_a_damaged_page_is_told(mirror: Mirror, disk: MemoryDisk) -> None:
    write(mirror, 3, 1)
    raw = disk.read(0, SIZE)
    at = raw.index(content(3, 1))
    disk.write(at + 100, b"\xff")
    disk.sync()
    with pytest.raises(PageCorrupt, match="page 3"):
        mirror.get(3, 1)
    again = Mirror(disk.crash_none(), PAGES, LIMITS)
    assert (again.version(3), again.torn) == (0, {3: 1})
    write(again, 3, 2)
    assert (again.get(3, 2), again.torn) == (content(3, 2), {})


def test_a_lost_header_does_not_bring_back_an_older_page(mirror: Mirror, disk: MemoryDisk) -> None:
    """Its slot's header is wiped once the next version is durable; else it would be taken for the newest one."""
    write(mirror, 3, 1)
    write(mirror, 3, 2)
    disk.sync()
    raw = disk.read(0, SIZE)
    layout = layout_of(PAGES, LIMITS)
    slot = (raw.index(content(3, 2)) - layout.data_at(0)) // PAGE
    disk.write(layout.header_at(slot), b"\xff")
    disk.sync()
    again = Mirror(disk.crash_none(), PAGES, LIMITS)
    assert again.version(3) == 0


def test_another_page_in_its_slot_is_told(mirror: Mirror, disk: MemoryDisk) -> None:
    write(mirror, 3, 1)
    write(mirror, 4, 1)
    raw = disk.read(0, SIZE)
    disk.write(raw.index(content(3, 1)), content(4, 1))
    with pytest.raises(PageCorrupt):
        mirror.get(3, 1)


def test_readers_and_the_writer_at_once(disk: MemoryDisk) -> None:
    """A slot that is freed and written again while it is read is not taken for the page."""
    mirror = Mirror(disk, PAGES, MirrorLimits(queue_pages=8, batch_pages=3, patience_seconds=DEADLINE_SECONDS))
    worker = Worker("writer", mirror.turn)
    mirror.on_work = worker.wake
    last = dict.fromkeys(range(PAGES), 0)
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            for page in range(PAGES):
                if version := last[page]:
                    try:
                        if mirror.get(page, version) != content(page, version):
                            wrong.append((page, version))
                    except PageLost:
                        continue  # there is a newer one
                    except PageCorrupt as error:
                        wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for version in range(1, 30):
        for page in range(PAGES):
            mirror.put(page, version, content(page, version))
            last[page] = version
    mirror.close(DEADLINE_SECONDS)
    done.set()
    worker.stop()
    for reader in readers:
        reader.join(DEADLINE_SECONDS)
    assert not wrong


def test_a_closed_mirror_takes_nothing(mirror: Mirror) -> None:
    mirror.close(0)
    mirror.close(0)
    with pytest.raises(MirrorDegraded, match="closed"):
        mirror.put(0, 1, content(0, 1))
    assert mirror.turn() is None


def test_close_tells_what_was_not_written(mirror: Mirror, disk: MemoryDisk) -> None:
    mirror.put(0, 1, content(0, 1))
    disk.failing = errno.EIO
    mirror.turn()
    with pytest.raises(MirrorDegraded):
        mirror.close(0)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda mirror: mirror.put(PAGES, 1, bytes(PAGE)), NotFound),
        (lambda mirror: mirror.get(-1, 1), NotFound),
        (lambda mirror: mirror.put(0, 1, bytes(PAGE - 1)), BadRequest),
        (lambda mirror: mirror.put(0, 0, bytes(PAGE)), BadRequest),
    ],
)
def test_what_is_no_page_is_refused(mirror: Mirror, call: Callable[[Mirror], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(mirror)


def test_a_foreign_file_is_not_touched(disk: MemoryDisk) -> None:
    disk.write(0, b"something else")
    before = disk.read(0, SIZE)
    with pytest.raises(MirrorDegraded, match="no mirror"):
        Mirror(disk, PAGES, LIMITS)
    assert disk.read(0, SIZE) == before


def test_a_mirror_of_another_size_is_refused(mirror: Mirror, disk: MemoryDisk) -> None:
    write(mirror, 0, 1)
    with pytest.raises(BadRequest, match="16 pages and 3 spare slots, not 8"):
        Mirror(disk, 8, LIMITS)


@pytest.mark.parametrize("survives", Survives)
def test_a_file_keeps_it(tmp_path: Path, survives: Survives) -> None:
    path = tmp_path / "mirror"
    disk = FileDisk(path, SIZE, survives)
    mirror = Mirror(disk, PAGES, LIMITS)
    write(mirror, 3, 7)
    with pytest.raises(InUse, match="another process"):
        FileDisk(path, SIZE)
    mirror.close()
    disk.close()
    disk.close()
    assert path.stat().st_mode & 0o777 == 0o600
    again = FileDisk(path, SIZE, survives)
    assert Mirror(again, PAGES, LIMITS).get(3, 7) == content(3, 7)
    again.close()


def test_no_room_for_the_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(MirrorDegraded, match="make room"):
        FileDisk(tmp_path / "mirror", 2**30)  # conftest.py limits the size of files
    with pytest.raises(MirrorDegraded):
        FileDisk(tmp_path / "nowhere" / "mirror", SIZE)


def test_a_worker_survives_a_fault() -> None:
    turns = []

    def turn() -> float | None:
        turns.append(1)
        if len(turns) == 1:
            raise ValueError
        return None

    worker = Worker("faulty", turn)
    assert wait_until(lambda: len(turns) == 1, DEADLINE_SECONDS)
    worker.wake()
    assert wait_until(lambda: len(turns) == 2, DEADLINE_SECONDS)
    worker.stop()
    worker.stop()
