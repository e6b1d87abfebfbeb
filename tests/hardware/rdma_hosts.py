"""Emulated hosts with an RDMA device: soft-RoCE (rdma_rxe), alone or two on a wire."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .conftest import Hardware
from .host import EmulatedHost
from .machine import Machine, Wire

ADDRESSES = ("10.77.0.1", "10.77.0.2")
MEMORY_MIB = 768
_SET_UP = """
if [ -n "$2" ]; then
    modprobe virtio_net
    until interface=$(grep -lix "$2" /sys/class/net/*/address); do sleep 0.1; done
    interface=${interface%/address} interface=${interface##*/}
else
    modprobe dummy numdummies=0
    ip link add rdma0 mtu 9000 type dummy
    interface=rdma0
fi
ip link set "$interface" up
ip address add "$1/24" dev "$interface"
modprobe -a ib_uverbs rdma_ucm rdma_rxe
rdma link add rxe0 type rxe netdev "$interface"
i=0
until grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state; do [ $((i += 1)) -lt 600 ] || exit 1; sleep 0.1; done
"""


def set_up(host: EmulatedHost, address: str) -> None:
    """Give a host its address and its RDMA device, on its wire when it has one."""
    wire = host.machine.wire
    host.run(["sh", "-ec", _SET_UP, "set-up", address, wire.mac if wire else ""]).check()


@contextmanager
def one_host(hardware: Hardware, memory_mib: int = MEMORY_MIB, *, network: bool = False) -> Iterator[EmulatedHost]:
    """A host that reaches its own device."""
    with hardware.hosts(Machine("host1", memory_mib=memory_mib, network=network)) as [host]:
        set_up(host, ADDRESSES[0])
        yield host


def pair(folder: Path, lender_mib: int = MEMORY_MIB) -> Sequence[Machine]:
    """Return a lender and a borrower on one wire, whose socket is in `folder`; both reach this machine as well."""
    socket = folder / "wire"
    return [
        Machine("lender", memory_mib=lender_mib, network=True, wire=Wire(socket, listens=True)),
        # With one CPU emulation costs less, and the lender needs two to lose one.
        Machine("borrower", memory_mib=MEMORY_MIB, cpus=1, network=True, wire=Wire(socket, listens=False)),
    ]


@contextmanager
def two_hosts(hardware: Hardware, folder: Path, lender_mib: int) -> Iterator[Sequence[EmulatedHost]]:
    """The two of `pair`, each with its address and its device."""
    with hardware.hosts(*pair(folder, lender_mib)) as hosts:
        for host, address in zip(hosts, ADDRESSES, strict=True):
            set_up(host, address)
        yield hosts
