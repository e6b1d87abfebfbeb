"""What the kernel keeps of a node's memory for itself: /proc/zoneinfo, parsed."""

import re

_ZONE = re.compile(r"^Node (\d+), zone ", re.M)
_HIGH = re.compile(r"^\s+high:?\s+(\d+)$", re.M)


def kept_pages(zoneinfo: str, node: int) -> int:
    """Return the free pages that a node's zones keep: up to the high watermark, and in the lists of each CPU."""
    parts = _ZONE.split(zoneinfo)
    zones = (text for number, text in zip(parts[1::2], parts[2::2], strict=True) if int(number) == node)
    return sum(int(high) for text in zones for high in _HIGH.findall(text))
