"""The command line of one emulated host, and the QEMU process."""

import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pondstack.devices.qmp import Monitor

from .machine import Machine, Wire

ROOT = Path(__file__).resolve().parents[2]
MIB = 2**20
MONITOR = "monitor"
CUT = "cut"
_ANSWER_SECONDS = 60.0


@dataclass(frozen=True)
class Files:
    """What tools/hardware.sh made."""

    folder: Path

    @classmethod
    def built(cls) -> Self:
        """Build what is missing or out of date; raises CalledProcessError, having said why."""
        subprocess.run([ROOT / "tools/hardware.sh"], check=True)
        return cls(Path(os.environ.get("HARDWARE", ROOT / ".hardware")).resolve())

    @property
    def root(self) -> Path:
        """The Debian root folder; QEMU runs out of it."""
        return self.folder / "root"

    @property
    def image(self) -> Path:
        """The same as a disk; no host changes it."""
        return self.folder / "root.img"

    def qemu(self) -> list[str]:
        """Return how to call that root's QEMU on any distribution: with its own loader, libraries and data."""
        libraries = self.root / "usr/lib/x86_64-linux-gnu"
        return [
            str(self.root / "usr/lib64/ld-linux-x86-64.so.2"),
            "--library-path",
            str(libraries),
            str(self.root / "usr/bin/qemu-system-x86_64"),
            *(word for name in ("qemu", "seabios") for word in ("-L", str(self.root / "usr/share" / name))),
        ]

    def environment(self) -> dict[str, str]:
        """Return the environment in which QEMU finds its modules."""
        return {**os.environ, "QEMU_MODULE_DIR": str(self.root / "usr/lib/x86_64-linux-gnu/qemu")}


def arguments(machine: Machine, files: Files, disk: Path, code: Path, *, channel_fd: int) -> list[str]:
    """Return the whole command line; relative paths are in the host's folder."""
    return [
        *files.qemu(),
        # Without KVM. With the hypervisor bit Linux asks for what TCG lacks ("Failed to synchronize CPU cache state").
        *("-accel", "tcg,thread=multi", "-cpu", "max,-hypervisor", "-smp", str(machine.cpus)),
        *("-m", f"{machine.memory_mib}M,maxmem=32G,slots=4"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-kernel", str(files.folder / "vmlinuz"), "-initrd", str(files.folder / "initrd")),
        *("-append", " ".join(_kernel_options(machine))),
        *("-drive", f"if=none,id=root,format=qcow2,cache=unsafe,file={disk}"),
        *("-device", "virtio-blk-pci,bus=pcie.0,drive=root"),
        *("-drive", f"if=none,id=code,format=raw,readonly=on,file={code}"),
        *("-device", "virtio-blk-pci,bus=pcie.0,drive=code"),
        *("-serial", "file:console.log", "-serial", "unix:login,server=on,wait=off"),
        *("-chardev", f"socket,id=channel,fd={channel_fd}", "-device", "virtio-serial-pci,bus=pcie.0"),
        *("-device", "virtserialport,chardev=channel,name=pondstack"),
        *_cxl(machine.devices),
        *_shares(machine),
        *(("-netdev", "user,id=net0", "-device", "virtio-net-pci,bus=pcie.0,netdev=net0") if machine.network else ()),
        *(_wire(machine.wire) if machine.wire else ()),
        *machine.qemu_options,
    ]


def _kernel_options(machine: Machine) -> Iterator[str]:
    # Mitigations and audit cost boot time under TCG and guard nothing here.
    yield from ("console=ttyS0", "panic=-1", "loglevel=6", "mitigations=off", "audit=0")
    # On a busy machine the emulated timer may miss the kernel's look for it: "IO-APIC + timer doesn't work".
    yield "no_timer_check"
    yield from (f"pond.name={machine.name}", *machine.kernel_options)
    if machine.network:
        yield "pond.network=1"
    for number, folder in enumerate(machine.shares):
        yield f"pond.share=share{number}:{folder}"


def _cxl(devices: Sequence[Path]) -> Iterator[str]:
    """Each device has a host bridge, a root port and a fixed memory window of its own; its bytes are the file's."""
    windows = []
    for number, path in enumerate(devices):
        size_mib = path.stat().st_size // MIB
        windows.append(f"cxl-fmw.{number}.targets.0=cxl.{number},cxl-fmw.{number}.size={size_mib}M")
        # Without hdm_for_passthrough there is one region only.
        yield from ("-object", f"memory-backend-file,id=cxl-memory{number},share=on,mem-path={path},size={size_mib}M")
        yield from (
            "-device",
            f"pxb-cxl,hdm_for_passthrough=on,bus_nr={64 + 16 * number},bus=pcie.0,id=cxl.{number}",
        )
        yield from ("-device", f"cxl-rp,port=0,bus=cxl.{number},id=cxl-port{number},chassis=0,slot={2 + number}")
        yield from (
            "-device",
            f"cxl-type3,bus=cxl-port{number},volatile-memdev=cxl-memory{number},id=cxl-mem{number},sn={number + 1}",
        )
    yield from ("-machine", ",".join(["q35", f"cxl={'on' if devices else 'off'}", *windows]))


def _shares(machine: Machine) -> Iterator[str]:
    for number, path in enumerate(machine.shares.values()):
        yield from ("-fsdev", f"local,id=share{number},path={path},security_model=none,readonly=on")
        yield from ("-device", f"virtio-9p-pci,bus=pcie.0,fsdev=share{number},mount_tag=share{number}")


def _wire(wire: Wire) -> Iterator[str]:
    """Whoever starts first waits for the other; nothing is lost on it. Frames hold the largest packet of RoCE."""
    role = "server=on" if wire.listens else "server=off,reconnect-ms=200"
    yield from ("-netdev", f"stream,id=wire,{role},addr.type=unix,addr.path={wire.socket}")
    yield from ("-device", f"virtio-net-pci,bus=pcie.0,netdev=wire,mac={wire.mac},host_mtu=9000,romfile=")
    # Cut, it swallows every frame of both directions, and both hosts go on seeing a carrier.
    yield from ("-chardev", "null,id=nowhere")
    yield from ("-object", f"filter-redirector,id={CUT},netdev=wire,queue=all,outdev=nowhere,status=off")
    yield from ("-qmp", f"unix:{MONITOR},server=on,wait=off")


class Qemu:
    """One running QEMU. `channel` goes to the host's runner; who uses it closes it."""

    def __init__(self, machine: Machine, files: Files, folder: Path, disk: Path, code: Path) -> None:
        self._folder = folder
        self.channel, channel = socket.socketpair()
        with channel, (folder / "qemu.log").open("ab") as log:
            self.process = subprocess.Popen(
                arguments(machine, files, disk, code, channel_fd=channel.fileno()),
                pass_fds=(channel.fileno(),),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=files.environment(),
            )

    def cut_wire(self, cut: bool) -> None:
        """Have the wire lose all frames from now on, or none; the host's card keeps its carrier."""
        with Monitor(str(self._folder / MONITOR), _ANSWER_SECONDS) as monitor:
            monitor.execute("qom-set", path=f"/objects/{CUT}", property="status", value="on" if cut else "off")

    def state(self) -> str:
        """Return what the machine is by its monitor: running, suspended (S3)..."""
        with Monitor(str(self._folder / MONITOR), _ANSWER_SECONDS) as monitor:
            return str(monitor.execute("query-status")["status"])

    def wake(self) -> None:
        """Press the power button of a machine that is suspended."""
        with Monitor(str(self._folder / MONITOR), _ANSWER_SECONDS) as monitor:
            monitor.execute("system_wakeup")

    def end(self) -> None:
        """Take the power away: no more than what the host synced is on its disk."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
