"""A guest inside an emulated host: QEMU of the host's own, a zNUMA node on the host's pool node, one program in it.

It runs under KVM of the host, whose emulated CPUs have SVM and nested paging: as in production, and ten times as fast
as TCG within TCG, whose inner code is translated anew each time that the inner kernel patches itself.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .channel import DEADLINE_SECONDS, CommandFailed, Started
from .host import EmulatedHost
from .qemu import Files

SOURCE = Path(__file__).parent / "guest/znuma.c"
MACHINES = "/sys/fs/cgroup/machine.slice"
_START = 'mkdir -p "$0" && echo $$ >"$0/cgroup.procs" && exec "$@"'
_PASS = re.compile(r"pass (\d+) wrong (\d+) words (\d+)\r?\n")


def build(files: Files, folder: Path) -> None:
    """Put kernel and initramfs of the guest into a folder that the host sees."""
    inside = folder / "inside"
    inside.mkdir(parents=True)
    subprocess.run(["gcc", "-static", "-O2", "-o", inside / "init", SOURCE], check=True)
    archive = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], input=b"init\n", cwd=inside, capture_output=True)
    (folder / "initrd").write_bytes(archive.stdout)
    shutil.copy2(files.folder / "vmlinuz", folder / "vmlinuz")


def command(
    folder: str, consumer: str, *, pool_mib: int, node: int, distance: int, local_mib: int = 160, touch: bool = False
) -> list[str]:
    """Return how to start it, with the policies of our virt driver's XML; its console is its input and output.

    `touch`: QEMU touches all of the pool's part first, as a guest does in time.
    """
    pool = f"memory-backend-ram,id=ram-node1,size={pool_mib}M,host-nodes={node},policy=preferred"
    return [
        *("qemu-system-x86_64", "-uuid", consumer, "-accel", "kvm", "-cpu", "host", "-machine", "pc", "-smp", "1"),
        *("-m", f"{local_mib + pool_mib}M", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio"),
        *("-object", f"memory-backend-ram,id=ram-node0,size={local_mib}M,host-nodes=0,policy=bind"),
        *("-object", f"{pool},prealloc={'on' if touch else 'off'}"),
        *("-numa", "node,nodeid=0,cpus=0,memdev=ram-node0", "-numa", "node,nodeid=1,memdev=ram-node1"),
        *("-numa", f"dist,src=0,dst=1,val={distance}", "-numa", f"dist,src=1,dst=0,val={distance}"),
        *("-kernel", f"{folder}/vmlinuz", "-initrd", f"{folder}/initrd"),
        *("-append", "console=ttyS0 quiet panic=-1 mitigations=off audit=0 no_timer_check"),
    ]


def plain(consumer: str, *, size_mib: int) -> list[str]:
    """Return how to start a guest without pool memory whose memory is all touched; nothing runs in it."""
    return [
        *(
            "qemu-system-x86_64",
            "-uuid",
            consumer,
            "-accel",
            "tcg",
            "-machine",
            "none",
            "-nodefaults",
            "-display",
            "none",
        ),
        *("-object", f"memory-backend-ram,id=ram,size={size_mib}M,host-nodes=0,policy=bind,prealloc=on"),
        *("-monitor", "stdio"),
    ]


def start_in_cgroup(host: EmulatedHost, name: str, argv: Sequence[str]) -> Started:
    """Start a command in a cgroup of its own, as libvirt and systemd do for a guest."""
    host.run(["modprobe", "kvm_amd"]).check()
    host.run(["sh", "-ec", f"mkdir -p {MACHINES}; echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control"]).check()
    host.run(["sh", "-ec", f"echo +cpuset >{MACHINES}/cgroup.subtree_control"]).check()
    started: Started = host.start(
        ["sh", "-ec", _START, f"{MACHINES}/{name}.scope", *argv], env={"PYTHONPATH": "/opt/code"}
    )
    return started


@contextmanager
def running(host: EmulatedHost, name: str, argv: Sequence[str], said: str) -> Iterator[Started]:
    """Have a guest run in a cgroup of its own, from when it has said something on; it is killed at the end."""
    guest = start_in_cgroup(host, name, argv)
    try:
        if not _came_up(host, guest, said):
            print(f"guest {name} ended before its kernel's first word; it is started once more")
            guest = start_in_cgroup(host, name, argv)
            guest.wait_for(said)
        yield guest
    finally:
        end(guest)


def _came_up(host: EmulatedHost, guest: Started, said: str) -> bool:
    """Wait until a guest has said something; False when it ended with 0 before its kernel's first word.

    Seen once, for no known reason, among dozens of starts: an emulated CPU with an emulated SVM in it. QEMU ends with
    another code when it is killed or cannot go on; that raises CommandFailed.
    """
    try:
        guest.wait_for(said)
    except CommandFailed:
        if guest.output().strip() or guest.wait() != 0:
            print(f"the host's kernel said last:\n{host.run(['dmesg']).stdout[-2000:]}")
            raise
        return False
    return True


def end(guest: Started) -> None:
    """Kill a guest and print what it said last, which pytest shows when its test failed."""
    guest.kill()
    print(f"what the guest said last:\n{guest.output()[-2000:]}")


def passes(text: str) -> list[tuple[int, int]]:
    """Return wrong words and all words of each whole look of the guest at its memory."""
    return [(int(wrong), int(words)) for _, wrong, words in _PASS.findall(text)]


def wait_for_passes(guest: Started, more: int = 1, after: str = "") -> list[tuple[int, int]]:
    """Wait until the guest has looked at its memory `more` times from now on (or since it printed `after`)."""
    output = guest.wait_for(after) if after else guest.output()
    number = len(passes(output)) + more
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(found := passes(output)) < number:
        if time.monotonic() > deadline or not guest.running():
            raise TimeoutError(f"no {more} looks of the guest:\n{output[-2000:]}")
        guest.channel.request("wait", pid=guest.pid, timeout=0.5)
        output = guest.output()
    return found
