"""Our own code as a disk for the hosts: the wheel, installed by their pip, and the tests' side of a host."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .qemu import ROOT, Files

_FILES = ("setup.py", "setup.cfg", "pyproject.toml", "README.md")
_FOLDERS = ("pondstack", "agent", "api", "rdma", "nova_plugins", "tempest_tests", "watcher_plugin")
_TESTS = ("tests/hardware", "tests/fixtures", "rdma/tests", "pondstack/tests/rpc", "bench")
_RACK = Path("rack/pondstack_rack")
"""Test servers and what waits for processes; no part of the wheel."""
_SIZE = "64M"


def build(files: Files, folder: Path) -> Path:
    """Build wheel and disk in `folder`; raises RuntimeError with what a tool said."""
    wheel = _wheel(folder)
    # pip of the hosts' root, in that root: the scripts and the byte code are those of its Python.
    with tempfile.TemporaryDirectory(dir=files.root / "tmp") as staging:
        inside = Path("/tmp", Path(staging).name)
        shutil.copy2(wheel, staging)
        pip = ["/opt/pondstack/bin/python", "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
        _run("chroot", str(files.root), *pip, "--prefix", str(inside / "code"), str(inside / wheel.name))
        code = Path(staging, "code")
        for tests in _TESTS:
            shutil.copytree(ROOT / tests, code / tests, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / _RACK, code / _RACK.name, ignore=shutil.ignore_patterns("__pycache__"))
        # Under TCG each process of a host would compile anew what it imports of them: it cannot write to this disk.
        added = {_RACK.name, *(name.partition("/")[0] for name in _TESTS)}
        compile_all = ["/opt/pondstack/bin/python", "-m", "compileall", "-q"]
        _run("chroot", str(files.root), *compile_all, *(str(inside / "code" / name) for name in sorted(added)))
        disk = folder / "code.img"
        _run("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(code), str(disk), _SIZE)
    return disk


def _wheel(folder: Path) -> Path:
    """Build from a copy of the tree: a `build` folder of an earlier build would leak into it."""
    source = folder / "source"
    source.mkdir()
    for name in (*_FILES, *_FOLDERS):
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(
                path, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so", "tests")
            )
        else:
            shutil.copy2(path, source)
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source))
    (wheel,) = folder.glob("*.whl")
    return wheel


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
