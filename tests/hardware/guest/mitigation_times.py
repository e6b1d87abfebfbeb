"""Times of moving a process's memory from the pool's node to local memory: raw, by the cgroup alone, by the agent."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from pondstack_agent.host import numa
from pondstack_agent.mitigation import guest as guests
from pondstack_agent.mitigation.guest import Guest
from pondstack_agent.mitigation.mover import Mover
from pondstack_agent.mitigation.room import HostNodes, LocalRoom
from tests.hardware.guest.mitigated import Agent

LOCAL = 0
GROUP = Path("/sys/fs/cgroup/machine.slice/measured.scope")


class Phases:
    """Seconds of a turn by phase, in the order in which they began."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._name, self._since = "", 0.0

    def begin(self, name: str) -> None:
        """End a phase and begin the next one, "" for none; one that begins again goes on."""
        now = time.perf_counter()
        if self._name:
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._since
        self._name, self._since = name, now


class TimedMover(Mover):
    """The agent's; its phases are its steps and what it reads back."""

    def __init__(self, nodes: HostNodes, chunk_mib: int, phases: Phases) -> None:
        super().__init__(nodes, chunk_mib, phases.begin)
        self._phases = phases

    def check(self, guest: Guest, pool_node: int) -> None:
        """As the agent's."""
        self._phases.begin("read back")
        super().check(guest, pool_node)


class Times(Agent):
    """The agent, and processes that stand for guests, with the same amount of memory on an allocation's node."""

    def measure(self, way: str, node: int, mib: int, chunk_mib: int) -> dict[str, float]:
        """Return the seconds in which `mib` of a process moved from the node to local memory, by phase.

        `way`: "raw" is the command migratepages, "cgroup" a write to cpuset.mems, "agent" room, chunks, cgroup and
        reading back.
        """
        for folder in (GROUP.parent, GROUP):
            folder.mkdir(exist_ok=True)
            (folder.parent / "cgroup.subtree_control").write_text("+cpuset")
        (GROUP / "cpuset.mems").write_text("\n")
        with _occupier(node, mib) as pid:
            guest = Guest("measured", pid)
            pages = numa.pages_on(guest.regions(), node)
            phases = Phases()
            phases.begin("look" if way == "agent" else way)
            if way == "raw":
                subprocess.run(["migratepages", str(pid), str(node), str(LOCAL)], check=True)
            elif way == "cgroup":
                (GROUP / "cpuset.mems").write_text(str(LOCAL))
            else:
                cgroup, regions = guests.cgroup_of(guest), guest.regions_on(node)
                phases.begin("room")
                nodes = HostNodes()
                room = LocalRoom(nodes.free_mib, 64)
                room.reserve("measured", max(mib, numa.pages_on(regions, node) * numa.PAGE_KIB >> 10), [LOCAL])
                TimedMover(nodes, chunk_mib, phases).move(guest, cgroup, node, (LOCAL,), regions, lambda: False)
            phases.begin("")
            left = numa.pages_on(guest.regions(), node)
            if left > pages // 100:
                raise RuntimeError(f"{way}: {left} of {pages} pages stayed on node {node}")
        return phases.seconds


@contextlib.contextmanager
def _occupier(node: int, mib: int) -> Iterator[int]:
    """Run a guest's stand-in with touched memory on a node, in the cgroup; its number."""
    words = ["-uuid", str(uuid4()), str(node), str(mib), "text"]
    command = [sys.executable, "-m", "tests.hardware.guest.filler", *words]
    joined = ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(GROUP), *command]
    with subprocess.Popen(joined, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            if process.stdout.readline() != "filled\n":
                raise RuntimeError("the process could not take its memory; see the host's console")
            yield process.pid
        finally:
            process.kill()
