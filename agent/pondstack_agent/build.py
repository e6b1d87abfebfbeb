"""Puts an agent together from its configuration and a controller; tests give a fake controller, clock and executor."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from pondstack.rpc.bounded import BoundedCalls
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.borrower.build import build_borrower
from pondstack_agent.borrower.pages import Pages
from pondstack_agent.controller_link import controller_link
from pondstack_agent.drivers import HostPools, load_drivers
from pondstack_agent.endpoint import AgentEndpoint
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.executor import Executor
from pondstack_agent.lending.build import build_lending
from pondstack_agent.lending.guests import growth_mib
from pondstack_agent.lending.lending import Lending
from pondstack_agent.lending.room import HostRoom
from pondstack_agent.locks import NamedLocks
from pondstack_agent.mitigation.mitigations import Mitigations
from pondstack_agent.mitigation.mover import Mover
from pondstack_agent.mitigation.records import Entries
from pondstack_agent.mitigation.room import HostNodes, LocalRoom
from pondstack_agent.pool.attach import AttachFlow
from pondstack_agent.pool.housekeeper import Housekeeper
from pondstack_agent.pool.operations import Operations
from pondstack_agent.pool.releases import Releases
from pondstack_agent.records import Records
from pondstack_agent.remote.build import build_consumers, build_remote, build_stores
from pondstack_agent.remote.remote import RemoteMemory
from pondstack_agent.reporter import Reporter
from pondstack_agent.sequence import Sequence
from pondstack_agent.tiering import Tiering
from pondstack_rdma.host_memory import Room, host_room


@dataclass(frozen=True)
class Agent:
    """The parts of an agent that its service runs."""

    endpoint: AgentEndpoint
    housekeeper: Housekeeper
    reporter: Reporter
    tiering: Tiering
    lending: Lending | None = None
    borrower: Borrower | None = None
    """None: [lending] transport is empty."""
    remote: RemoteMemory | None = None


def build_agent(
    conf: cfg.ConfigOpts,
    controller: ControllerAPI,
    executor: Executor,
    *,
    calls: BoundedCalls | None = None,
    pools: HostPools | None = None,
    clock: Callable[[], float] = time.time,
    records: Callable[[Path], Records] = Records,
    mitigating: Executor | None = None,
    step: Callable[[str], None] = lambda _name: None,
    tiering: Tiering | None = None,
    remote: Executor | None = None,
    meminfo: Room = host_room,
    growth_mib: Callable[[], int] = growth_mib,
    pages: Pages | None = None,
) -> Agent:
    """Return an agent over the state folder of the configuration; what a former one left there is found again.

    `executor` runs what nobody waits for, `calls` makes the calls of the controller (None: in the caller's thread).
    `records` opens a folder of records. `mitigating` runs mitigations, which take long (None: `executor`); `step` is
    told before each of their changes. `tiering`: the settings of another kernel than that of this machine. `remote`
    runs what takes long of lent memory (None: `executor`), `meminfo` tells how much memory is available, `growth_mib`
    what guests may still take of it, `pages` owns what is in borrowed memory (None: page stores).
    """
    state_dir, host = Path(conf.agent.state_dir), conf.host
    link = controller_link(controller, calls, conf.agent.controller_timeout_seconds)
    pools = pools or load_drivers(conf)
    marks = records(state_dir / "marks")
    sequence, consumers, allocations = Sequence(marks), NamedLocks(), NamedLocks()
    epoch = EpochGuard(marks)
    operations = Operations(records(state_dir / "operations"), clock)
    releases = Releases(
        host=host,
        records=records(state_dir / "releases"),
        pools=pools,
        controller=link,
        executor=executor,
        clock=clock,
    )
    tiering = tiering or Tiering.from_conf(conf, records(state_dir / "tiering"))
    attach_flow = AttachFlow(
        host=host,
        operations=operations,
        releases=releases,
        pools=pools,
        controller=link,
        epoch=epoch,
        sequence=sequence,
        locks=allocations,
    )
    nodes = HostNodes()
    room = LocalRoom(nodes.free_mib, conf.agent.mitigation_headroom_mib)
    lending = borrower = remote_memory = None
    if conf.lending.transport:
        remote = remote or executor
        to_lend = HostRoom.from_conf(conf, lambda: room.reserved_mib + growth_mib(), meminfo)
        lending = build_lending(conf, link, epoch, remote, records, clock, to_lend, sequence)
        if pages is not None:
            borrower = build_borrower(conf, link, epoch, remote, records, clock, pages)
        else:
            borrowers = build_consumers(conf, records, clock)
            stores = build_stores(conf, borrowers, records, clock)
            borrower = build_borrower(conf, link, epoch, remote, records, clock, stores)
            remote_memory = build_remote(conf, borrowers, stores, link, borrower, epoch, remote)
    reporter = Reporter(
        host=host,
        pools=pools,
        releases=releases,
        epoch=epoch,
        sequence=sequence,
        controller=link,
        tiering=tiering,
        lending=lending,
        borrower=borrower,
    )
    mitigations = Mitigations(
        entries=Entries(records(state_dir / "mitigations"), clock),
        pools=pools,
        nodes=nodes,
        room=room,
        mover=Mover(nodes, conf.agent.mitigation_chunk_mib, step),
        executor=mitigating or executor,
        step=step,
    )
    housekeeper = Housekeeper(
        operations=operations,
        releases=releases,
        attach_flow=attach_flow,
        pools=pools,
        executor=executor,
        mitigations=mitigations,
        locks=consumers,
    )
    endpoint = AgentEndpoint(
        host=host,
        operations=operations,
        releases=releases,
        attach_flow=attach_flow,
        reporter=reporter,
        pools=pools,
        epoch=epoch,
        mitigations=mitigations,
        housekeeper=housekeeper,
        consumers=consumers,
        allocations=allocations,
    )
    return Agent(endpoint, housekeeper, reporter, tiering, lending, borrower, remote_memory)
