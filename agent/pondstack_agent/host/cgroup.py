"""The cgroup (v2) of a guest."""

_MACHINES = (".scope", ".libvirt-qemu")
"""What a guest's cgroup ends with: as systemd-machined makes it, and as libvirt does without systemd.

QEMU's threads are in groups below it.
"""


def own_group(text: str) -> str:
    """Return the path of a machine's cgroup from /proc/PID/cgroup; '/' without cgroup v2."""
    path = next((line[3:] for line in text.splitlines() if line.startswith("0::")), "/")
    parts = path.split("/")
    for number in range(len(parts), 0, -1):
        if parts[number - 1].endswith(_MACHINES):
            return "/".join(parts[:number])
    return path
