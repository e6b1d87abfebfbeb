"""Heads of a pool device in emulation, heads.json of its folder: by which monitor and device a host reaches it.

{"<host>": {"monitor": socket, "device": id in that QEMU, "machine": where it was listed}}
"""

import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pondstack.devices import emulated_files as files
from pondstack.devices.atomic_files import write_json
from pondstack.domain.errors import InUse
from pondstack.domain.shape import Fields, Table, Text

HEADS = "heads.json"
MACHINE_ID = Path("/etc/machine-id")
_HEADS = Table(Text(255, 1), Fields({"monitor": Text(), "device": Text(255), "machine": Text(255)}))


@dataclass(frozen=True, slots=True)
class Head:
    """One QEMU's cxl-type3 device. `monitor`: path of its QMP socket; `machine`: where QEMU runs."""

    monitor: str
    device: str
    machine: str


def machine_id() -> str:
    """Return the identity of this machine: its machine-id, its name when it has none (a container's image)."""
    found = MACHINE_ID.read_text().strip() if MACHINE_ID.exists() else ""
    return found or socket.gethostname()


def read_heads(folder: Path) -> dict[str, Head]:
    """Return the heads of a device by host, none when none were listed; raises DeviceFailed."""
    if not (folder / HEADS).exists():
        return {}
    data = files.read_json(folder / HEADS, folder, _HEADS)
    return {host: Head(**entry) for host, entry in data.items()}


def set_head(folder: Path, host: str, head: Head | None) -> None:
    """List the head of a host, or strike it out (None); raises DeviceFailed, InUse while it has a permission."""
    with files.locked(folder):
        heads = read_heads(folder)
        _check_idle(folder, host, heads, head)
        heads.pop(host, None)
        if head is not None:
            heads[host] = head
        with files.device_errors(folder):
            write_json(folder / HEADS, {name: asdict(one) for name, one in heads.items()})


def _check_idle(folder: Path, host: str, heads: Mapping[str, Head], head: Head | None) -> None:
    """What a host holds is asked back through the head by which it got it."""
    _version, table = files.read_table(folder)
    held = sorted(int(index) for index, entry in table["permissions"].items() if entry["host"] == host)
    if held and heads.get(host) not in (None, head):
        raise InUse(f"host {host} holds the slices {held} of {folder} by its present head; release them first")
