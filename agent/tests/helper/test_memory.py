"""What a helper has in memory stays there: no core dump, no debugger's, no swap; what cannot be had is told."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pondstack_agent.pagestore.client import StoreClient
from pondstack_agent.pagestore.program import PAGE_STORE
from pondstack_agent.pagestore.settings import StoreSettings
from pondstack_rack.wait import wait_until
from tests.fixtures.page_reader import PageReader

from ..pagestore.conftest import content

SECONDS = 60.0
SECRET = content(7, 1)
WITHOUT_LIMIT = ("prlimit", "--core=unlimited:unlimited")
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) .*?\n(?:[A-Z].*\n)*?VmFlags: (.*)$", re.M)


class Store:
    """A page store without lenders: its pages are in the mirror's queue, and on their way in its memory."""

    def __init__(self, folder: Path, launcher: str = " ".join(WITHOUT_LIMIT)) -> None:
        self.folder = folder
        self.client = StoreClient(folder, launcher, SECONDS)
        self.client.make(StoreSettings("consumer1", 2, str(folder / "mirror"), "shm", {"folder": str(folder)}))
        self.client.start()
        with PageReader(folder) as reader:
            reader.write(7, SECRET)
            assert reader.read(7) == SECRET

    @property
    def pid(self) -> int:
        return PAGE_STORE.pid(self.folder)

    def end(self, number: int) -> None:
        os.kill(self.pid, number)
        assert wait_until(lambda: not self.client.runs, SECONDS)

    def flags(self) -> list[tuple[str, set[str]]]:
        """Return permissions and flags of each mapping; see proc_pid_smaps(5)."""
        found = _MAPPING.findall(Path(f"/proc/{self.pid}/smaps").read_text())
        return [(permissions, set(flags.split())) for _, _, permissions, flags in found]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a core would be: core_pattern is a name in the working folder, on a machine without systemd-coredump."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stores() -> Iterator[list[Store]]:
    made: list[Store] = []
    yield made
    for store in made:
        with suppress(OSError, ValueError, KeyError):
            if store.client.runs:
                store.end(signal.SIGKILL)


def core_of(command: list[str], folder: Path) -> list[Path]:
    """Return the cores that a command leaves which ends itself by SIGABRT."""
    done = subprocess.run([*WITHOUT_LIMIT, *command], cwd=folder, check=False)
    assert done.returncode == -signal.SIGABRT
    return list(folder.glob("core*"))


def needs_cores(folder: Path) -> None:
    """Skip where a process that dies leaves no core in its folder anyhow: then there is nothing to see."""
    plain = folder / "plain"
    plain.mkdir()
    if not core_of([sys.executable, "-c", "import os; os.abort()"], plain):
        pytest.skip("core_pattern of this machine is no file in the working folder")


def test_a_page_store_that_dies_leaves_no_core(folder: Path, stores: list[Store]) -> None:
    needs_cores(folder)
    stores.append(Store(folder / "store"))
    stores[0].end(signal.SIGABRT)
    assert list(folder.glob("core*")) == []


@pytest.mark.skipif(shutil.which("gcore") is None, reason="gcore (package gdb) is not installed")
def test_a_debugger_of_root_saves_no_page_and_no_key(folder: Path, stores: list[Store]) -> None:
    """Not for ever: root may set another filter. By accident it does not happen."""
    stores.append(Store(folder / "store"))
    done = subprocess.run(["gcore", "-o", "dump", str(stores[0].pid)], cwd=folder, capture_output=True, check=False)
    dumps = list(folder.glob("dump.*"))
    assert dumps or done.returncode
    assert not any(SECRET[:32] in dump.read_bytes() for dump in dumps)


def test_all_memory_of_a_page_store_is_locked_and_its_key_dumped_nowhere(folder: Path, stores: list[Store]) -> None:
    stores.append(Store(folder / "store"))
    mappings = stores[0].flags()
    # What the kernel itself maps (vvar, vdso) is never swapped.
    kernels = {"io", "pf", "de"}
    assert [
        flags for permissions, flags in mappings if "w" in permissions and not flags & kernels and "lo" not in flags
    ] == []
    keys = [flags for _, flags in mappings if {"dd", "wf", "lo"} <= flags]
    assert len(keys) == 1
    status = Path(f"/proc/{stores[0].pid}/status").read_text()
    assert "CoreDumping:\t0" in status
    assert Path(f"/proc/{stores[0].pid}/coredump_filter").read_text() == "00000000\n"
    limits = Path(f"/proc/{stores[0].pid}/limits").read_text()
    assert re.search(r"^Max core file size +0 +0 ", limits, re.M)


def test_where_little_may_be_locked_the_key_is_and_the_log_tells_of_the_rest(folder: Path, stores: list[Store]) -> None:
    launcher = "prlimit --memlock=65536:65536 setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock"
    stores.append(Store(folder / "store", launcher))
    assert "LimitMEMLOCK=infinity" in (folder / "store" / PAGE_STORE.log).read_text()
    locked = [flags for _, flags in stores[0].flags() if "lo" in flags]
    assert len(locked) == 1
    assert {"dd", "wf"} <= locked[0]


def test_a_key_that_cannot_be_locked_is_told(folder: Path, stores: list[Store]) -> None:
    launcher = "prlimit --memlock=0:0 setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock"
    stores.append(Store(folder / "store", launcher))
    assert not any("lo" in flags for _, flags in stores[0].flags())
    assert "at most 0 KiB" in (folder / "store" / PAGE_STORE.log).read_text()


def test_a_page_store_has_no_ability_of_roots_but_to_lock_memory(folder: Path, stores: list[Store]) -> None:
    stores.append(Store(folder / "store"))
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{stores[0].pid}/status").read_text().splitlines())
    lock_only = 1 << 14
    assert [int(status[name], 16) & ~lock_only for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] == [
        0
    ] * 5
    assert status["NoNewPrivs"] == "1"
