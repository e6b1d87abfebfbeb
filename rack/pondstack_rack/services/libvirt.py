"""Real libvirt hosts on one machine: each in a mount and a UTS namespace with its own /etc/libvirt, /run and the like.

The machine's own libvirt sees nothing of them: their sockets, networks, domains and caches lie below the rack's folder.
"""

import signal
from pathlib import Path

import psutil

from pondstack_rack import config, daemon
from pondstack_rack.daemon import Daemon
from pondstack_rack.layout import Layout
from pondstack_rack.processes import plain, run
from pondstack_rack.wait import wait_until

OWN = ("etc/libvirt", "var/lib/libvirt", "var/cache/libvirt", "var/log/libvirt", "run")
STOP_SECONDS = 20.0


def prepare(layout: Layout, host: str) -> None:
    """Make the folders, files and scripts of a host."""
    directory = layout.host(host)
    (layout.root / "instances").mkdir(exist_ok=True)
    for path in (*OWN, "nova/instances"):
        (directory / path).mkdir(parents=True, exist_ok=True)
    values = config.host_values(layout, host)
    config.write(directory / "etc/libvirt/libvirtd.conf", config.render("libvirtd.conf", values))
    config.write(directory / "etc/libvirt/qemu.conf", config.render("qemu.conf", values))
    names = "".join(f"{config.address(layout, name)} {name}\n" for name in layout.libvirt_hosts)
    config.write(directory / "hosts", f"127.0.0.1 localhost\n{names}", mode=0o644)
    config.write(directory / "host.sh", config.render("host.sh", values), mode=0o700)
    config.write(layout.bin / f"in-{host}", config.render("enter.sh", values), mode=0o700)


def namespaces(layout: Layout, host: str) -> Daemon:
    """Return the process that holds the host's namespaces; it comes first and goes last."""
    directory = layout.host(host)
    argv = ["/usr/bin/unshare", "--mount", "--uts", "--propagation", "private", str(directory / "host.sh")]

    def ready() -> bool:
        holder = directory / "holder"
        return holder.exists() and holder.read_text().strip() == str(held.pid)

    held = plain(layout, host, argv, ready)
    return held


def libvirtd(layout: Layout, host: str) -> Daemon:
    """Return the host's libvirtd."""
    enter = str(layout.bin / f"in-{host}")

    def ready() -> bool:
        if not (layout.host(host) / "run/libvirt/libvirt-sock").exists():
            return False
        run(layout, f"libvirtd-{host}", [enter, "virsh", "--quiet", "--connect", "qemu:///system", "version"])
        return True

    return plain(layout, f"libvirtd-{host}", [enter, "/usr/sbin/libvirtd"], ready)


def guests(layout: Layout, host: str) -> list[psutil.Process]:
    """Return the live QEMU processes of a host, known by the pid files that its libvirtd wrote."""
    found = []
    for path in (layout.host(host) / "run/libvirt/qemu").glob("*.pid"):
        process = _guest(path)
        if process is not None:
            found.append(process)
    return found


def stop_guests(layout: Layout, host: str) -> None:
    """End the QEMU processes of a host, also those that lost their libvirtd."""
    for process in guests(layout, host):
        daemon.signal_process(process, signal.SIGTERM)
    if not wait_until(lambda: not guests(layout, host), STOP_SECONDS):
        for process in guests(layout, host):
            daemon.kill_tree(process)


def _guest(pid_file: Path) -> psutil.Process | None:
    try:
        process = psutil.Process(int(pid_file.read_text()))
        # The name of the pid file is the domain's; QEMU has it in `-name guest=NAME,...`.
        return process if any(f"guest={pid_file.stem}," in word for word in process.cmdline()) else None
    except (ValueError, FileNotFoundError, psutil.NoSuchProcess):
        return None
