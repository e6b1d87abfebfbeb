"""Agents that are root no more, and guests whose memory they could not read themselves."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pondstack_agent.privilege.context import PREFIX

USER = os.environ.get("SEPARATED_USER", "nobody")
STATE = os.environ.get("SEPARATED_STATE", "")
"""A folder of that user's, where the tests may not give one away."""
UUID = "7b0a5c1e-3f52-4c1d-9f0e-2d6a8c4b1e93"
HERE = Path(__file__).parent
ROOT = HERE.parents[2]

_GUEST = """
import mmap, os, sys
local = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
local.madvise(mmap.MADV_NOHUGEPAGE)
file = os.open(sys.argv[1], os.O_RDWR)
pool = mmap.mmap(file, 4 << 20, offset=4 << 20)
for page in range(256):
    local[page << 12] = pool[page << 12] = 1
print(flush=True)
sys.stdin.read()
"""


def status(pid: int) -> dict[str, str]:
    """Return what the kernel says of a process."""
    lines = Path("/proc", str(pid), "status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    mine = [
        int(word) for path in Path("/proc", str(pid), "task").glob("*/children") for word in path.read_text().split()
    ]
    return mine + [found for child in mine for found in children(child)]


def privileged(pid: int) -> dict[str, int]:
    """Return the privileged processes below a process: name of the context to process id."""
    named = {Path("/proc", str(child), "comm").read_text().strip(): child for child in children(pid)}
    return {name.removeprefix(PREFIX): child for name, child in named.items() if name.startswith(PREFIX)}


def reachable(path: Path) -> bool:
    """Tell whether other users than root get at a file of ours."""
    return all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))


@pytest.fixture
def root() -> None:
    """Skip where nobody can become another user, or where that user could not read this code."""
    if os.geteuid() != 0:
        pytest.skip("not root: nobody else can be become")
    if not (reachable(ROOT) and reachable(Path(sys.prefix))):
        pytest.skip(f"the user {USER} cannot read {ROOT} and {sys.prefix}")


@pytest.fixture
def home(root: None) -> Iterator[Path]:
    """A folder that the user can get into: pytest closes its own to others, whenever one begins."""
    del root
    folder = Path(tempfile.mkdtemp(prefix="agent-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


class Separated:
    """agent/tests/privilege/separated.py with a file of options."""

    def __init__(self, config: Path) -> None:
        command = [sys.executable, str(HERE / "separated.py"), str(config)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(self, expression: str) -> dict[str, Any]:
        """Return what it has as `value`, or `error` and its `text`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{expression}\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def ask(self, expression: str) -> Any:
        """Return what an expression is there."""
        found = self.answer(expression)
        assert "value" in found, found
        return found["value"]

    def end(self) -> None:
        """Have it end by itself, and with it those that it started."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


@pytest.fixture
def config(home: Path) -> Path:
    """The file of an agent with all that needs root. Its state's folder is made by it."""
    file = home / "agent.conf"
    file.write_text(
        f"[DEFAULT]\ntransport_url = fake://\nhost = host1\n[agent]\nuser = {USER}\n"
        f"state_dir = {STATE or home / 'state/agent'}\n"
        "controller_timeout_seconds = 1\nheartbeat_seconds = 0.3\ndrivers = cxl\n"
    )
    return file


@pytest.fixture
def agent(config: Path) -> Iterator[Separated]:
    """An agent's process that has become the user."""
    made = Separated(config)
    yield made
    made.end()


@pytest.fixture
def pool_file(home: Path) -> Path:
    """Memory of a pool, which only root may read."""
    file = home / "memory"
    with file.open("wb") as memory:
        memory.truncate(16 << 20)
    file.chmod(0o600)
    return file


@pytest.fixture
def guest(pool_file: Path) -> Iterator[int]:
    """A guest of root's with a page of 4 KiB in each of the first 256 of local and of pool memory."""
    words = [
        *("-uuid", UUID, "-machine", "q35", "-m", "12"),
        *("-object", f'{{"qom-type":"memory-backend-ram","id":"ram-node0","size":{8 << 20}}}'),
        *("-numa", "node,nodeid=0,cpus=0,memdev=ram-node0"),
        *("-object", f"memory-backend-file,mem-path={pool_file},offset=4M,share=on,id=ram-node1,size=4M"),
        *("-numa", "node,nodeid=1,memdev=ram-node1"),
    ]
    command = [sys.executable, "-c", _GUEST, str(pool_file), *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process.pid
        process.kill()


@pytest.fixture
def user() -> pwd.struct_passwd:
    """The user that agents become."""
    return pwd.getpwnam(USER)
