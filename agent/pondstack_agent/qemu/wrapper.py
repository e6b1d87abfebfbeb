"""`pondstack-qemu`: the emulated head of a guest, which libvirt starts as the domain's <emulator>.

libvirt has no XML for "this NUMA node is that range of that file", so this wrapper rewrites QEMU's command line: the
memory of each CPU-less node becomes the range of the emulated device that the agent attached for this guest, or the
dax device of CXL memory ([cxl] backing = devdax).
libvirt gives an emulator QEMU's own arguments only, so a host has a shim with the rest:

    #!/bin/sh
    exec pondstack-qemu --state-dir DIR --host NAME [--qemu /usr/bin/qemu-system-x86_64] -- "$@"

DIR is the agent's [agent] state_dir, NAME its `host`. Guests without an attachment, and libvirt's probing, pass
through. CXL memory that is a node of the host needs none of this. A guest whose local node is a shared memfd gets
no transparent huge pages: the host's data plane may keep a part of it elsewhere, page by page. It gets its memfd from
here, as a file by its descriptor, since a migration of QEMU leaves out what is a file to it and nothing else, and the
data planes move this memory. Where the agent expects a guest from another host, of whose memory QEMU is to leave out
what is here already or comes otherwise, its QEMU tells the agent (arrival_door.py).
Standard library only: it runs at each start of a guest.
"""

import ctypes
import fcntl
import itertools
import json
import os
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from pondstack.devices.emulated_files import read_table
from pondstack.domain.backing import DEVDAX
from pondstack.domain.errors import DeviceFailed
from pondstack_agent.qemu import arrival_door, dax_device
from pondstack_agent.qemu.attachment_lock import FOLDER, hold
from pondstack_agent.records import load

QEMU = "/usr/bin/qemu-system-x86_64"
MIB = 1024 * 1024
_NODE = re.compile(r"ram-node(\d+)")
_FIRST_NODES = ("ram-node0", "pc.ram")
_FOLDERS = (FOLDER, dax_device.FOLDER)
_PR_SET_THP_DISABLE = 41  # linux/prctl.h
_BACKENDS = {"memory-backend-file", "memory-backend-ram", "memory-backend-memfd"}
# What libvirt may say of any backend and a file range can honour. Host nodes and prealloc concern local DRAM only.
_KEPT = ("dump", "merge", "x-use-canonical-path-for-ramblock-id")
_LOCAL = ("host-nodes", "policy", "prealloc", "prealloc-threads", "reserve")
OWN_FILES = "/proc/self/fd/"
"""What a process has open: QEMU opens its memory there once more."""


class Refused(Exception):
    """The guest must not start; the text goes to libvirt's log of the domain."""


def rewrite(arguments: list[str], record: dict[str, Any]) -> list[str]:
    """Return QEMU's arguments with the CPU-less nodes on the attachment's backings, in order of nodes and extents.

    Raises Refused when nodes and backings differ in number or size.
    """
    nodes = {}
    for position, argument in enumerate(arguments):
        if position and arguments[position - 1] == "-object":
            backend = _node_backend(argument)
            number = int(_NODE.fullmatch(backend["id"])[1]) if backend else 0  # type: ignore[index]
            if number > 0:
                nodes[number] = (position, backend)
    backings = record["backings"]
    if len(nodes) != len(backings):
        raise Refused(
            f"the guest has {len(nodes)} CPU-less nodes and its attachment {record['allocation_uuid']} has "
            f"{len(backings)} extents; have Nova define the domain again (hard reboot)"
        )
    changed = list(arguments)
    for (number, (position, backend)), backing in zip(sorted(nodes.items()), backings, strict=True):
        changed[position] = json.dumps(_on_pool(number, backend, backing))
    return changed


def shared_node(arguments: list[str]) -> int | None:
    """Return where the words have a guest's first node if it is a shared memfd, as of one with remote memory."""
    for position, (option, argument) in enumerate(itertools.pairwise(arguments)):
        if option == "-object" and argument.startswith("{"):
            backend = json.loads(argument)
            if backend.get("qom-type") == "memory-backend-memfd" and backend.get("id") in _FIRST_NODES:
                return position + 1 if backend.get("share", True) else None
    return None


def on_descriptor(arguments: list[str], position: int, descriptor: int) -> list[str]:
    """Return the words with the shared memfd at a position as a file that this process has open."""
    backend = json.loads(arguments[position])
    kept = {key: backend[key] for key in ("id", "size", *_KEPT, *_LOCAL) if key in backend}
    file = {"qom-type": "memory-backend-file", "mem-path": f"{OWN_FILES}{descriptor}", "share": True}
    return [*arguments[:position], json.dumps({**file, **kept}), *arguments[position + 1 :]]


def open_memory() -> int:
    """Make an empty memfd that QEMU inherits, with the name that QEMU's own have; returns its descriptor."""
    return os.memfd_create("memory-backend-memfd", 0)


def forbid_huge_pages() -> None:
    """Have this process, and what it becomes by exec, get no transparent huge pages; raises OSError."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "transparent huge pages cannot be forbidden (PR_SET_THP_DISABLE)")


def _node_backend(argument: str) -> dict[str, Any]:
    """Return the memory backend of a guest node, {} for any other object."""
    if not argument.startswith("{"):
        if _NODE.search(argument):
            raise Refused(f"cannot read the object {argument!r}; libvirt 7.0 or newer is needed (JSON -object)")
        return {}
    backend = json.loads(argument)
    mine = backend.get("qom-type") in _BACKENDS and _NODE.fullmatch(backend.get("id", ""))
    return backend if mine else {}


def _on_pool(number: int, backend: dict[str, Any], backing: dict[str, Any]) -> dict[str, Any]:
    size = backing["size_mib"] * MIB
    if backend["size"] != size:
        raise Refused(
            f"node {number} of the guest has {backend['size']} bytes and its extent {size}; have Nova define the "
            "domain again (hard reboot)"
        )
    # A device's mappings are a multiple of what it says, and begin at its first byte.
    place = {"align": backing["align_bytes"]} if backing["kind"] == DEVDAX else {"offset": backing["offset_bytes"]}
    return {
        "qom-type": "memory-backend-file",
        "id": backend["id"],
        "mem-path": backing["path"],
        **place,
        "share": True,
        "size": size,
        **{key: backend[key] for key in _KEPT if key in backend},
    }


def find_attachment(state_dir: Path, instance_uuid: str) -> tuple[Path, dict[str, Any]] | None:
    """Return the attachment of an instance that QEMU maps and its file, None without one.

    Raises Refused when there are several, DeviceFailed when a record is damaged.
    """
    found = []
    for path in (path for folder in _FOLDERS for path in sorted((state_dir / folder).glob("*.json"))):
        record = load(path)
        if record is None or record["consumer_uuid"] != instance_uuid:  # None: detached meanwhile
            continue
        if path.parent.name == FOLDER or dax_device.is_mapped_by_guest(record):
            found.append((path, record))
    if len(found) > 1:
        raise Refused(
            f"instance {instance_uuid} has {len(found)} attachments ({', '.join(path.stem for path, _ in found)}); "
            "detach it and start it again"
        )
    return found[0] if found else None


def check_permission(record: dict[str, Any], host: str, *, heir: bool = True) -> None:
    """Raise Refused unless the device lets this host use every slice of the attachment, by itself or as its `heir`."""
    if not record["device_path"]:
        return  # a CXL device that guards itself
    device, own = Path(record["device_path"]), {"host": host, "tag": record["allocation_uuid"]}
    table = read_table(device)[1]["permissions"]
    for extent in record["extents"]:
        for index in range(extent["start"], extent["start"] + extent["count"]):
            entry = table.get(str(index)) or {}
            inherits = heir and record.get("handed") and entry.get("heir") == own
            if not inherits and {"host": entry.get("host"), "tag": entry.get("tag")} != own:
                raise Refused(
                    f"device {device} does not let allocation {record['allocation_uuid']} of host {host} use slice "
                    f"{index}; detach the instance and start it again"
                )


def prepare(arguments: list[str], state_dir: Path, host: str) -> list[str]:
    """Return the arguments for QEMU; with an attachment, it stays locked for the life of this process."""
    instance_uuid = _value_of(arguments, "-uuid")
    if instance_uuid is None or "none" in (_value_of(arguments, "-machine") or "").split(","):
        return arguments  # libvirt is probing
    attachment = find_attachment(state_dir, instance_uuid)
    if attachment is None:
        return arguments
    path, record = attachment
    try:
        handle = hold(path)  # From here on the agent cannot take the slices offline; QEMU inherits the lock.
    except FileNotFoundError:
        raise Refused(f"the slices of instance {instance_uuid} went offline at this moment; start it again") from None
    try:
        if load(path) != record:
            raise Refused(f"the slices of instance {instance_uuid} were changed at this moment; start it again")
        heir = True
        if path.parent.name == dax_device.FOLDER:
            dax_device.check(record)
            # One that starts anew would write at once, and its former host's CPU caches go over it later.
            heir = _value_of(arguments, "-incoming") is not None
        changed = rewrite(arguments, record)
        check_permission(record, host, heir=heir)
    except BaseException:
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)
        raise
    return changed


def announce(arguments: list[str], state_dir: Path, host: str) -> list[str]:
    """Return the arguments with a monitor for the agent, where the guest comes from another host and is expected."""
    instance_uuid = _value_of(arguments, "-uuid")
    if instance_uuid is None or _value_of(arguments, "-incoming") is None:
        return arguments
    try:
        agent = state_dir.stat().st_uid
    except OSError:  # out of this user's sight: nobody can tell the agent from another process
        return arguments
    link = arrival_door.knock(host, instance_uuid, agent)
    return arguments if link is None else [*arguments, *arrival_door.words(link)]


def _value_of(arguments: list[str], option: str) -> str | None:
    for position, argument in enumerate(arguments[:-1]):
        if argument in (option, f"-{option}"):
            return arguments[position + 1]
    return None


def _own_options(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    options = {"--qemu": QEMU}
    while arguments and arguments[0] != "--":
        if arguments[0] not in ("--state-dir", "--host", "--qemu") or len(arguments) < 2:
            raise Refused(f"unknown or incomplete option {arguments[0]!r}")
        options[arguments[0]] = arguments[1]
        arguments = arguments[2:]
    if not arguments or "--state-dir" not in options or "--host" not in options:
        raise Refused("usage: pondstack-qemu --state-dir DIR --host NAME [--qemu PATH] -- QEMU-ARGUMENTS")
    return options, arguments[1:]


def main() -> NoReturn:
    """Become QEMU, or say why not and exit with 1."""
    try:
        options, arguments = _own_options(sys.argv[1:])
        position = shared_node(arguments)
        if position is not None:
            forbid_huge_pages()
            arguments = on_descriptor(arguments, position, open_memory())
        arguments = announce(arguments, Path(options["--state-dir"]), options["--host"])
        arguments = prepare(arguments, Path(options["--state-dir"]), options["--host"])
        os.execv(options["--qemu"], [options["--qemu"], *arguments])
    except (Refused, DeviceFailed, OSError, ValueError, KeyError) as error:
        text = str(error) if isinstance(error, (Refused, DeviceFailed)) else f"{type(error).__name__}: {error}"
        sys.exit(f"pondstack-qemu: {text}")


if __name__ == "__main__":
    main()
