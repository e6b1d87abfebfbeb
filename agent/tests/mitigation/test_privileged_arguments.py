"""What the privileged helpers refuse: processes, cgroups, attributes, units and tools that are none of their business.

The agent asks for nothing of it; who has broken into the agent would.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pondstack_agent.drivers.cxl import attributes
from pondstack_agent.drivers.cxl import privileged as cxl
from pondstack_agent.mitigation import privileged
from pondstack_agent.partition import privileged as partition
from pondstack_agent.partition import units

UUID = "7b0a5c1e-3f52-4c1d-9f0e-2d6a8c4b1e92"
CGROUP = "/sys/fs/cgroup/machine.slice/vm.scope"

ON_A_PROCESS: list[Callable[[int], Any]] = [
    privileged.read_maps,
    privileged.read_numa_maps,
    lambda pid: privileged.move_pages(pid, [], 0),
    lambda pid: privileged.gather_pages(pid, [], 0, 1),
]


@pytest.fixture
def guest() -> Iterator[int]:
    """A process of root's that says it is a guest."""
    command = [sys.executable, "-S", "-c", "import sys; print(flush=True); sys.stdin.read()", "-uuid", UUID]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process.pid
        process.kill()


@pytest.mark.parametrize("number", range(len(ON_A_PROCESS)))
@pytest.mark.parametrize("pid", [1, 0, -1, pytest.param(os.getpid(), id="this one")])
def test_another_process_than_a_guests_is_refused(number: int, pid: int) -> None:
    with pytest.raises(ValueError, match="no guest"):
        ON_A_PROCESS[number](pid)


def test_a_guest_and_one_that_has_ended_are_not_refused(guest: int) -> None:
    assert privileged.read_numa_maps(guest) != ""
    assert privileged.move_pages(guest, [], 0) == ""
    assert privileged.read_maps(2**22) == ("", "")  # beyond pid_max


def test_only_a_cgroup_of_guests_alone_is_bound(tmp_path: Path, guest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileged, "CGROUPS", str(tmp_path))
    folder = tmp_path / "machine.slice/vm.scope"
    (folder / "libvirt").mkdir(parents=True)
    (folder / "cgroup.procs").write_text("")
    (folder / "libvirt/cgroup.procs").write_text(f"{guest}\n")
    assert privileged.bind_cgroup(str(folder), "0-1,3") == ""
    assert (folder / "cpuset.mems").read_text() == "0-1,3"
    for text in ("", f"{guest}\n1\n"):
        (folder / "libvirt/cgroup.procs").write_text(text)
        with pytest.raises(ValueError, match="no cgroup of a guest"):
            privileged.bind_cgroup(str(folder), "0")
    (folder / "libvirt/cgroup.procs").write_text(f"{guest}\n")
    for name, nodes in ((str(folder), "0\n1"), (str(folder), ""), (f"{folder}/../vm.scope", "0"), ("/etc", "0")):
        with pytest.raises(ValueError, match="no cgroup of a guest"):
            privileged.bind_cgroup(name, nodes)


@pytest.mark.parametrize(
    "path",
    [
        "/sys/bus/dax/drivers_autoprobe",
        "/sys/bus/dax/drivers/kmem/bind",
        "/sys/bus/dax/drivers/device_dax/new_id",
        "/sys/bus/cxl/devices/region0/dax_region0/dax_region/create",
        "/sys/bus/cxl/devices/region0/dax_region0/dax0.1/mapping",
        "/sys/bus/cxl/devices/region12/dax_region12/dax12.10/memmap_on_memory",
        "/sys/devices/system/memory/memory40/state",
    ],
)
def test_attributes_that_the_driver_writes(path: str) -> None:
    attributes.check_attribute(path)


@pytest.mark.parametrize(
    "path",
    [
        "/sys/bus/cxl/devices/mem0/driver/unbind",
        "/sys/bus/cxl/devices/mem0/security/erase",
        "/sys/bus/cxl/devices/region0/commit",
        "/sys/bus/dax/drivers/../../pci/drivers_autoprobe",
        "/sys/bus/dax/drivers/kmem/bind\n",
        "/sys/devices/system/memory/hard_offline_page",
        "/dev/dax0.0",
        "/etc/passwd",
    ],
)
def test_other_attributes_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="business"):
        cxl.write_attribute(path, "1")


REFUSED: list[Callable[[], Any]] = [
    lambda: cxl.create_region("decoder0.0", "mem0 --help"),
    lambda: cxl.create_region("--config=/tmp/x", "mem0"),
    lambda: cxl.create_region("decoder0.0", "--verbose"),
    lambda: cxl.load_module("msr"),
    lambda: cxl.zero("/dev/dax0.0/../sda", 4096),
    lambda: cxl.first_written_byte("/dev/mem", 4096),
    lambda: cxl.offline_blocks(["/sys/devices/system/cpu/cpu1"], 1.0),
    lambda: partition.systemctl("daemon-reload", "--host=elsewhere"),
    lambda: partition.systemctl("try-restart", "--root=/tmp", "libvirtd.service"),
    lambda: partition.systemctl("try-restart", "--root=x.service"),
    lambda: partition.systemctl("set-property", "sshd.service", "AllowedMemoryNodes=0"),
    lambda: partition.systemctl("set-property", "--runtime", "sshd.service", "DevicePolicy=auto"),
    lambda: partition.write_cgroup("/sys/fs/cgroup/system.slice/cpuset.mems", "0\n1"),
    lambda: partition.write_cgroup("/sys/fs/cgroup/cgroup.subtree_control", "-memory"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_the_agent_never_asks_for_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=r"business|modules|partition"):
        REFUSED[number]()


@pytest.mark.parametrize("text", [units.confined("system.slice", "0-1"), units.starts_guests("0,2-3")])
def test_a_drop_in_is_ours_and_has_nothing_else(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drop-in with a command of its own would be run by systemd, as root."""
    monkeypatch.setattr(partition, "_DROP_IN", partition.re.compile(r".*\.conf"))
    former = os.umask(0)  # as processes of oslo.privsep have it
    try:
        _put_and_refuse(tmp_path, text)
    finally:
        os.umask(former)


def _put_and_refuse(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.service.d/60.conf"
    assert partition.put_drop_in(str(path), text) == ""
    assert path.read_text() == text
    assert (path.stat().st_mode | path.parent.stat().st_mode) & 0o022 == 0
    for bad in (f"{text}ExecStartPre=/tmp/x\n", text.replace("=", "=%n", 1), "", "[Service]\nExecStart=/tmp/x\n"):
        with pytest.raises(ValueError, match="no part of the partition"):
            partition.put_drop_in(str(path), bad)


@pytest.mark.parametrize(
    "words",
    [
        ("daemon-reload",),
        ("try-restart", "libvirtd.service"),
        ("set-property", "--runtime", "init.scope", "AllowedMemoryNodes=0-1"),
        ("set-property", "--runtime", "user.slice", "AllowedMemoryNodes="),
    ],
)
def test_what_the_partition_asks_systemd_for(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_how: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(partition.subprocess, "run", run)
    assert partition.systemctl(*words) == ""
    assert asked == [["systemctl", *words]]


@pytest.mark.parametrize("systemd", [False, True])
def test_systemd_loads_what_the_agent_may_not(systemd: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its unit the agent has no CAP_SYS_MODULE; modprobe also succeeds with what is loaded already."""
    loaded: list[str] = []
    monkeypatch.setattr(cxl, "_SYSTEMD", str(tmp_path if systemd else tmp_path / "none"))

    def run(*command: str) -> str:
        if command == ("systemctl", "start", "modprobe@kmem.service"):
            loaded.append("kmem")
        return "" if command == ("modprobe", "kmem") and loaded else "Operation not permitted"

    monkeypatch.setattr(cxl, "_run", run)
    assert cxl.load_module("kmem") == ("" if systemd else "Operation not permitted")
