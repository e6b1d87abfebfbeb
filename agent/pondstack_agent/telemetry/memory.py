"""Untouched memory of all guests of this host as samples."""

from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID

from oslo_log import log

from pondstack.domain.errors import PondError
from pondstack.domain.telemetry import Metric
from pondstack.domain.units import MIB
from pondstack_agent.host.memory_users import guests
from pondstack_agent.qemu.process import NOT_ALLOWED
from pondstack_agent.telemetry import pagemap, untouched
from pondstack_agent.telemetry.outbox import Outbox
from pondstack_agent.telemetry.untouched import Figure

LOG = log.getLogger(__name__)

Guests = Callable[[], Mapping[str, int]]
"""Returns the guests of this host: instance UUID to process id."""

Served = Callable[[str], int | None]
"""Returns how many bytes of a guest's node 0 are touched, by the data plane, which has evicted some of them.

None when it serves no process of the guest. Raises PondError when it is to serve one, and does not say.
"""


def unserved(_consumer_uuid: str) -> None:
    """Return None: of a host without a data plane."""


def running_guests(proc: Path = pagemap.PROC) -> dict[str, int]:
    """Return the processes that say which instance they are; what is no UUID is no instance."""
    found = {}
    for name, pid in guests(proc).items():
        try:
            found[str(UUID(name))] = pid
        except ValueError:
            LOG.debug("Process %d has -uuid %s, which is none", pid, name)
    return found


def report(consumer_uuid: str, figure: Figure, outbox: Outbox, node: int | None) -> None:
    """Put one figure into the outbox."""
    outbox.add(consumer_uuid, Metric.MEMORY_MIB, figure.size_bytes / MIB, node)
    if figure.touched_bytes is None:
        outbox.missing(consumer_uuid, Metric.UNTOUCHED_MIB, figure.reason, node)
        return
    outbox.add(consumer_uuid, Metric.UNTOUCHED_MIB, (figure.size_bytes - figure.touched_bytes) / MIB, node)
    if figure.huge_bytes is None:
        outbox.missing(consumer_uuid, Metric.HUGE_MIB, "the kernel has no PAGEMAP_SCAN (Linux 6.7)", node)
    else:
        outbox.add(consumer_uuid, Metric.HUGE_MIB, figure.huge_bytes / MIB, node)


class MemoryLook:
    """Looks at the memory of every guest."""

    def __init__(
        self,
        outbox: Outbox,
        running: Guests = running_guests,
        proc: Path = pagemap.PROC,
        served: Served = unserved,
    ) -> None:
        self._outbox = outbox
        self._served = served
        self._running = running
        self._proc = proc

    def run(self) -> None:
        """Look once; a guest that ends meanwhile is left out."""
        for consumer_uuid, pid in self._running().items():
            try:
                self._look(consumer_uuid, pid)
            except PermissionError:
                self._outbox.missing(consumer_uuid, Metric.UNTOUCHED_MIB, NOT_ALLOWED)
            except OSError as error:
                LOG.debug("Guest %s (process %d) cannot be looked at: %s", consumer_uuid, pid, error)

    def _look(self, consumer_uuid: str, pid: int) -> None:
        found = untouched.groups(pid, self._proc)
        if not found:
            return
        figures = [self._told(consumer_uuid, figure) for figure in untouched.measure(pid, found, self._proc)]
        report(consumer_uuid, untouched.whole(figures), self._outbox, None)
        for group, figure in zip(found, figures, strict=True):
            if len(group.nodes) == 1:
                report(consumer_uuid, figure, self._outbox, group.nodes[0].number)
                continue
            for node in group.nodes:
                names = ", ".join(str(item.number) for item in group.nodes)
                alike = Figure((node.number,), node.size_bytes, reason=f"nodes {names} look alike from outside")
                report(consumer_uuid, alike, self._outbox, node.number)

    def _told(self, consumer_uuid: str, figure: Figure) -> Figure:
        """Return a figure as the data plane has it, if it is that of the node that may be served."""
        if figure.nodes != (0,):
            return figure
        try:
            touched = self._served(consumer_uuid)
        except PondError as error:
            return Figure(figure.nodes, figure.size_bytes, reason=f"partly evicted, nobody knows how much: {error}")
        if touched is None:
            return figure
        return Figure(figure.nodes, figure.size_bytes, min(touched, figure.size_bytes), figure.huge_bytes)
