"""Puts the lender side together from the agent's configuration."""

from pathlib import Path

from pondstack_agent.context import AgentContext
from pondstack_agent.lending.client import Command, LenderClient
from pondstack_agent.lending.lend_operation import Lends
from pondstack_agent.lending.lending import Lending
from pondstack_agent.lending.lending_report import LendingReport
from pondstack_agent.lending.reclaim_operation import Reclaims
from pondstack_agent.lending.records import Entries
from pondstack_agent.lending.room import HostRoom
from pondstack_rdma.transports import options_of


def build_lending(context: AgentContext, room: HostRoom) -> Lending:
    """Return the lender side over the state folder; starts no process."""
    conf, own = context.conf, context.conf.lending
    command = Command(context.host, own.transport, options_of(own), own.buffer_mib, own.launcher)
    lender = Path(conf.agent.state_dir) / "lender"
    lender.mkdir(parents=True, exist_ok=True, mode=0o700)
    client = LenderClient(lender, command, own.lender_timeout_seconds)
    entries = Entries(context.records("lending"), context.clock)
    telling = LendingReport(context.host, context.records("marks"), context.controller, context.sequence)
    return Lending(
        client=client,
        room=room,
        entries=entries,
        telling=telling,
        lends=Lends(client, room, entries, telling),
        reclaims=Reclaims(context.host, client, entries, telling, context.controller),
        executor=context.executor,
        reclaim_seconds=own.reclaim_seconds,
    )
