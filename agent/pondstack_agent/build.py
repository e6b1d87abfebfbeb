"""Puts an agent together from its configuration and a controller; tests give a fake controller, clock and executor."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from oslo_config import cfg

from pondstack.rpc.bounded import BoundedCalls
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.identity.revocations import Revocations
from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.borrower.build import build_borrower
from pondstack_agent.borrower.endpoint import BorrowerEndpoint
from pondstack_agent.borrower.links import Links
from pondstack_agent.borrower.pages import Pages
from pondstack_agent.context import AgentContext
from pondstack_agent.controller_link import controller_link
from pondstack_agent.data_plane.client import DataPlane
from pondstack_agent.data_plane.guest_memory import FindMemory, ProcessStarted, find_memory, start_of
from pondstack_agent.drivers import HostPools, load_drivers
from pondstack_agent.endpoint import AgentEndpoint
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.executor import Executor
from pondstack_agent.host.boot import BOOT_ID
from pondstack_agent.host_slices import HostSlicesEndpoint
from pondstack_agent.lending.build import build_lending
from pondstack_agent.lending.endpoint import LendingEndpoint
from pondstack_agent.lending.guests import growth_mib
from pondstack_agent.lending.lending import Lending
from pondstack_agent.lending.room import HostRoom
from pondstack_agent.misplaced.build import build_misplaced
from pondstack_agent.mitigation.build import build_domains, build_mitigations, build_room
from pondstack_agent.mitigation.endpoint import MitigationEndpoint
from pondstack_agent.mitigation.room import HostNodes
from pondstack_agent.pool.askers import Askers
from pondstack_agent.pool.build import PoolMemory, build_housekeeper, build_pool
from pondstack_agent.pool.housekeeper import Housekeeper
from pondstack_agent.pool.played import played_guests
from pondstack_agent.power.endpoint import PowerEndpoint
from pondstack_agent.qemu.arrivals import Arrivals, unattached
from pondstack_agent.records import Records
from pondstack_agent.remote.build import build_remote
from pondstack_agent.remote.endpoint import RemoteEndpoint
from pondstack_agent.remote.extension_endpoint import ExtensionEndpoint
from pondstack_agent.remote.move_endpoint import MoveEndpoint
from pondstack_agent.remote.remote import RemoteMemory
from pondstack_agent.remote.swap_endpoint import SwapEndpoint
from pondstack_agent.reporter import Reporter
from pondstack_agent.revocations import KeptRevocations, RevocationsEndpoint
from pondstack_agent.sequence import Sequence
from pondstack_agent.telemetry.load import Views
from pondstack_agent.telemetry.memory import Served, unserved
from pondstack_agent.telemetry.synthetic import PlayedGuests
from pondstack_agent.tiering import Tiering
from pondstack_agent.tiering.switch import TieringSwitch
from pondstack_rdma.host_memory import Room, host_room


@dataclass(frozen=True)
class Agent:
    """The parts of an agent that its service runs."""

    endpoint: AgentEndpoint
    endpoints: tuple[Any, ...]
    """All that oslo.messaging calls, `endpoint` first."""
    housekeeper: Housekeeper
    reporter: Reporter
    tiering: Tiering
    lending: Lending | None = None
    borrower: Borrower | None = None
    """None: [lending] transport is empty."""
    remote: RemoteMemory | None = None
    played: PlayedGuests = list
    """The guests that telemetry may play a trace for."""
    served: Served = unserved
    """What the data plane tells of guests of which it has evicted a part."""
    views: Views = list
    """What all consumers of remote memory have."""


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
    revocations: Revocations | None = None,
    pages: Pages | None = None,
    data_plane: DataPlane | None = None,
    find_memory: FindMemory = find_memory,
    process_started: ProcessStarted = start_of,
    links: Links | None = None,
    boot: str = "",
) -> Agent:
    """Return an agent over the state folder of the configuration; what a former one left there is found again.

    `executor` runs what nobody waits for, `calls` makes the calls of the controller (None: in the caller's thread).
    `records` opens a folder of records. `mitigating` moves guests' pages, which takes long (None: `executor`); `step`
    is told before each change of a mitigation. `tiering`: the settings of another kernel than that of this machine.
    `remote` runs what takes long of lent memory (None: `executor`), `meminfo` tells how much memory is available,
    `growth_mib` what guests may still take of it, `pages` owns what is in borrowed memory (None: the data plane).
    `data_plane`: another one than that of the configuration; `find_memory` finds guests' processes, and
    `process_started` tells when one began. `links`: other ones than those of the data plane.
    `boot`: another one than that of this machine's kernel. `revocations`: those of the bus, told of the controller's.
    """
    marks = records(Path(conf.agent.state_dir) / "marks")
    context = AgentContext(
        conf=conf,
        controller=controller_link(controller, calls, conf.agent.controller_timeout_seconds),
        pools=pools or load_drivers(conf),
        epoch=EpochGuard(marks),
        sequence=Sequence(marks),
        executor=executor,
        clock=clock,
        open_records=records,
        revocations=revocations or Revocations(),
        boot=boot or BOOT_ID.read_text().strip(),
    )
    pool = build_pool(context)
    tiering = tiering or Tiering.from_conf(conf, context.records("tiering"))
    nodes = HostNodes()
    room = build_room(context, nodes)
    lending, borrower, remote_memory = _lent_memory(
        replace(context, executor=remote or executor),
        lambda: room.reserved_mib + growth_mib(),
        meminfo,
        pages,
        links,
        lambda lent: build_remote(lent, data_plane, find_memory, process_started, links),
    )
    switch = TieringSwitch(tiering, context.pools, context.records("tiering-order"))
    reported = remote_memory.reported if remote_memory else None
    reporter = _reporter(context, pool, tiering, switch, lending, borrower, reported)
    moving = replace(context, executor=mitigating or executor)
    mitigations = build_mitigations(moving, nodes, room, step)
    misplaced = build_misplaced(moving, nodes, mitigations.on_record, pool.consumers)
    housekeeper = build_housekeeper(context, pool, mitigations, misplaced)
    endpoint = _endpoint(context, pool, reporter, housekeeper)
    endpoints = (
        endpoint,
        LendingEndpoint(lending, context.epoch),
        BorrowerEndpoint(borrower, context.epoch, remote_memory.views if remote_memory else None),
        RemoteEndpoint(remote_memory),
        ExtensionEndpoint(remote_memory),
        MoveEndpoint(remote_memory.moves if remote_memory else None, Askers(context.host, context.controller)),
        SwapEndpoint(remote_memory, context.epoch),
        HostSlicesEndpoint(context.host, pool, context.pools, context.epoch, switch),
        MitigationEndpoint(
            mitigations,
            build_domains(context, nodes, step),
            context.epoch,
            pool.consumers,
            housekeeper.release_unused,
        ),
        RevocationsEndpoint(context.revocations),
        PowerEndpoint.from_context(context),
    )
    played = partial(played_guests, pool.operations, context.pools)
    served = remote_memory.touched_bytes if remote_memory else unserved
    views = remote_memory.views if remote_memory else list
    return Agent(
        endpoint, endpoints, housekeeper, reporter, tiering, lending, borrower, remote_memory, played, served, views
    )


def _reporter(
    context: AgentContext,
    pool: PoolMemory,
    tiering: Tiering,
    switch: TieringSwitch,
    lending: Lending | None,
    borrower: Borrower | None,
    remote: Callable[[], dict[str, Any]] | None,
) -> Reporter:
    return Reporter(
        host=context.host,
        pools=context.pools,
        releases=pool.releases,
        epoch=context.epoch,
        sequence=context.sequence,
        controller=context.controller,
        tiering=tiering,
        switch=switch,
        lending=lending,
        borrower=borrower,
        remote=remote,
        note_revoked=KeptRevocations(context.records("revocations"), context.revocations).note,
    )


def _endpoint(context: AgentContext, pool: PoolMemory, reporter: Reporter, housekeeper: Housekeeper) -> AgentEndpoint:
    return AgentEndpoint(
        host=context.host,
        operations=pool.operations,
        releases=pool.releases,
        attach_flow=pool.attach_flow,
        reporter=reporter,
        pools=context.pools,
        epoch=context.epoch,
        housekeeper=housekeeper,
        askers=Askers(context.host, context.controller),
        arrivals=Arrivals(
            context.host,
            unattached,
            lambda guest: bool(context.pools.held_by(guest)),
            context.conf.data_plane.arrival_seconds,
        ),
        consumers=pool.consumers,
        allocations=pool.allocations,
    )


def _lent_memory(
    context: AgentContext,
    kept_mib: Callable[[], int],
    meminfo: Room,
    pages: Pages | None,
    links: Links | None,
    remote: Callable[[AgentContext], tuple[Borrower, RemoteMemory]],
) -> tuple[Lending | None, Borrower | None, RemoteMemory | None]:
    """Return the lender side, the borrower side, and who uses what is borrowed; None where there is none."""
    if not context.conf.lending.transport:
        return None, None, None
    lending = build_lending(context, HostRoom.from_conf(context.conf, kept_mib, meminfo))
    if pages is not None:
        return lending, build_borrower(context, pages, links), None
    return lending, *remote(context)
