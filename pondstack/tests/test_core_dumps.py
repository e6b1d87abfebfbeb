"""Processes with secrets leave no core dump."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

_ABORT = "import os, sys; sys.path[:0] = sys.argv[1:]; {0}; os.abort()"
_FORBID = "from pondstack import core_dumps; core_dumps.forbid()"
ROOT = Path(__file__).parents[2]


def cores(statement: str, folder: Path) -> list[Path]:
    """Return the cores of a process that runs a statement and aborts, with nothing else to keep it from one."""
    folder.mkdir()
    command = ["prlimit", "--core=unlimited:unlimited", sys.executable, "-c", _ABORT.format(statement), str(ROOT)]
    done = subprocess.run(command, cwd=folder, check=False)
    assert done.returncode == -signal.SIGABRT
    return list(folder.glob("core*"))


def test_a_process_that_forbids_it_leaves_none(tmp_path: Path) -> None:
    if not cores("pass", tmp_path / "plain"):
        pytest.skip("core_pattern of this machine is no file in the working folder")
    assert cores(_FORBID, tmp_path / "forbidden") == []


def test_a_process_that_is_not_dumpable_leaves_none_where_the_limit_is_not_asked(tmp_path: Path) -> None:
    """As with core_pattern = |program: the limit is put back, and the rest must do."""
    (tmp_path / "status").mkdir()
    lines = (
        "from pathlib import Path; import ctypes; "
        f"{_FORBID}; "
        "assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0; "
        "assert int(Path('/proc/self/coredump_filter').read_text(), 16) == 0"
    )
    assert cores(lines, tmp_path / "forbidden") == []


@pytest.mark.parametrize(
    "path", ["pondstack/cmd/controller.py", "agent/pondstack_agent/cmd.py", "agent/pondstack_agent/helper/process.py"]
)
def test_each_process_with_secrets_forbids_it(path: str) -> None:
    assert "core_dumps.forbid()" in (ROOT / path).read_text()
