"""Which boot of this host's kernel it is."""

from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""A UUID (random(4))."""
