"""What libvirt has of a guest on a host of a rack."""

import subprocess

from pondstack_rack.layout import Layout

COMMAND_SECONDS = 60.0


def domain_state(layout: Layout, host: str, server: str) -> str:
    """Return libvirt's state of a guest on a host, "" where it knows none."""
    command = [str(layout.bin / f"in-{host}"), "virsh", "--quiet", "--connect", "qemu:///system", "domstate", server]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS)
    return done.stdout.strip() if done.returncode == 0 else ""
