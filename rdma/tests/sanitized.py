"""Builds of rdma/native with sanitizers, and processes that use them."""

import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from .harness import child_environment

NATIVE = Path(__file__).resolve().parents[1] / "native"
_FLAGS = ["-std=c17", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-DPy_LIMITED_API=0x030b0000"]
_SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


def build(sources: Sequence[Path], built: Path) -> None:
    """Build an extension: the first invalid access of memory, or undefined operation, ends its process."""
    include = [f"-I{sysconfig.get_paths()['include']}", f"-I{NATIVE}"]
    command = ["gcc", *_FLAGS, *_SANITIZERS, *include, *map(str, sources), "-o", str(built)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run(script: str, *arguments: str) -> str:
    """Run a script of this folder, which loads such a build: what it printed."""
    preload = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environment = child_environment() | {
        "LD_PRELOAD": preload.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter's own are not ours
        "PYTHONMALLOC": "malloc",  # so that each buffer has its own bounds
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout
