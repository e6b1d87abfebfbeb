"""What a QEMU's command line says of the guest's memory."""

import pytest

from pondstack_agent.telemetry.guests import LOCKED, PINNED, PREALLOCATED, Node, nodes_of

GIB = 2**30
LIBVIRT = [
    "/usr/bin/qemu-system-x86_64",
    *("-name", "guest=instance-00000001,debug-threads=on"),
    *("-machine", "pc-q35-10.0,usb=off,memory-backend=ignored"),
    *("-m", "size=3145728k"),
    *("-overcommit", "mem-lock=off"),
    *("-object", '{"qom-type":"memory-backend-ram","id":"ram-node0","size":2147483648,'
      '"host-nodes":[0],"policy":"bind"}'),
    *("-numa", "node,nodeid=0,cpus=0-1,memdev=ram-node0"),
    *("-object", '{"qom-type":"memory-backend-file","id":"ram-node1","mem-path":"/pool/memory","share":true,'
      '"size":1073741824,"offset":5368709120}'),
    *("-numa", "node,nodeid=1,memdev=ram-node1"),
    *("-numa", "dist,src=0,dst=1,val=20"),
]  # fmt: skip


def test_the_nodes_of_a_znuma_guest_of_libvirt() -> None:
    assert nodes_of(LIBVIRT) == (
        Node(0, 2 * GIB, host_nodes=frozenset({0})),
        Node(1, GIB, shared=True, path="/pool/memory", offset_bytes=5 * GIB, is_file=True),
    )


def test_a_guest_without_nodes_has_one() -> None:
    backend = '{"qom-type":"memory-backend-memfd","id":"pc.ram","share":true,"size":536870912}'
    words = ["qemu", "-machine", "pc,memory-backend=pc.ram", "-m", "512", "-object", backend]
    assert nodes_of(words) == (Node(0, GIB // 2, shared=True),)


@pytest.mark.parametrize(("memory", "size"), [("512", GIB // 2), ("2G", 2 * GIB), ("size=1048576k,slots=4", GIB)])
def test_a_guest_without_memory_backends(memory: str, size: int) -> None:
    assert nodes_of(["qemu", "-m", memory]) == (Node(0, size),)


def test_qemu_without_a_size_takes_its_default() -> None:
    assert nodes_of(["qemu", "-machine", "q35"]) == (Node(0, 128 * 2**20),)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["-mem-prealloc"], PREALLOCATED),
        (["-overcommit", "mem-lock=on"], LOCKED),
        (["-device", "vfio-pci,host=0000:01:00.0"], PINNED),
        (["-device", '{"driver":"vfio-pci","host":"0000:01:00.0"}'], PINNED),
    ],
)
def test_memory_that_is_there_from_the_start_says_so(more: list[str], reason: str) -> None:
    assert {node.unknowable for node in nodes_of([*LIBVIRT, *more])} == {reason}


def test_one_backend_may_be_preallocated() -> None:
    words = [
        word.replace('"qom-type":"memory-backend-ram"', '"qom-type":"memory-backend-ram","prealloc":true')
        for word in LIBVIRT
    ]
    assert [node.unknowable for node in nodes_of(words)] == [PREALLOCATED, ""]


@pytest.mark.parametrize(
    "words", [["sleep", "60"], ["python", "-m", "pytest"], [*LIBVIRT[:8], "-numa", "node,nodeid=0,memdev=gone"]]
)
def test_what_is_no_guest_has_no_nodes(words: list[str]) -> None:
    assert nodes_of(words) == ()
