"""What needs root, by oslo.privsep: a few verbs. An agent that stays root runs them itself, without a helper process.

Each returns what the kernel said instead of raising it: what crosses privsep are plain values.
"""

import errno
import mmap
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from oslo_privsep import capabilities

from pondstack_agent.drivers.cxl import attributes, nonzero
from pondstack_agent.host import sysfs_write
from pondstack_agent.privilege.context import Context
from pondstack_rdma import cpu_cache

# Its attributes and devices are root's, who needs no capability for them; modules.
context = Context("cxl", __name__, [capabilities.CAP_SYS_MODULE])

_SYSTEMD = "/run/systemd/system"
_TOOL_SECONDS = 60.0
_CHUNK_BYTES = 2 * 1024 * 1024
_MOST_BYTES = 4096  # one page: the most that an attribute has

# One process for all blocks, which can be killed: the kernel tries for as long as pages move, for ever if it must,
# until the writer gets a signal.
_OFFLINE = 'for block; do echo offline >"$block/state" || exit 1; echo "$block"; done'


@context.entrypoint
def write_attribute(path: str, text: str) -> str:
    """Write an attribute of sysfs; return '' or what the kernel said."""
    attributes.check_attribute(path)
    return sysfs_write.write(path, text)


@context.entrypoint
def read_attribute(path: str) -> str:
    """Return an attribute that the kernel shows to root only, as physical addresses; raises OSError."""
    attributes.check_readable(path)
    if not os.path.realpath(path).startswith(attributes.DEVICES):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(handle, _MOST_BYTES).decode()
    finally:
        os.close(handle)


@context.entrypoint
def load_module(name: str) -> str:
    """Load a kernel module of CXL or dax; return '' or what modprobe said.

    The agent's unit may not load modules: there systemd does it.
    """
    attributes.check_module(name)
    trouble = _run("modprobe", name)
    if trouble and os.path.isdir(_SYSTEMD):
        # That unit never fails; modprobe, too, succeeds with a module that is there already.
        _run("systemctl", "start", f"modprobe@{name}.service")
        trouble = _run("modprobe", name)
    return trouble


@context.entrypoint
def create_region(decoder: str, memdev: str) -> str:
    """Make a region of volatile memory over all of one device; return '' or what the tool said."""
    attributes.check_region(decoder, memdev)
    return _run("cxl", "create-region", "-m", "-t", "ram", "-d", decoder, "-w", "1", memdev)


@context.entrypoint
def first_written_byte(device: str, size_bytes: int) -> int | None:
    """Return the offset of the first byte that is not zero, None when all are: every byte is read."""
    with _mapped(device, size_bytes) as memory:
        return nonzero.first(memory)


@context.entrypoint
def zero(device: str, size_bytes: int) -> None:
    """Write zeros over a whole dax device; `first_written_byte` says whether they are there."""
    zeros = bytes(_CHUNK_BYTES)
    with _mapped(device, size_bytes) as memory:
        for start in range(0, size_bytes, _CHUNK_BYTES):
            end = min(start + _CHUNK_BYTES, size_bytes)
            memory[start:end] = zeros[: end - start]


@context.entrypoint
def write_back(device: str, size_bytes: int) -> str:
    """Have this host's CPU caches hold nothing of a dax device any more; return '' or why they may.

    Caches are physically tagged: what a guest wrote by its own mapping goes, too.
    """
    try:
        with _mapped(device, size_bytes) as memory:
            cpu_cache.write_back(memory)
    except OSError as error:
        return error.strerror or str(error)
    return ""


@context.entrypoint
def offline_blocks(folders: Sequence[str], seconds: float) -> tuple[list[str], str]:
    """Take memory blocks offline one after the other; return those that went, and why it ended before the last."""
    for folder in folders:
        attributes.check_block(folder)
    command = ["sh", "-c", _OFFLINE, "sh", *folders]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, said = process.communicate(timeout=seconds)
            trouble = said.strip().rpartition(": ")[2]
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            trouble = f"pages still move after {seconds:g} s"
    return out.split(), trouble


@contextmanager
def _mapped(device: str, size_bytes: int) -> Iterator[memoryview]:
    attributes.check_device(device)
    handle = os.open(device, os.O_RDWR)
    try:
        # Writable for the look, too: ctypes tells the address of such a buffer only.
        memory = mmap.mmap(handle, size_bytes)
    finally:
        os.close(handle)
    with memory, memoryview(memory) as view:
        yield view


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TOOL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]}: {error}"
    if done.returncode == 0:
        return ""
    return " ".join((done.stderr or done.stdout).split()) or f"{command[0]} ended with {done.returncode}"
