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

from pondstack_agent.lending.client import Command, LenderClient
from pondstack_agent.lending.program import LENDER
from pondstack_rack.wait import wait_until
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.shm import ShmTransport

SECONDS = 60.0
SECRET = b"a page of a tenant, which is lent" * 100
WITHOUT_LIMIT = ("prlimit", "--core=unlimited:unlimited")
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) .*?\n(?:[A-Z].*\n)*?VmFlags: (.*)$", re.M)


class Lender:
    """A lender's process, with a tenant's page in its memory; `launcher`: words before its command line."""

    def __init__(self, folder: Path, launcher: str = " ".join(WITHOUT_LIMIT)) -> None:
        self.folder = folder
        options = {"folder": str(folder)}
        self.client = LenderClient(folder, Command("h1", "shm", options, buffer_mib=1, launcher=launcher), SECONDS)
        self.client.start()
        incarnation = self.client.hold().incarnation
        index = self.client.register(incarnation)
        granted = self.client.export(incarnation, [index], "h2")
        with ShmTransport(folder).connect(Ticket.from_dict(granted["ticket"]), SECONDS) as link:
            link.write(Key.from_dict(granted["keys"][str(index)]), 0, SECRET)

    @property
    def pid(self) -> int:
        return LENDER.pid(self.folder)

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
def lenders() -> Iterator[list[Lender]]:
    made: list[Lender] = []
    yield made
    for lender in made:
        with suppress(OSError, ValueError, KeyError):
            if lender.client.runs:
                lender.end(signal.SIGKILL)


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


def test_a_helper_that_dies_leaves_no_core(folder: Path, lenders: list[Lender]) -> None:
    needs_cores(folder)
    lenders.append(Lender(folder / "lender"))
    lenders[0].end(signal.SIGABRT)
    assert list(folder.glob("core*")) == []


@pytest.mark.skipif(shutil.which("gcore") is None, reason="gcore (package gdb) is not installed")
def test_a_debugger_of_root_saves_no_page(folder: Path, lenders: list[Lender]) -> None:
    """Not for ever: root may set another filter. By accident it does not happen."""
    lenders.append(Lender(folder / "lender"))
    done = subprocess.run(["gcore", "-o", "dump", str(lenders[0].pid)], cwd=folder, capture_output=True, check=False)
    dumps = list(folder.glob("dump.*"))
    assert dumps or done.returncode
    assert not any(SECRET[:32] in dump.read_bytes() for dump in dumps)


def test_all_memory_of_a_helper_is_locked(folder: Path, lenders: list[Lender]) -> None:
    lenders.append(Lender(folder / "lender"))
    mappings = lenders[0].flags()
    # What the kernel itself maps (vvar, vdso) is never swapped.
    kernels = {"io", "pf", "de"}
    assert [
        flags for permissions, flags in mappings if "w" in permissions and not flags & kernels and "lo" not in flags
    ] == []
    status = Path(f"/proc/{lenders[0].pid}/status").read_text()
    assert "CoreDumping:\t0" in status
    assert Path(f"/proc/{lenders[0].pid}/coredump_filter").read_text() == "00000000\n"
    limits = Path(f"/proc/{lenders[0].pid}/limits").read_text()
    assert re.search(r"^Max core file size +0 +0 ", limits, re.M)


def test_where_little_may_be_locked_the_log_tells(folder: Path, lenders: list[Lender]) -> None:
    launcher = "prlimit --memlock=65536:65536 setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock"
    lenders.append(Lender(folder / "lender", launcher))
    log = (folder / "lender" / LENDER.log).read_text()
    assert "at most 64 KiB" in log
    assert "LimitMEMLOCK=infinity" in log


def test_a_helper_has_no_ability_of_roots_but_to_lock_memory(folder: Path, lenders: list[Lender]) -> None:
    lenders.append(Lender(folder / "lender"))
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{lenders[0].pid}/status").read_text().splitlines())
    lock_only = 1 << 14
    assert [int(status[name], 16) & ~lock_only for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] == [
        0
    ] * 5
    assert status["NoNewPrivs"] == "1"
