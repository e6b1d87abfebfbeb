"""The emulated head: which arguments it changes, when it refuses, and a real QEMU behind it."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pondstack.devices import pool_uuid
from pondstack.devices.emulated import EmulatedDevice, create_device
from pondstack.devices.mappings import file_id, mapped_ranges
from pondstack.domain.errors import DeviceFailed, InUse
from pondstack.domain.model import Extent
from pondstack_agent.drivers.emulated import EmulatedHostPool
from pondstack_agent.qemu import arrival_door, wrapper

MIB = 2**20
VM = "6f1c3f8e-54b5-4a1c-9d2b-0d8a3a1f0001"
HEAD = [sys.executable, "-m", "pondstack_agent.qemu.wrapper"]


@pytest.fixture
def driver(tmp_path: Path, device: EmulatedDevice) -> EmulatedHostPool:
    return EmulatedHostPool(host="host1", state_dir=tmp_path / "state", device_paths=[str(device.path)])


def node(number: int, size_mib: int, **more: Any) -> list[str]:
    backend = {"qom-type": "memory-backend-ram", "id": f"ram-node{number}", "size": size_mib * MIB, **more}
    return ["-object", json.dumps(backend)]


def guest_arguments(*pool_mib: int, uuid: str = VM) -> list[str]:
    arguments = ["-name", "guest=instance-1", "-S", "-machine", "pc-q35-10.0,usb=off", "-uuid", uuid, *node(0, 64)]
    for number, size in enumerate(pool_mib, start=1):
        arguments += node(number, size)
    return [*arguments, "-object", '{"qom-type":"rng-random","id":"objrng0"}', "-object", "tls-creds-x509,id=x"]


def changed_objects(before: list[str], after: list[str]) -> list[dict[str, Any]]:
    assert len(before) == len(after)
    return [json.loads(new) for old, new in zip(before, after, strict=True) if old != new]


@pytest.mark.parametrize(
    "arguments",
    [
        ["-version"],
        ["-S", "-no-user-config", "-machine", "none,accel=kvm:tcg", "-qmp", "unix:x,server=on"],
        ["-machine", "none", "-uuid", VM],
        [],
    ],
)
def test_probing_passes_through(tmp_path: Path, driver, make_grant, arguments: list[str]) -> None:
    driver.attach(make_grant(Extent(0, 1), consumer=VM))
    assert wrapper.prepare(arguments, tmp_path / "state", "host1") == arguments


def test_a_guest_without_an_attachment_passes_through(tmp_path: Path, driver, make_grant) -> None:
    driver.attach(make_grant(Extent(0, 1), consumer="another"))
    arguments = guest_arguments(1)
    assert wrapper.prepare(arguments, tmp_path / "state", "host1") == arguments
    assert wrapper.prepare(arguments, tmp_path / "no-such-folder", "host1") == arguments


def test_only_the_cpu_less_nodes_move_to_the_pool(tmp_path: Path, device, driver, make_grant) -> None:
    driver.attach(make_grant(Extent(5, 2), Extent(1, 1), consumer=VM))
    before = guest_arguments(2, 1)
    after = wrapper.prepare(before, tmp_path / "state", "host1")
    common = {"qom-type": "memory-backend-file", "mem-path": str(device.path / "memory"), "share": True}
    assert changed_objects(before, after) == [
        {**common, "id": "ram-node1", "size": 2 * MIB, "offset": 5 * MIB},
        {**common, "id": "ram-node2", "size": 1 * MIB, "offset": 1 * MIB},
    ]


def test_migration_identity_is_kept_and_host_nodes_are_dropped(tmp_path: Path, driver, make_grant) -> None:
    driver.attach(make_grant(Extent(0, 1), consumer=VM))
    ident = {"x-use-canonical-path-for-ramblock-id": False, "dump": False}
    arguments = ["-uuid", VM, *node(1, 1, **ident, prealloc=True, **{"host-nodes": [0], "policy": "bind"})]
    after = json.loads(wrapper.prepare(arguments, tmp_path / "state", "host1")[-1])
    assert {key: after[key] for key in ident} == ident
    assert not {"prealloc", "host-nodes", "policy"} & set(after)


@pytest.mark.parametrize("pool_mib", [(), (2,), (1, 1), (1, 1, 1)])
def test_another_shape_than_the_attachment_is_refused(tmp_path: Path, driver, make_grant, pool_mib) -> None:
    driver.attach(make_grant(Extent(0, 1), Extent(2, 2), consumer=VM))
    with pytest.raises(wrapper.Refused, match="define the domain again"):
        wrapper.prepare(guest_arguments(*pool_mib), tmp_path / "state", "host1")
    # A refused guest holds nothing.
    assert driver.detach(driver.attached()[0].allocation_uuid)


def test_without_the_permission_of_the_device_it_is_refused(tmp_path: Path, device, driver, make_grant) -> None:
    grant = make_grant(Extent(0, 2), consumer=VM)
    driver.attach(grant)
    device.revoke([1], tag=grant.allocation_uuid, epoch=1)
    with pytest.raises(wrapper.Refused, match="use slice 1"):
        wrapper.prepare(guest_arguments(2), tmp_path / "state", "host1")


def test_another_host_is_refused(tmp_path: Path, driver, make_grant) -> None:
    driver.attach(make_grant(Extent(0, 1), consumer=VM))
    with pytest.raises(wrapper.Refused, match="of host host2"):
        wrapper.prepare(guest_arguments(1), tmp_path / "state", "host2")


def _no_extents(record: dict[str, Any]) -> Any:
    """All that the table is asked for is gone, and the memory is another allocation's."""
    return {**record, "extents": [], "backings": [{**record["backings"][0], "offset_bytes": 6 * MIB}]}


@pytest.mark.parametrize(
    "damage",
    [
        _no_extents,
        lambda record: {**record, "backings": [{**record["backings"][0], "offset_bytes": 6 * MIB}]},
        lambda record: {**record, "backings": [{**record["backings"][0], "path": "/dev/shm/mine"}]},
        lambda record: {**record, "extents": [{"start": 0, "count": 10**12}]},
        lambda _record: [],
        lambda _record: {"consumer_uuid": [VM]},
        lambda _record: {},
    ],
)
def test_a_guest_does_not_start_on_memory_that_its_record_was_made_to_say(
    tmp_path: Path, driver, make_grant, damage
) -> None:
    driver.attach(make_grant(Extent(0, 1), consumer=VM))
    [path] = (tmp_path / "state" / "attachments").glob("*.json")
    path.write_text(json.dumps(damage(json.loads(path.read_text()))))
    with pytest.raises(DeviceFailed, match=path.name):
        wrapper.prepare(guest_arguments(1), tmp_path / "state", "host1")


def test_a_device_that_does_not_answer_refuses(tmp_path: Path, device, driver, make_grant) -> None:
    driver.attach(make_grant(Extent(0, 1), consumer=VM))
    shutil.rmtree(device.path / "permissions")
    with pytest.raises(DeviceFailed):
        wrapper.prepare(guest_arguments(1), tmp_path / "state", "host1")


def test_two_attachments_of_one_instance_are_refused(tmp_path: Path, driver, make_grant) -> None:
    for start in (0, 4):
        driver.attach(make_grant(Extent(start, 1), consumer=VM))
    with pytest.raises(wrapper.Refused, match="2 attachments"):
        wrapper.prepare(guest_arguments(1), tmp_path / "state", "host1")


def test_an_object_that_is_not_json_is_refused(tmp_path: Path, driver, make_grant) -> None:
    driver.attach(make_grant(Extent(0, 1), consumer=VM))
    arguments = ["-uuid", VM, "-object", "memory-backend-ram,id=ram-node1,size=1048576"]
    with pytest.raises(wrapper.Refused, match="JSON"):
        wrapper.prepare(arguments, tmp_path / "state", "host1")


def test_a_starting_guest_holds_its_slices(tmp_path: Path, driver, make_grant) -> None:
    """Between the head's last check and QEMU's mapping the agent must not take the slices away."""
    grant = make_grant(Extent(0, 1), consumer=VM)
    driver.attach(grant)
    code = (
        "import sys; from pathlib import Path; from pondstack_agent.qemu import wrapper; "
        f"wrapper.prepare({guest_arguments(1)!r}, Path({str(tmp_path / 'state')!r}), 'host1'); "
        "import os; os.execv('/bin/sh', ['sh', '-c', 'echo ready; cat >/dev/null'])"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            assert [item.in_use for item in driver.attached()] == [True]
            with pytest.raises(InUse):
                driver.detach(grant.allocation_uuid)
        finally:
            process.stdin.close()
    assert driver.detach(grant.allocation_uuid)


@pytest.mark.parametrize("arguments", [[], ["--host", "h"], ["--state-dir", "x", "--"], ["--nonsense", "x", "--"]])
def test_wrong_usage_says_so(arguments: list[str]) -> None:
    done = subprocess.run([*HEAD, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pondstack-qemu: " in done.stderr


def test_a_refusal_goes_to_stderr_and_no_qemu_starts(tmp_path: Path, driver, make_grant) -> None:
    driver.attach(make_grant(Extent(0, 1), consumer=VM))
    options = ["--state-dir", str(tmp_path / "state"), "--host", "host1", "--qemu", "/bin/echo", "--"]
    done = subprocess.run([*HEAD, *options, *guest_arguments(2)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("pondstack-qemu: node 1 of the guest has 2097152 bytes")


def test_it_imports_only_the_standard_library_and_ours() -> None:
    name = "pondstack_agent.qemu.wrapper"
    code = f"import sys; before = set(sys.modules); import {name}; print(*(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    foreign = {name.split(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"pondstack", "pondstack_agent"}
    assert foreign == set()


def memfd(name: str = "ram-node0", **more: Any) -> list[str]:
    backend = {"qom-type": "memory-backend-memfd", "id": name, "size": 64 * MIB, "share": True, **more}
    return ["-object", json.dumps(backend)]


@pytest.mark.parametrize(
    ("backend", "forbidden"),
    [
        (memfd(), True),
        (memfd("pc.ram"), True),
        (memfd(share=False), False),
        (memfd("ram-node1"), False),
        (node(0, 64, share=True), False),
        ([], False),
    ],
    ids=["node", "whole", "private", "another", "anonymous", "none"],
)
def test_a_guest_with_a_shared_node_gets_no_huge_pages(tmp_path: Path, backend: list[str], forbidden: bool) -> None:
    """What it becomes has the setting still, with its slices or without."""
    options = ["--state-dir", str(tmp_path / "state"), "--host", "host1", "--qemu", "/bin/sh", "--"]
    look = ["-c", "grep THP_enabled /proc/self/status", "-uuid", VM, *backend]
    done = subprocess.run([*HEAD, *options, *look], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["THP_enabled:", "0" if forbidden else "1"]


def test_a_shared_node_is_a_file_that_is_open(tmp_path: Path) -> None:
    """QEMU gets it empty, with what libvirt said of it, and its name is that of QEMU's own memfds."""
    options = ["--state-dir", str(tmp_path / "state"), "--host", "host1", "--qemu", "/bin/sh", "--"]
    given = memfd(**{"host-nodes": [1], "policy": "bind", "seal": True, "x-use-canonical-path-for-ramblock-id": False})
    look = ["-c", 'echo "$3"; cd /proc/self/fd; for f in *; do readlink $f || :; done', "-uuid", VM, *given]
    done = subprocess.run([*HEAD, *options, *look], capture_output=True, text=True, check=True)
    first, *files = done.stdout.splitlines()
    backend = json.loads(first)
    assert backend.pop("mem-path").startswith("/proc/self/fd/")
    assert backend == {
        "qom-type": "memory-backend-file",
        "id": "ram-node0",
        "size": 64 * MIB,
        "share": True,
        "host-nodes": [1],
        "policy": "bind",
        "x-use-canonical-path-for-ramblock-id": False,
    }
    assert "/memfd:memory-backend-memfd (deleted)" in files


def test_a_shared_node_and_slices(tmp_path: Path, driver, make_grant) -> None:
    driver.attach(make_grant(Extent(0, 2), consumer=VM))
    local = ["-S", "-machine", "q35", "-uuid", VM, *memfd(), *node(1, 2)]
    changed = wrapper.prepare(local, tmp_path / "state", "host1")
    (pool,) = changed_objects(local, changed)
    assert (pool["id"], pool["qom-type"]) == ("ram-node1", "memory-backend-file")
    assert wrapper.shared_node(changed) is not None


@pytest.mark.parametrize("incoming", [True, False])
@pytest.mark.parametrize("backend", [memfd(), []], ids=["remote", "slices"])
def test_a_guest_that_is_expected_gives_the_agent_a_monitor(tmp_path: Path, backend: list[str], incoming: bool) -> None:
    (tmp_path / "state").mkdir()
    options = ["--state-dir", str(tmp_path / "state"), "--host", tmp_path.name, "--qemu", "/bin/echo", "--"]
    words = ["-uuid", VM, *backend, *(["-incoming", "defer"] if incoming else [])]
    with arrival_door.listen(tmp_path.name, VM):
        done = subprocess.run([*HEAD, *options, *words], capture_output=True, text=True, check=True)
    assert ("-mon" in done.stdout.split()) is incoming


needs_qemu = pytest.mark.skipif(not os.access(wrapper.QEMU, os.X_OK), reason=f"{wrapper.QEMU} is not installed")


@contextmanager
def monitor(path: Path) -> Iterator[Any]:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(path))
        stream = client.makefile("rw")

        def command(name: str, **arguments: Any) -> Any:
            stream.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
            stream.flush()
            while True:
                answer = json.loads(stream.readline())
                if "return" in answer or "error" in answer:
                    return answer["return"]

        stream.readline()
        command("qmp_capabilities")
        yield command


@needs_qemu
def test_a_real_qemu_maps_the_slices(tmp_path: Path, make_grant, short_directory) -> None:
    device = create_device(tmp_path / "device64", 4, slice_mib=16, serial="real")
    driver = EmulatedHostPool(host="host1", state_dir=tmp_path / "state", device_paths=[str(device.path)])
    device.grant("host1", [Extent(2, 1), Extent(0, 1)], tag="real-1", epoch=1)
    grant = replace(
        make_grant(Extent(2, 1), Extent(0, 1), consumer=VM, permit=False),
        allocation_uuid="real-1",
        slice_mib=16,
        pool_uuid=pool_uuid("real"),
    )
    driver.attach(grant)
    folder = short_directory("qmp")
    qmp = folder / "q"
    arguments = ["-uuid", VM, "-S", "-nodefaults", "-display", "none", "-machine", "q35,accel=tcg", "-m", "96"]
    arguments += ["-smp", "1", *node(0, 64), *node(1, 16), *node(2, 16)]
    arguments += ["-numa", "node,nodeid=0,cpus=0,memdev=ram-node0", "-numa", "node,nodeid=1,memdev=ram-node1"]
    arguments += ["-numa", "node,nodeid=2,memdev=ram-node2"]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(qmp))
        listener.listen(1)
        arguments += [
            "-chardev",
            f"socket,id=q,fd={listener.fileno()},server=on,wait=off",
            "-mon",
            "chardev=q,mode=control",
        ]
        options = ["--state-dir", str(tmp_path / "state"), "--host", "host1", "--"]
        with subprocess.Popen([*HEAD, *options, *arguments], pass_fds=[listener.fileno()]) as process:
            try:
                with monitor(qmp) as command:
                    memory = device.path / "memory"
                    found = mapped_ranges([file_id(memory)])[file_id(memory)]
                    assert sorted((item.start // MIB, len(item) // MIB) for item in found) == [(0, 16), (32, 16)]
                    assert [item.in_use for item in driver.attached()] == [True]
                    # What is in the slice is what the guest has at the start of node 1 and node 2.
                    with open(memory, "r+b", buffering=0) as file:
                        os.pwrite(file.fileno(), b"\x01\xfe\xca\x00", 32 * MIB)
                        os.pwrite(file.fileno(), b"\x02\xfe\xca\x00", 0)
                    for address, value in ((64 * MIB, "0x00cafe01"), (80 * MIB, "0x00cafe02")):
                        text = command("human-monitor-command", **{"command-line": f"xp /1xw {address:#x}"})
                        assert value in text
                    with pytest.raises(InUse):
                        driver.detach("real-1")
                    command("quit")
            finally:
                process.kill()
    assert driver.detach("real-1")
