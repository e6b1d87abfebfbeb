"""The partition as settings of systemd's units: each a drop-in of ours, which holds at each boot, and set at once.

Of a slice that is there, systemd applies a new drop-in at no reload, only what is set by `systemctl set-property`.
"""

from pondstack_agent.partition.host import Host, must
from pondstack_agent.partition.privileged import DROP_IN, RUNTIME

_TEXT = "# Written by pondstack-agent; `pondstack-partition undo` removes it.\n[{section}]\n{settings}"
_SECTIONS = {"slice": "Slice", "scope": "Scope", "service": "Service"}


def of_cgroup(name: str) -> str:
    """Return the unit of a cgroup: the last part of its path."""
    return name.rpartition("/")[2]


def confined(unit: str, local: str) -> str:
    """Return the drop-in of a unit whose processes may have memory of local nodes alone."""
    return _TEXT.format(section=_SECTIONS[unit.rpartition(".")[2]], settings=f"AllowedMemoryNodes={local}\n")


def starts_guests(local: str) -> str:
    """Return the drop-in of a service that starts guests, which inherit its memory policy.

    A policy and no cpuset: what a guest binds to a pool node by itself, its backends, goes there all the same.
    """
    return _TEXT.format(section="Service", settings=f"NUMAPolicy=bind\nNUMAMask={local}\n")


def put(host: Host, unit: str, text: str) -> bool:
    """Write our drop-in of a unit; False when it was there. Raises DeviceFailed."""
    path = host.drop_ins / f"{unit}.d" / DROP_IN
    if path.exists() and path.read_text() == text:
        return False
    must(host.put_drop_in(str(path), text), f"cannot write {path}")
    return True


def ours(host: Host) -> list[str]:
    """Return the units that have a drop-in of ours."""
    return sorted(path.parent.name.removesuffix(".d") for path in host.drop_ins.glob(f"*.d/{DROP_IN}"))


def apply(host: Host, unit: str, local: str) -> None:
    """Set the nodes of a unit now, '' for those of the unit above it; raises DeviceFailed."""
    trouble = host.systemctl("set-property", "--runtime", unit, f"AllowedMemoryNodes={local}")
    must(trouble, f"systemd does not set the nodes of {unit}")
    if not local:  # Without a setting, nor one that hides those of an operator.
        must(host.remove_drop_in(str(host.runtime_drop_ins / f"{unit}.d" / RUNTIME)), f"cannot clean up {unit}")


def remove(host: Host, unit: str) -> None:
    """Remove our drop-in of a unit; raises DeviceFailed."""
    path = host.drop_ins / f"{unit}.d" / DROP_IN
    must(host.remove_drop_in(str(path)), f"cannot remove {path}")
    if not unit.endswith(".service"):
        apply(host, unit, "")
