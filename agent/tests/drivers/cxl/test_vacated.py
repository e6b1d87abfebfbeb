"""A guest that left its allocation, and one that only looks like it."""

from pathlib import Path

import pytest

from pondstack.domain.errors import InUse
from pondstack_agent.drivers.cxl import vacated


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """One guest, process 10, with local memory only."""
    (tmp_path / "10").mkdir()
    (tmp_path / "10/maps").write_text("7f00-7f10 rw-p 00000000 00:00 0\n")
    (tmp_path / "10/stat").write_text(f"10 (qemu (1) x) S {' '.join(str(n) for n in range(4, 53))}\n")
    lies(tmp_path, "bind:0 anon=3 N0=3")
    return tmp_path


def lies(proc: Path, where: str) -> None:
    """Say where the guest's memory is."""
    (proc / "10/numa_maps").write_text(f"7f00 {where} kernelpagesize_kB=4\n")


def test_a_guest_that_left_does_not_hold_its_allocation(proc: Path) -> None:
    state = {"state": "online", "reason": "", **vacated.mark("vm1", 10, 1, proc)}
    assert state["vacated"] == [10, 22, 1]
    assert not vacated.runs_on(10, state, proc)
    assert vacated.of(state) == {"vacated": [10, 22, 1]}


def test_one_that_runs_on_the_pool_does(proc: Path) -> None:
    assert vacated.runs_on(10, {"state": "online"}, proc)
    assert vacated.runs_on(10, None, proc)
    assert not vacated.runs_on(None, None, proc)


@pytest.mark.parametrize("where", ["bind:0 anon=3 N0=2 N1=1", "bind:1 anon=3 N0=3"])
def test_the_kernel_has_the_last_word(proc: Path, where: str) -> None:
    state = vacated.mark("vm1", 10, 1, proc)
    lies(proc, where)
    assert vacated.runs_on(10, state, proc)
    with pytest.raises(InUse):
        vacated.mark("vm1", 10, 1, proc)


def test_a_guest_that_was_started_again_holds_it(proc: Path) -> None:
    state = vacated.mark("vm1", 10, 1, proc)
    assert vacated.runs_on(11, state, proc)
    state["vacated"][1] = 21  # the same process id, of a later boot
    assert vacated.runs_on(10, state, proc)
