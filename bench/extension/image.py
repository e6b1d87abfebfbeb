"""What the guests of the tables are made of: the kernel of the emulated hosts, a root disk of Debian packages."""

import gzip
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench.extension.micro import SOURCES
from rdma.tests.data_plane import builds
from tests.hardware.qemu import Files

HERE = Path(__file__).with_name("guest")
BUILT = Path(os.environ.get("BENCH_EXTENSION", Path(__file__).resolve().parents[2] / ".bench-extension"))
DISK = "300M"


@dataclass(frozen=True)
class Image:
    """The files of a guest; guests share them, and change none."""

    kernel: Path
    initramfs: Path
    disk: Path

    @classmethod
    def build(cls, folder: Path) -> Self:
        """Build what is missing or out of date; raises CalledProcessError, having said why."""
        files = Files.built()
        subprocess.run([HERE / "build.sh", BUILT], check=True)
        return cls(files.folder / "vmlinuz", _initramfs(files, folder), _disk(folder))


def _initramfs(files: Files, folder: Path) -> Path:
    """Return that of the emulated hosts, whose busybox and modules are taken, with an init of ours."""
    tree = folder / "initramfs.d"
    tree.mkdir()
    shutil.copy(HERE / "init", tree / "init")
    command = ["cpio", "--quiet", "-o", "-H", "newc"]
    archive = subprocess.run(command, cwd=tree, input=b"init\n", stdout=subprocess.PIPE, check=True).stdout
    made = folder / "initramfs"
    made.write_bytes((files.folder / "initrd").read_bytes() + gzip.compress(archive, 1))
    return made


def _disk(folder: Path) -> Path:
    ours = BUILT / "root/opt"
    ours.mkdir(exist_ok=True)
    builds.build(ours / "microbenchmark", SOURCES, ("-O2", "-static"), libraries=())
    shutil.copy(HERE / "workloads.py", ours)
    made = folder / "root.img"
    made.unlink(missing_ok=True)
    command = ["/sbin/mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(BUILT / "root"), str(made), DISK]
    subprocess.run(command, check=True, capture_output=True)
    return made
