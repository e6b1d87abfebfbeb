"""Puts remote memory together from the agent's configuration."""

from pathlib import Path

from oslo_log import log

from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.borrower.build import build_borrower
from pondstack_agent.borrower.links import Links
from pondstack_agent.borrower.records import Store
from pondstack_agent.context import AgentContext
from pondstack_agent.data_plane import preflight
from pondstack_agent.data_plane.client import ControlClient, DataPlane
from pondstack_agent.data_plane.confinement import Confinement
from pondstack_agent.data_plane.denials import Denials, nothing_denied
from pondstack_agent.data_plane.guest_memory import FindMemory, ProcessStarted, find_memory, start_of
from pondstack_agent.data_plane.links import DataPlaneLinks
from pondstack_agent.data_plane.pager_settings import PagerSettings
from pondstack_agent.locks import NamedLocks
from pondstack_agent.remote.borrow_requests import BorrowRequests
from pondstack_agent.remote.borrowed import Borrowed
from pondstack_agent.remote.extensions import ExtensionLimits, Extensions
from pondstack_agent.remote.former_stores import FormerStores
from pondstack_agent.remote.handovers import HandoverLimits
from pondstack_agent.remote.moves import Moves
from pondstack_agent.remote.owners import Owners
from pondstack_agent.remote.records import Consumers
from pondstack_agent.remote.remote import RemoteMemory
from pondstack_agent.remote.swap_disks import DiskPlace, SwapDisks

LOG = log.getLogger(__name__)


def build_remote(
    context: AgentContext,
    data_plane: DataPlane | None = None,
    find: FindMemory = find_memory,
    started: ProcessStarted = start_of,
    links: Links | None = None,
) -> tuple[Borrower, RemoteMemory]:
    """Return the remote-memory manager, and the borrower side, whose buffers it has used; starts none.

    `data_plane`: another one than that of the configuration; `find` finds guests' processes, and `started`
    tells when one began. `links`: other ones than those of the data plane to lenders.
    """
    plane = context.conf.data_plane
    consumers = Consumers(context.records("remote"), context.clock)
    borrowed = Borrowed(Store(context.records("borrowing"), context.clock))
    denials: Denials = nothing_denied
    if data_plane is None and plane.folder:
        data_plane, denials = _data_plane(Path(plane.folder), plane.timeout_seconds)
    links = links or (DataPlaneLinks(data_plane) if data_plane else None)
    pager = PagerSettings(plane.policy, plane.read_ahead_pages, plane.chunk_kib)
    limits = ExtensionLimits(plane.mirror_mib, plane.leave_seconds, plane.home_seconds, pager)
    handover = HandoverLimits(
        plane.handover_address, plane.silence_seconds, plane.arrival_seconds, plane.abandoned_seconds
    )
    extensions = Extensions(
        consumers, borrowed, data_plane, find, limits, handover=handover, started=started, denials=denials
    )
    locks = NamedLocks()
    place = DiskPlace(Path(plane.folder), plane.disk_user, plane.leave_seconds)
    disks = SwapDisks(consumers, borrowed, data_plane, find, place)
    former = FormerStores(Path(context.conf.agent.state_dir) / "pages", consumers)
    owners = Owners(consumers, extensions, disks, former)
    borrower = build_borrower(context, owners, links)
    remote = RemoteMemory(
        consumers=consumers,
        owners=owners,
        extensions=extensions,
        disks=disks,
        borrowed=borrowed,
        asking=BorrowRequests(context.host, consumers, context.controller, borrower),
        borrower=borrower,
        executor=context.executor,
        host=context.host,
        mirror_folder=Path(plane.mirror_folder),
        mirror_mib=plane.mirror_mib,
        buffer_mib=context.conf.lending.buffer_mib,
        grow_seconds=plane.grow_seconds,
        locks=locks,
        moves=Moves(context.host, consumers, extensions.handovers, locks, extensions.use),
    )
    return borrower, remote


def _data_plane(folder: Path, timeout_seconds: float) -> tuple[DataPlane, Denials]:
    """Return the data plane of a folder, and what would deny it guests; what its host lacks for it is logged."""
    denials = Confinement(folder, timeout_seconds)
    for reason in [*preflight.missing(), *denials(None)]:
        LOG.warning("The data plane needs what this host lacks: %s", reason)
    return ControlClient(folder, timeout_seconds), denials
