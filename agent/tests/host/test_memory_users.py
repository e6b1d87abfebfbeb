"""Who uses pool memory, from a copied /proc."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pondstack_agent.host.memory_users import guests, has_ended, pages_on_node

UUID = "7b0a5c1e-3f52-4c1d-9f0e-2d6a8c4b1e91"
QEMU = ["qemu-system-x86_64", "-name", "guest=instance-1", "-uuid", UUID]
MINE, NOBODYS = "\t".join(["64055"] * 4), "\t".join(["65534"] * 4)
STATUS = """<!--
WARNING: THIS IS AN AUTO-GENERATED FILE.
-->
<domstatus state='running' reason='booted' pid='{pid}'>
  <taint flag='high-privileges'/>
  <monitor path='/var/lib/libvirt/qemu/domain-1-instance-1/monitor.sock' type='unix'/>
  <domain type='kvm' id='1'>
    <name>instance-1</name>
    <uuid>{uuid}</uuid>
    <metadata><nova:instance><nova:owner uuid="x"/></nova:instance></metadata>
  </domain>
</domstatus>
"""


def process(proc: Path, pid: int, command: list[str], numa_maps: str = "", uids: str = "0\t0\t0\t0") -> None:
    """Write one process."""
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "cmdline").write_bytes(b"\0".join(word.encode() for word in command) + b"\0")
    (folder / "numa_maps").write_text(numa_maps)
    (folder / "status").write_text(f"Name:\tx\nUid:\t{uids}\nGid:\t0\t0\t0\t0\n")


def test_guests_and_pages(tmp_path: Path) -> None:
    process(
        tmp_path, 10, ["qemu", "-uuid", "vm1", "-m", "1"], "7f00 bind:1 anon=300 N0=44 N1=256 kernelpagesize_kB=4\n"
    )
    process(tmp_path, 11, ["sh"], "7f00 default anon=3 N0=3 N11=5\n7f10 default anon=2 N1=2\n")
    process(tmp_path, 12, ["sleep"], "7f00 default anon=3 N11=5\n")
    (tmp_path / "self").mkdir()
    (tmp_path / "13").mkdir()  # it ended meanwhile
    assert guests(tmp_path) == {"vm1": 10}
    assert pages_on_node(1, tmp_path) == {10: 256, 11: 2}


def libvirt_runs(folder: Path, pid: int, uuid: str = UUID) -> None:
    """Have libvirt run a guest."""
    folder.mkdir(exist_ok=True)
    (folder / "instance-1.xml").write_text(STATUS.format(pid=pid, uuid=uuid))


def test_a_guest_of_libvirts_user_is_what_libvirt_says(tmp_path: Path) -> None:
    proc, libvirt = tmp_path / "proc", tmp_path / "libvirt"
    proc.mkdir()
    process(proc, 10, QEMU, uids=MINE)
    assert guests(proc, libvirt) == {}
    libvirt_runs(libvirt, 10)
    assert guests(proc, libvirt) == {UUID: 10}
    process(proc, 11, QEMU, uids=NOBODYS)  # a later process with the same words changes nothing
    assert guests(proc, libvirt) == {UUID: 10}


def test_a_guest_that_calls_itself_another_one_is_none(tmp_path: Path) -> None:
    """Who has broken out of QEMU can change its command line, and start programs as its user."""
    proc, libvirt = tmp_path / "proc", tmp_path / "libvirt"
    proc.mkdir()
    process(proc, 10, QEMU, uids=MINE)
    libvirt_runs(libvirt, 10, uuid="0" * 8 + UUID[8:])
    assert guests(proc, libvirt) == {}
    (libvirt / "instance-1.xml").write_text("<domstatus state='running' pid='10'>")
    assert guests(proc, libvirt) == {}


@pytest.mark.parametrize(
    "uids", sorted({"65534\t0\t0\t0", "0\t65534\t0\t0", "0\t0\t65534\t0", "0\t0\t0\t65534", NOBODYS})
)
def test_a_process_with_another_users_id_is_no_guest_by_its_words(tmp_path: Path, uids: str) -> None:
    process(tmp_path, 10, QEMU, uids=uids)
    assert guests(tmp_path, tmp_path / "libvirt") == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which needs root")
def test_a_process_without_memory_has_ended(tmp_path: Path) -> None:
    """Also while its parent has not heard of it; to look into it is no fault of who asks."""
    (tmp_path / "7").mkdir()
    for state, ended in (("S", False), ("R", False), ("D", False), ("Z", True), ("X", True)):
        (tmp_path / "7/stat").write_text(f"7 (qemu (x) Z) {state} 1 7 7 0")
        assert has_ended(7, tmp_path) is ended
    assert has_ended(8, tmp_path)


def test_a_local_users_process_is_no_guest() -> None:
    command = [sys.executable, "-S", "-c", "import sys; print(flush=True); sys.stdin.read()", "-uuid", UUID]
    with subprocess.Popen(command, user=65534, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as local:
        assert local.stdout is not None
        assert local.stdout.readline()
        assert UUID not in guests()
        local.kill()
