"""Builds of rdma/native for tests: with sanitizers, with points where a process kills itself; programs of tests."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from oslo_concurrency import lockutils

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
NATIVE = HERE.parents[1] / "native"
FOLDERS = ("replacement", "store", "links", "pager", "block", "handover", "control")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
THREADS = ("-fsanitize=thread",)
CRASH_POINTS = ("-DPONDSTACK_CRASH_POINTS",)
_FLAGS = ("-std=c17", "-g", "-O1", "-Wall", "-Wextra", "-Werror")
_LIBRARIES = ("-lrdmacm", "-libverbs", "-ljansson", "-lcrypto", "-lpthread")
HOST_LIBRARIES = tuple("-l:libjansson.a" if name == "-ljansson" else name for name in _LIBRARIES)
"""For a program that runs in an emulated host, whose disk has no libjansson."""


def sources(*folders: str) -> list[Path]:
    """Return the sources of folders of rdma/native."""
    return [path for folder in folders for path in sorted((NATIVE / folder).glob("*.c"))]


def build(
    built: Path, files: Sequence[Path], flags: Sequence[str] = SANITIZERS, libraries: Sequence[str] = _LIBRARIES
) -> Path:
    """Build a program; fails with what the compiler said."""
    with tempfile.TemporaryDirectory(dir=built.parent) as folder:
        objects = [Path(folder) / f"{number}.o" for number in range(len(files))]
        for source, made in zip(files, objects, strict=True):
            _gcc("-c", source, "-o", made, *flags)
        _gcc(*objects, "-o", built, *flags, *libraries)
    return built


def _gcc(*words: str | Path) -> None:
    """Call the compiler, which makes each object once: programs and stages of a run share most of them."""
    environment = os.environ | {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
    command = ["ccache", "gcc", *_FLAGS, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Path]) -> Path:
    """Return what `make` builds in a folder of this name: the first worker of a run builds it, the others wait."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    path = folder / "path"
    with lockutils.external_lock(f"{name}.lock", lock_path=str(folder.parent)):
        if not path.exists():
            folder.mkdir(exist_ok=True)
            path.write_text(str(make(folder)))
    return Path(path.read_text())


def programs(factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the data plane, with sanitizers and points to die at, and the stand-in guest, built once a run."""
    return once(factory, "data_plane", data_plane), once(factory, "standin_guest", standin_guest)


def racing(factory: pytest.TempPathFactory) -> Path:
    """Return the data plane with the thread sanitizer, built once a run."""
    return once(factory, "racing", lambda folder: data_plane(folder, THREADS))


def data_plane(folder: Path, flags: Sequence[str] = (*SANITIZERS, *CRASH_POINTS)) -> Path:
    """Build pondstack-data-plane."""
    return build(folder / "pondstack-data-plane", sources(*FOLDERS), flags)


def tiers(folder: Path, flags: Sequence[str] = SANITIZERS, libraries: Sequence[str] = _LIBRARIES) -> Path:
    """Build the process that moves pages as a pager's thread does; see tier_process.c."""
    return build(
        folder / "tier_process", [HERE / "tier_process.c", *sources("links", "replacement", "store")], flags, libraries
    )


def standin_guest(folder: Path) -> Path:
    """Build the process that stands in for a guest."""
    return build(folder / "standin_guest", [HERE / "standin_guest.c", NATIVE / "pager" / "latency.c"], ("-O2",))


def floor(folder: Path) -> Path:
    """Build the floor: pages moved between two memories by userfaultfd, and nothing else."""
    return build(folder / "floor", [HERE / "floor.c", NATIVE / "pager" / "latency.c"], ("-O2",))


def nbd_fuzz(folder: Path) -> Path:
    """Build what says anything to the code that takes what an NBD client says."""
    files = [HERE / "nbd_fuzz.c", *(NATIVE / "block" / f"{name}.c" for name in ("connection", "device", "negotiation"))]
    return build(folder / "nbd_fuzz", [*files, *sources("replacement", "store"), NATIVE / "pager" / "latency.c"])
