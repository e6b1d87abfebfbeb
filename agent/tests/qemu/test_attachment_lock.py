"""The lock by which a guest holds its slices."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pondstack_agent.qemu.attachment_lock import hold, unheld
from pondstack_rack.wait import wait_until


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "a.json"
    path.write_text("{}")
    return path


def test_a_held_record_is_not_free_until_the_last_holder_ends(record: Path) -> None:
    handles = [hold(record), hold(record)]
    for handle in handles:
        with unheld(record) as free:
            assert free is False
        os.close(handle)
    with unheld(record) as free:
        assert free is True


def test_a_head_that_waits_for_a_detach_finds_nothing_to_hold(record: Path) -> None:
    started = threading.Event()

    def start_guest() -> int:
        started.set()
        return hold(record)

    with ThreadPoolExecutor(1) as threads:
        with unheld(record) as free:
            assert free
            guest = threads.submit(start_guest)
            assert started.wait(30)
            wait_until(lambda: _somebody_waits(record), 30, 0.01)
            record.unlink()
        with pytest.raises(FileNotFoundError, match="was removed"):
            guest.result(30)


def _somebody_waits(path: Path) -> bool:
    """Tell whether a process waits for a lock of the file (`->` in /proc/locks)."""
    inode = f":{path.stat().st_ino} "
    return any("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())
