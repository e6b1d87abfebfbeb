"""Puts the borrower side together from the agent's configuration."""

import time
from collections.abc import Callable
from pathlib import Path

from oslo_config import cfg

from pondstack.domain.errors import BadRequest
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.borrowing.borrowing import Borrowing
from pondstack_agent.borrowing.link import LenderLink
from pondstack_agent.borrowing.pages import Pages
from pondstack_agent.borrowing.records import Store
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.executor import Executor
from pondstack_agent.records import Records
from pondstack_agent.transports import options_of
from pondstack_rdma.model import Ticket
from pondstack_rdma.transports import load_transport


def build_borrowing(
    conf: cfg.ConfigOpts,
    controller: ControllerAPI,
    epoch: EpochGuard,
    executor: Executor,
    records: Callable[[Path], Records],
    clock: Callable[[], float],
    pages: Pages,
) -> Borrowing:
    """Return the borrower side over the state folder; connects nowhere."""
    own = conf.lending
    transport = load_transport(own.transport, options_of(conf))

    def make_link(lender: str, incarnation: str, ticket: Ticket) -> LenderLink:
        driver = transport.characteristics.driver
        if ticket.driver != driver:
            raise BadRequest(
                f"lender {lender} speaks {ticket.driver} and this host {driver}: set the same [lending] transport in "
                "all of a rack"
            )
        seconds, longest = own.access_timeout_seconds, own.reconnect_seconds
        return LenderLink(lender, incarnation, ticket, transport, seconds, longest, time.monotonic)

    return Borrowing(
        host=conf.host,
        store=Store(records(Path(conf.agent.state_dir) / "borrowing"), clock),
        make_link=make_link,
        pages=pages,
        controller=controller,
        epoch=epoch,
        executor=executor,
    )
