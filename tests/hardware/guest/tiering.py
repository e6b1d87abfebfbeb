"""Tiering in a host, for tests: settings of an agent that is stopped or killed, and the kernel's own figures."""

import os
import re
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pondstack_agent.records import Records
from pondstack_agent.tiering import Tiering
from pondstack_agent.tiering.kernel import Kernel
from pondstack_agent.tiering.policy import Policy
from pondstack_agent.tiering.switch import TieringSwitch

STATE = Path("/var/lib/pondstack/agent/tiering")
ORDERS = STATE.with_name("tiering-order")
SETTINGS = (
    "/sys/kernel/mm/numa/demotion_enabled",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps",
    "/proc/sys/vm/watermark_scale_factor",
    "/sys/kernel/mm/mempolicy/weighted_interleave/node0",
    "/sys/kernel/mm/mempolicy/weighted_interleave/node1",
)


class Host:
    """The tiering part of one agent."""

    def __init__(self) -> None:
        STATE.mkdir(parents=True, exist_ok=True)

    def start(self, policy: dict[str, Any], nodes: bool = False) -> None:
        """Start anew, as an agent's start does; `nodes`: with a switch, over pool memory that is a node."""
        if "weights" in policy:
            policy = {**policy, "weights": tuple(policy["weights"])}
        self._tiering = Tiering(Policy(**policy), Kernel(), Records(STATE))
        if nodes:
            self._switch = TieringSwitch(self._tiering, SimpleNamespace(nodes=True), Records(ORDERS))  # type: ignore[arg-type]
        self._tiering.start()

    def order(self, on: bool | None) -> None:
        """Switch tiering at run time, as the controller does."""
        self._switch.order(on)

    def start_killed(self, policy: dict[str, Any]) -> None:
        """Start in a process of its own that is killed when all is set."""
        child = os.fork()
        if child == 0:
            try:
                self.start(policy)
                os.kill(os.getpid(), signal.SIGKILL)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            raise RuntimeError("the settings could not be made; see the host's console")

    def maintain(self) -> None:
        """Do what the heartbeat does."""
        self._tiering.maintain()

    def report(self) -> dict[str, Any]:
        """Return what the agent reports."""
        return self._tiering.report()

    def stop(self) -> None:
        """Put everything back."""
        self._tiering.stop()

    def settings(self) -> dict[str, str]:
        """Return what the kernel has, read without our classes."""
        return {path: Path(path).read_text().strip() for path in SETTINGS}

    def vmstat(self) -> dict[str, int]:
        """Return the kernel's counters of demoted and promoted pages."""
        rows = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
        return {name: int(value) for name, value in rows if name.startswith(("pgdemote", "pgpromote"))}

    def scans(self, pid: int) -> int:
        """Return how often the kernel has scanned the memory of a process for what to promote."""
        text = Path(f"/proc/{pid}/sched").read_text()
        return int(re.findall(r"^mm->numa_scan_seq\s*:\s*(\d+)", text, re.MULTILINE)[0])

    def free_mib(self, node: int) -> int:
        """Return the free memory of a node."""
        text = Path(f"/sys/devices/system/node/node{node}/meminfo").read_text()
        return int(re.findall(r"MemFree:\s+(\d+) kB", text)[0]) // 1024

    def pages(self, pid: int, size_mib: int) -> dict[int, int]:
        """Return where the pages of the mappings of at least so many MiB of a process are: node to pages."""
        found: dict[int, int] = {}
        for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
            counts = {int(node): int(pages) for node, pages in re.findall(r"\bN(\d+)=(\d+)", line)}
            unit = int(re.findall(r"kernelpagesize_kB=(\d+)", line)[0]) if counts else 0
            if sum(counts.values()) * unit >= size_mib * 1024:
                for node, pages in counts.items():
                    found[node] = found.get(node, 0) + pages * unit // 4
        return found
