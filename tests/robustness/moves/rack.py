"""The rack that guests move on: two libvirt hosts, a fake compute that lends, two controllers, as real processes."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from pondstack_rack.daemon import DaemonFailed, signal_process
from pondstack_rack.rack import Rack
from pondstack_rack.wait import wait_until
from tests.robustness.mitigations.rack import Processes
from tests.robustness.moves.plan import Victim

SILENCE_SECONDS = 4.0
"""What data planes bear of each other's silence here: shorter than the longest freeze of the plan."""
KILL_SECONDS = 30.0
ABANDONED_SECONDS = 60.0
"""After that a guest whose source is lost has lost what it lacks."""

AGENT = f"""
[data_plane]
silence_seconds = {SILENCE_SECONDS}
arrival_seconds = 120
abandoned_seconds = {ABANDONED_SECONDS}
"""
CONTROLLER = """
[ha]
# Who leads changes by the plan's kills, and not because a busy machine stands still for a second.
lease_seconds = 5
"""


class MoveRack(Rack):
    """A rack on which an offer that nobody comes for ends within minutes, and silence within seconds."""

    def _configure(self) -> None:
        super()._configure()
        self._append("pondstack", CONTROLLER)
        for host in self.layout.libvirt_hosts:
            self._append(f"pondstack-agent-{host}", AGENT)

    def _append(self, name: str, text: str) -> None:
        with (self.layout.etc / f"{name}.conf").open("a") as file:
            file.write(text)


class Victims:
    """The rack's processes as victims, killed and frozen."""

    def __init__(self, rack: Rack, processes: Processes) -> None:
        self._rack, self.processes = rack, processes

    def service(self, victim: Victim, source: str, destination: str) -> str:
        """Return the service that a victim is now."""
        kinds = {
            Victim.SOURCE_PLANE: f"pondstack-data-plane-{source}",
            Victim.DESTINATION_PLANE: f"pondstack-data-plane-{destination}",
            Victim.SOURCE_AGENT: f"pondstack-agent-{source}",
            Victim.DESTINATION_AGENT: f"pondstack-agent-{destination}",
            Victim.SOURCE_COMPUTE: f"nova-compute-{source}",
            Victim.DESTINATION_COMPUTE: f"nova-compute-{destination}",
        }
        return kinds[victim] if victim in kinds else self.processes.leader()[0]

    def kill(self, service: str) -> None:
        """SIGKILL a service; the keepers of a data plane's memory are children of it that outlive it."""
        if not service.startswith("pondstack-data-plane"):
            self.processes.kill(service)
            return
        found = self.process(service)
        signal_process(found, signal.SIGKILL)
        if not wait_until(lambda: self._rack.service(service).running is False, KILL_SECONDS, 0.01):
            raise DaemonFailed(f"{service} survives SIGKILL")

    @contextmanager
    def frozen(self, service: str) -> Iterator[None]:
        """SIGSTOP a service and all that it started, but for keepers of memory; it goes on at the end."""
        found = self.process(service)
        children = [] if service.startswith("pondstack-data-plane") else found.children(recursive=True)
        members = [found, *children]
        try:
            for member in members:
                signal_process(member, signal.SIGSTOP)
            yield
        finally:
            for member in members:
                signal_process(member, signal.SIGCONT)

    def process(self, service: str) -> psutil.Process:
        """Return the live process of a service; raises DaemonFailed."""
        process = getattr(self._rack.service(service), "process", None)
        if process is None:
            raise DaemonFailed(f"{service} does not run")
        return process
