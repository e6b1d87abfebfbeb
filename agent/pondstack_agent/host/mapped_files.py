"""Which ranges of files, and which devices, the processes of this host map, of whatever user."""

from collections.abc import Iterable

from pondstack.devices import mappings
from pondstack.devices.mappings import FileId
from pondstack_agent.host import privileged


def mapped_ranges(files: Iterable[FileId]) -> dict[FileId, list[range]]:
    """Return the byte ranges of each of `files` that any process maps now."""
    wanted = list(files)
    if wanted and privileged.context.elsewhere:
        found = privileged.mapped_ranges(wanted)
        return {file: [range(*item) for item in items] for file, items in zip(wanted, found, strict=True)}
    return mappings.mapped_ranges(wanted)


def is_mapped(device: str) -> bool:
    """Tell whether any process maps a device by this path, also where it has folder and node for itself, as libvirt's.

    There the node is another inode, but the name is the same.
    """
    if privileged.context.elsewhere:
        return bool(privileged.is_mapped(device))
    return mappings.is_mapped(device)
