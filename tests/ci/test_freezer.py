"""A command that is frozen loses the time, and nothing else."""

import os
import sys

import pytest

from tests.ci import freezer

TICKS = """
import time
last, worst, ends = time.monotonic(), 0.0, time.monotonic() + 2.5
while time.monotonic() < ends:
    now = time.monotonic()
    worst, last = max(worst, now - last), now
raise SystemExit(7 if worst > 0.6 else 1)
"""


def test_all_stands_still_and_goes_on() -> None:
    if os.getuid() != 0:
        pytest.skip("needs root: it makes a control group")
    code, frozen = freezer.run([sys.executable, "-c", TICKS], freeze_seconds=0.8, every_seconds=0.5)
    assert (code, frozen >= 1) == (7, True)


@pytest.mark.parametrize(
    ("mounts", "file"),
    [
        ("x /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\nx /sys/fs/cgroup/unified cgroup2 rw 0 0", "cgroup.freeze"),
        ("x /sys/fs/cgroup/freezer cgroup rw,freezer 0 0", "freezer.state"),
    ],
)
def test_either_version_will_do(mounts: str, file: str) -> None:
    assert freezer.find(mounts).file == file


def test_a_machine_without_one_says_so() -> None:
    with pytest.raises(freezer.NoFreezer, match="cgroup2"):
        freezer.find("proc /proc proc rw 0 0")
