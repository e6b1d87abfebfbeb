"""The CXL driver in a host, for tests: objects made anew as an agent's restart does, killed at a chosen step."""

import os
import pwd
import shutil
import signal
import threading
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from oslo_privsep.capabilities import Capabilities

from pondstack_agent import separation
from pondstack_agent.drivers.cxl import CxlHostPool, partition_command
from pondstack_agent.drivers.cxl import privileged as cxl
from pondstack_agent.drivers.cxl.returns import Settings
from pondstack_agent.host import memory_users
from pondstack_agent.host import privileged as memory
from pondstack_agent.partition import Partition, privileged
from pondstack_agent.privilege import abilities
from pondstack_agent.qemu.arrivals import Arrivals, unattached
from pondstack_agent.telemetry import untouched
from pondstack_agent.tiering.kernel import Kernel
from pondstack_agent.tiering.nodes import NodeReader

STATE = Path("/var/lib/pondstack/agent")
SYSTEM = ("system.slice",)
_ARRIVAL_SECONDS = 600.0

CAPABILITIES = frozenset(
    {
        Capabilities.CAP_SYS_MODULE,
        Capabilities.CAP_SYS_NICE,
        Capabilities.CAP_SYS_PTRACE,
    }
)
"""Of the agent's privileged processes for memory and guests, which a test compares."""


class Driver:
    """One driver object at a time, over one device and the permission table that the host sees.

    Its process has the capabilities of those that the agent has for this, and no others.
    """

    def __init__(
        self, host: str, serial: str, table: str, attempts: int = 3, seconds: float = 60.0, number: int = 1
    ) -> None:
        self._arguments: dict[str, Any] = {
            "host": host,
            "state_dir": STATE,
            "pools": {number: serial},
            "permission_tables": [table] if table else [],
            "settings": Settings(attempts, seconds),
            "partition": Partition(SYSTEM, ()),
            "step": self._step,
        }
        abilities.keep(CAPABILITIES)
        STATE.mkdir(parents=True, exist_ok=True)
        self._kill_at: int | str = 0
        self._steps = 0
        self.open()

    def open(self) -> None:
        """Make a new driver object."""
        self._driver = CxlHostPool(**self._arguments)

    def call(self, method: str, arguments: list[Any]) -> Any:
        """Call a method of the driver."""
        return getattr(self._driver, method)(*arguments)

    def call_killed(self, method: str, arguments: list[Any], step: int | str) -> bool:
        """Call a method in a process of its own that ends, as by kill -9, before its step-th change of the kernel,
        or the first of that name.

        False when it was killed, True when it came to its end before; raises RuntimeError when it failed. A fork of
        this process: a new one would spend minutes of emulated time on imports.
        """
        child = os.fork()
        if child == 0:
            self._kill_at, self._steps = step, 0
            try:
                self.open()
                getattr(self._driver, method)(*arguments)
            except BaseException:  # noqa: BLE001 - whatever it is, this process ends here
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            raise RuntimeError(f"{method} failed in its own process; see the host's console")
        self.open()
        return os.WIFEXITED(status)

    def limit(self, attempts: int, seconds: float) -> None:
        """Bound the offlining otherwise, from a new driver object on."""
        self._set(offline_attempts=attempts, offline_timeout_seconds=seconds, zero_on_host=False)

    def zero_on_host(self) -> None:
        """Zero here what is given back, from a new driver object on."""
        self._set(zero_on_host=True)

    def backing(self, kind: str) -> None:
        """Have guests' slices be of a kind, from a new driver object on."""
        self._set(backing=kind)

    def touched_mib(self, consumer: str) -> list[float]:
        """Return what a guest has touched of each of its nodes, by the agent's telemetry."""
        pid = memory_users.guests()[consumer]
        return [(figure.touched_bytes or 0) / 2**20 for figure in untouched.measure(pid, untouched.groups(pid))]

    def expect(self, consumer: str) -> None:
        """Have the QEMU of a guest that comes leave shared files out, as the agent does (await_guest)."""
        self._arrivals = Arrivals(self._arguments["host"], unattached, lambda _guest: True, _ARRIVAL_SECONDS)
        self._arrivals.expect(consumer)

    def _set(self, **settings: Any) -> None:
        self._arguments["settings"] = replace(self._arguments["settings"], **settings)
        self.open()

    def make_partition(self, wanted: bool) -> None:
        """Make the partition at each attach, or only look, from a new driver object on."""
        self._set(make_partition=wanted)

    def partition(self, command: str) -> int:
        """Run the operator's command; 1 when the partition is open."""
        return partition_command.run(command, Partition(SYSTEM, ()), partition_command.holders(STATE))

    def audit(self) -> dict[str, Any]:
        """Return what the kernel has."""
        return audit()

    def detach_beside_reader(self, allocation_uuid: str) -> int:
        """Detach while a thread does nothing but read the kernel's memory tiers; return how often it could."""
        reads, over = 0, threading.Event()

        def read() -> None:
            nonlocal reads
            while not over.is_set():
                # A new one each time: it has to read the tiers.
                reads += bool(NodeReader(Kernel()).look().tiers)

        thread = threading.Thread(target=read)
        thread.start()
        try:
            self._driver.detach(allocation_uuid)
        finally:
            over.set()
            thread.join()
        return reads

    def lose_state(self) -> None:
        """Remove the folder of the agent's state."""
        shutil.rmtree(STATE)
        STATE.mkdir()

    def _step(self, name: str) -> None:
        self._steps += 1
        if self._kill_at in (name, self._steps):
            os.kill(os.getpid(), signal.SIGKILL)


class UnprivilegedDriver(Driver):
    """The same in a process that is root no more, without a permission table: the share of a host's is root's."""

    def __init__(self, host: str, serial: str) -> None:
        user = pwd.getpwnam("nobody")
        separation.give(STATE, user)
        contexts = (memory.context, cxl.context, privileged.context)
        for number, context in enumerate(contexts):
            context.fork(contexts[:number])
        separation.become(user)
        for context in contexts:
            context.connect()
        super().__init__(host, serial, "")

    def abilities(self) -> tuple[tuple[int, ...], list[int]]:
        """Return the user ids and capabilities of its process."""
        return os.getresuid(), sorted(abilities.effective())


def audit(number: int = 1) -> dict[str, Any]:
    """Return what the kernel itself has of a device, read without the driver's own classes of slices.

    `slices`: first and last physical byte, driver and online blocks of each dax device with a range; `empty`: how many
    have none; `available`, `size`, `start`: bytes of the region.
    """
    [folder] = [
        item / f"dax_{item.name}" for item in Path("/sys/bus/cxl/devices").glob("region*") if _serial(item) == number
    ]
    block = int(Path("/sys/devices/system/memory/block_size_bytes").read_text(), 16)
    slices, empty = [], 0
    for device in sorted(folder.glob("dax*.*")):
        size = int((device / "size").read_text())
        if not size:
            empty += 1
            continue
        [mapping] = device.glob("mapping*[0-9]")
        first, last = (int((mapping / name).read_text(), 16) for name in ("start", "end"))
        states = [
            path.read_text().strip()
            for n in range(first // block, (last + 1) // block)
            if (path := Path(f"/sys/devices/system/memory/memory{n}/state")).exists()
        ]
        link = device / "driver"
        driver = link.resolve().name if link.exists() else ""
        slices.append([first, last, driver, states.count("online"), len(states)])
    return {
        "slices": slices,
        "empty": empty,
        "available": int((folder / "dax_region/available_size").read_text()),
        "start": int((folder.parent / "resource").read_text(), 16),
        "size": int((folder.parent / "size").read_text(), 16),
        "block": block,
    }


def _serial(region: Path) -> int:
    decoder = (region / "target0").read_text().strip()
    endpoint = Path("/sys/bus/cxl/devices", decoder).resolve().parent
    return int(((endpoint / "uport").resolve() / "serial").read_text(), 16)
