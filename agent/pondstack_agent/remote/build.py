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
from pondstack_agent.remote.borrow_requests import BorrowRequests
from pondstack_agent.remote.borrowed import Borrowed
from pondstack_agent.remote.extensions import ExtensionLimits, Extensions
from pondstack_agent.remote.owners import Owners
from pondstack_agent.remote.records import Consumers
from pondstack_agent.remote.remote import RemoteMemory
from pondstack_agent.remote.stores import PageStores, StoreTemplate
from pondstack_agent.remote.swap_disks import DiskPlace, SwapDisks
from pondstack_rdma.transports import options_of

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
    own, plane = context.conf.page_store, context.conf.data_plane
    consumers = Consumers(context.records("remote"), context.clock)
    borrowed = Borrowed(Store(context.records("borrowing"), context.clock))
    stores = PageStores(_template(context), consumers, borrowed)
    denials: Denials = nothing_denied
    if data_plane is None and plane.folder:
        data_plane, denials = _data_plane(Path(plane.folder), plane.timeout_seconds)
    links = links or (DataPlaneLinks(data_plane) if data_plane else None)
    limits = ExtensionLimits(plane.mirror_mib, plane.leave_seconds, plane.home_seconds)
    extensions = Extensions(consumers, borrowed, data_plane, find, limits, started=started, denials=denials)
    place = DiskPlace(Path(plane.folder), plane.disk_user, plane.leave_seconds)
    disks = SwapDisks(consumers, borrowed, data_plane, find, place)
    owners = Owners(consumers, extensions, disks, stores)
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
        extension_folder=Path(plane.mirror_folder),
        extension_mib=plane.mirror_mib,
        mirror_folder=Path(own.mirror_folder),
        mirror_mib=own.mirror_mib,
        buffer_mib=context.conf.lending.buffer_mib,
        grow_seconds=own.grow_seconds,
    )
    return borrower, remote


def _data_plane(folder: Path, timeout_seconds: float) -> tuple[DataPlane, Denials]:
    """Return the data plane of a folder, and what would deny it guests; what its host lacks for it is logged."""
    denials = Confinement(folder, timeout_seconds)
    for reason in [*preflight.missing(), *denials(None)]:
        LOG.warning("The data plane needs what this host lacks: %s", reason)
    return ControlClient(folder, timeout_seconds), denials


def _template(context: AgentContext) -> StoreTemplate:
    conf, own = context.conf, context.conf.page_store
    return StoreTemplate(
        folder=Path(conf.agent.state_dir) / "pages",
        leave_seconds=own.leave_seconds,
        timeout_seconds=own.timeout_seconds,
        launcher=own.launcher,
        common={
            "transport": conf.lending.transport,
            "options": options_of(conf.lending),
            "sealing": own.sealing,
            "survives": own.mirror_survives,
            "queue_pages": own.queue_pages,
            "patience_seconds": own.queue_seconds,
            "access_seconds": conf.lending.access_timeout_seconds,
            "pages_per_second": own.pages_per_second,
        },
    )
