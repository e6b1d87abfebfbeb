"""/proc/PID/smaps, parsed."""

import re
from collections.abc import Iterator

_HEADER = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ ([0-9a-f]+):([0-9a-f]+) (\d+)\s*(.*)")


def blocks(text: str) -> Iterator[tuple[re.Match[str], dict[str, int]]]:
    """Return each mapping's head (start, end, rights, device, inode, name as groups) and its values in kB."""
    header: re.Match[str] | None = None
    values: dict[str, int] = {}
    for line in text.splitlines():
        found = _HEADER.match(line)
        if found:
            if header:
                yield header, values
            header, values = found, {}
        elif line.endswith(" kB"):
            name, _, value = line[:-3].partition(":")
            values[name] = int(value)
    if header:
        yield header, values
