"""A process with the memory and the command line of a guest, which touches as much of it as a test says.

It says that it is an instance only where a test needs that: agents of tests beside this one scan every instance of the
machine, and clear its accessed bits.
"""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

MIB = 2**20
UUID = str(uuid.uuid4())
"""Of this process: /proc shows the guests of tests that run beside it, too."""

_GUEST = """
import mmap, os, random, sys
local_mib, local_pages, pool_mib, pool_pages = map(int, sys.argv[1:5])
local = mmap.mmap(-1, local_mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
local.madvise(mmap.MADV_DONTFORK)  # as QEMU does; else the kernel may join it with memory of Python's beside it
memory = os.open(sys.argv[5], os.O_RDWR) if sys.argv[5] else os.memfd_create("memory-backend-memfd")
if not sys.argv[5]:
    os.ftruncate(memory, pool_mib << 20)
pool = mmap.mmap(memory, pool_mib << 20, offset=int(sys.argv[6]))
random.seed(1)
def touch(area, mib, pages):
    for page in random.sample(range(mib << 8), pages):
        area[page << 12] = 1
touch(local, local_mib, local_pages)
touch(pool, pool_mib, pool_pages)
print("touched", flush=True)
for line in sys.stdin:
    touch(local, local_mib, int(line))
    print("touched", flush=True)
"""


@dataclass
class Guest:
    """The process. Sizes in MiB, touched pages of 4 KiB each."""

    process: subprocess.Popen[str]
    local_mib: int
    local_pages: int
    pool_mib: int
    pool_pages: int

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def touch(self, pages: int) -> None:
        """Have it touch this many random pages of its local memory, again or for the first time."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{pages}\n")
        self.process.stdin.flush()
        self.wait()

    def wait(self) -> None:
        """Wait until it has touched what it should."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "touched\n"

    def kill(self) -> None:
        """End it at once; idempotent."""
        self.process.kill()
        self.process.wait(10)

    def end(self) -> None:
        """Kill it and forget it."""
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


GuestMaker = Callable[..., Guest]


@pytest.fixture
def start_guest() -> Iterator[GuestMaker]:
    """Start guests of two nodes: local memory without a name, pool memory as a memfd or a range of a file."""
    started: list[Guest] = []

    def start(
        local: tuple[int, int] = (96, 5000),
        pool: tuple[int, int] = (64, 3000),
        file: Path | None = None,
        offset_mib: int = 0,
        more: tuple[str, ...] = (),
        uuid: str = "",
    ) -> Guest:
        where = f"file,mem-path={file},offset={offset_mib}M,share=on" if file else "memfd"
        words = [
            *(("-uuid", uuid) if uuid else ()),
            *("-machine", "q35", "-m", "size=163840k"),
            *("-object", f'{{"qom-type":"memory-backend-ram","id":"ram-node0","size":{local[0] * MIB}}}'),
            *("-numa", "node,nodeid=0,cpus=0,memdev=ram-node0"),
            *("-object", f"memory-backend-{where},id=ram-node1,size={pool[0]}M"),
            *("-numa", "node,nodeid=1,memdev=ram-node1"),
        ]
        sizes = [str(number) for number in (*local, *pool)]
        command = [sys.executable, "-c", _GUEST, *sizes, str(file or ""), str(offset_mib * MIB), *words, *more]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(Guest(process, *local, *pool))
        started[-1].wait()
        return started[-1]

    yield start
    for guest in started:
        guest.end()


@pytest.fixture
def root() -> None:
    """Skip where other users' processes cannot be looked into."""
    if os.geteuid() != 0:
        pytest.skip("not root: /proc/PID/map_files of other processes is closed")
