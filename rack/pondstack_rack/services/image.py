"""The guest: Debian's cloud kernel and a one-megabyte initramfs of ours that reports on the serial console."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from pondstack_rack import config
from pondstack_rack.layout import Layout, RackError, share

KERNEL = "share/pondstack/vmlinuz"
MODULES = "share/pondstack/modules"
"""Of the kernel, for a guest's swap disk."""
DRIVERS = ("virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_blk")
"""As the guest's init loads them."""
BUSYBOX = "/bin/busybox"
DISK_BYTES = 1 << 20
IMAGE = "pond-guest"
BLANK = "blank"
"""Boots nothing, and may go to the fake computes."""
LINE = "POND "


def build(layout: Layout) -> Path:
    """Build the initramfs and the empty root disk; return their folder."""
    files = [share(f"{MODULES}/{name}.ko") for name in DRIVERS]
    for path in (share(KERNEL), *files):
        if not path.exists():
            raise RackError(f"{path} is missing: run tools/setup.sh")
    folder = layout.root / "image"
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "bin").mkdir(parents=True)
    shutil.copy(BUSYBOX, tree / "bin/busybox")
    for path in files:
        shutil.copy(path, tree)
    config.write(tree / "init", (config.template("init.sh")), mode=0o755)
    names = "\n".join([".", "bin", "bin/busybox", "init", *(path.name for path in files)])
    archive = subprocess.run(
        ["cpio", "--quiet", "-o", "-H", "newc"], cwd=tree, input=names.encode(), stdout=subprocess.PIPE, check=True
    ).stdout
    (folder / "initramfs").write_bytes(gzip.compress(archive, 6))
    with (folder / "disk").open("wb") as disk:
        disk.truncate(DISK_BYTES)
    return folder


def upload(layout: Layout, connection: Any) -> None:
    """Put kernel, initramfs and disk into Glance; what is there already is kept."""
    folder = layout.root / "image"
    kernel = _ensure(connection, f"{IMAGE}-kernel", share(KERNEL), "aki")
    ramdisk = _ensure(connection, f"{IMAGE}-ramdisk", folder / "initramfs", "ari")
    _ensure(
        connection,
        IMAGE,
        folder / "disk",
        "raw",
        kernel_id=kernel,
        ramdisk_id=ramdisk,
        hw_machine_type="q35",
        # Without KVM on a busy machine the timer may miss the kernel's look for it, which panics.
        os_command_line="console=ttyS0 quiet no_timer_check",
        img_hv_type="qemu",  # the fake computes would take it, too, and show nothing
    )
    _ensure(connection, BLANK, folder / "disk", "raw")


def _ensure(connection: Any, name: str, path: Path, disk_format: str, **properties: str) -> str:
    for found in connection.image.images(name=name):
        if found.status == "active":
            return str(found.id)
        connection.image.delete_image(found.id)
    container = disk_format if disk_format in ("aki", "ari") else "bare"
    image = connection.image.create_image(
        name,
        filename=str(path),
        disk_format=disk_format,
        container_format=container,
        visibility="public",
        allow_duplicates=True,
        wait=True,
        disable_vendor_agent=True,
        **properties,
    )
    return str(image.id)


def console_lines(text: str, kind: str) -> list[dict[str, Any]]:
    """Return the reports of one kind (node, memory, swap, beat) that a console log holds; a torn line is left out."""
    found = []
    for line in text.splitlines():
        if not line.startswith(LINE):
            continue
        try:
            report = json.loads(line[len(LINE) :])
        except ValueError:
            continue
        if report.get("kind") == kind:
            found.append(report)
    return found
