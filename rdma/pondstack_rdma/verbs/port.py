"""Finds the RDMA device that has an address of this host among its GIDs, so that nobody has to configure it."""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pondstack_rdma.errors import NoDevice
from pondstack_rdma.verbs import pyverbs_binding


@dataclass(frozen=True, slots=True)
class Port:
    """An active port of an open device. The caller of find_port closes it."""

    context: Any
    address: str
    max_rd_atomic: int
    """How many reads may be outstanding on a connection, in either direction."""

    def close(self) -> None:
        """Close the device and its objects; idempotent."""
        self.context.close()


def find_port(address: str = "") -> Port:
    """Return the port whose RoCE v2 GID is `address`, or the first one with an IPv4 address. Raises NoDevice."""
    verbs = pyverbs_binding.load()
    wanted = ipaddress.ip_address(address) if address else None
    found: list[str] = []
    try:
        names = [device.name.decode() for device in verbs.get_device_list()]
    except verbs.Error as error:
        raise NoDevice(
            f"RDMA devices cannot be listed: {error}; see `ibv_devices` and `lsmod | grep uverbs`"
        ) from error
    for name in names:
        try:
            context = verbs.Context(name=name)
        except verbs.Error as error:
            found.append(f"{name} cannot be opened ({error})")
            continue
        try:
            for port in _ports(context, found):
                ip = ipaddress.ip_address(port.address)
                if ip == wanted or (wanted is None and ip.version == 4):
                    return port
        except BaseException:
            context.close()
            raise
        context.close()
    raise NoDevice(_nothing(address, names, found))


def _ports(context: Any, found: list[str]) -> Iterator[Port]:
    """Yield a Port for each usable GID, and describe in `found` what was seen."""
    limits = context.query_device()
    for number in range(1, limits.phys_port_cnt + 1):
        attributes = context.query_port(number)
        if attributes.state != pyverbs_binding.PORT_ACTIVE:
            found.append(f"{context.name} port {number} is not active")
            continue
        for entry in context.query_gid_table(limits.phys_port_cnt * attributes.gid_tbl_len):
            if entry.port_num == number and entry.gid_type == pyverbs_binding.ROCE_V2:
                ip = ipaddress.IPv6Address(entry.gid_str())
                address = str(ip.ipv4_mapped or ip)
                found.append(f"{context.name} port {number} has {address}")
                yield Port(context, address, min(limits.max_qp_rd_atom, limits.max_qp_init_rd_atom))


def _nothing(address: str, names: list[str], found: list[str]) -> str:
    if not names:
        return "this host has no RDMA device; `rdma link` and `ibv_devices` show those that there are"
    return (
        f"no active RDMA port has a RoCE v2 GID of {address or 'an IPv4 address'} ({'; '.join(found) or 'no GID'}); "
        "see `rdma link`, and `show_gids` or /sys/class/infiniband/*/ports/*/gids"
    )
