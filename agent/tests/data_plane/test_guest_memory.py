"""Which process and which mapping are a guest's local node, by what /proc says."""

import json
import os
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest, Conflict
from pondstack_agent.data_plane.guest_memory import MEMFD, GuestMemory, find_memory, start_of

GUEST = "6f1c2d1e-0000-4000-8000-000000000001"
PID, STARTED = 4711, 123456


def process(proc: Path, *words: str, state: str = "S") -> Path:
    """Make the folder of a process of QEMU."""
    folder = proc / str(PID)
    folder.mkdir(parents=True, exist_ok=True)
    command = ["qemu-system-x86_64", "-uuid", GUEST, "-machine", "q35", *words]
    (folder / "cmdline").write_bytes("\0".join(command).encode() + b"\0")
    uids = "\t".join([str(os.geteuid())] * 4)
    (folder / "status").write_text(f"Name:\tqemu\nUid:\t{uids}\n")
    (folder / "stat").write_text(f"{PID} (qemu (1) x) {state} " + "0 " * 18 + f"{STARTED} 0\n")
    return proc


def node(number: int, **backend: object) -> list[str]:
    made = {"qom-type": "memory-backend-memfd", "id": f"ram-node{number}", "size": 64 * 2**20, **backend}
    return ["-object", json.dumps(made), "-numa", f"node,nodeid={number},memdev=ram-node{number}"]


def test_a_memfd(tmp_path: Path) -> None:
    pool = node(1, **{"qom-type": "memory-backend-file", "mem-path": "/pool/memory", "share": True})
    proc = process(tmp_path, *node(0, share=True), *pool)
    assert find_memory(GUEST, proc) == GuestMemory(PID, STARTED, MEMFD, 64)


def test_a_named_file(tmp_path: Path) -> None:
    backend = {"qom-type": "memory-backend-file", "mem-path": "/dev/shm//guests/1", "share": True}
    assert find_memory(GUEST, process(tmp_path, *node(0, **backend))).memory == "/dev/shm/guests/1"


def test_private_memory(tmp_path: Path) -> None:
    proc = process(tmp_path, *node(0, **{"qom-type": "memory-backend-ram"}))
    with pytest.raises(BadRequest, match="is private"):
        find_memory(GUEST, proc)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["-device", "vfio-pci,host=0000:01:00.0"], "pinned"),
        (["-overcommit", "mem-lock=on"], "locked"),
        (["-mem-prealloc"], "preallocated"),
    ],
    ids=["vfio", "locked", "preallocated"],
)
def test_memory_that_stays(tmp_path: Path, words: list[str], reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        find_memory(GUEST, process(tmp_path, *node(0, share=True), *words))


def test_no_process(tmp_path: Path) -> None:
    with pytest.raises(Conflict, match="start it first"):
        find_memory(GUEST, tmp_path)
    with pytest.raises(Conflict, match="start it first"):
        find_memory(GUEST, process(tmp_path, *node(0, share=True), state="Z"))


def test_a_process_without_memory(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="says nothing of its memory"):
        find_memory(GUEST, process(tmp_path, "-numa", "node,nodeid=0,memdev=nowhere"))


def test_when_a_process_began() -> None:
    assert start_of(os.getpid())
    assert start_of(2**22 + 1) is None
