"""Puts the lender side together from the agent's configuration."""

from collections.abc import Callable
from pathlib import Path

from oslo_config import cfg

from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.executor import Executor
from pondstack_agent.lending.client import Command, LenderClient
from pondstack_agent.lending.lend_operation import Lends
from pondstack_agent.lending.lending import Lending
from pondstack_agent.lending.lending_report import LendingReport
from pondstack_agent.lending.reclaim_operation import Reclaims
from pondstack_agent.lending.records import Entries
from pondstack_agent.lending.room import HostRoom
from pondstack_agent.records import Records
from pondstack_agent.sequence import Sequence
from pondstack_rdma.transports import options_of


def build_lending(
    conf: cfg.ConfigOpts,
    controller: ControllerAPI,
    epoch: EpochGuard,
    executor: Executor,
    records: Callable[[Path], Records],
    clock: Callable[[], float],
    room: HostRoom,
    sequence: Sequence,
) -> Lending:
    """Return the lender side over the state folder; starts no process."""
    folder, own = Path(conf.agent.state_dir), conf.lending
    command = Command(conf.host, own.transport, options_of(own), own.buffer_mib, own.launcher)
    lender = folder / "lender"
    lender.mkdir(parents=True, exist_ok=True, mode=0o700)
    client = LenderClient(lender, command, own.lender_timeout_seconds)
    entries = Entries(records(folder / "lending"), clock)
    telling = LendingReport(conf.host, records(folder / "marks"), controller, sequence)
    return Lending(
        client=client,
        room=room,
        entries=entries,
        telling=telling,
        lends=Lends(client, room, entries, telling),
        reclaims=Reclaims(conf.host, client, entries, telling, controller),
        epoch=epoch,
        executor=executor,
        reclaim_seconds=own.reclaim_seconds,
    )
