"""Puts the borrower side together from the agent's configuration."""

from collections.abc import Callable
from pathlib import Path

from oslo_config import cfg

from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.borrower.pages import Pages
from pondstack_agent.borrower.records import Store
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.executor import Executor
from pondstack_agent.records import Records
from pondstack_rdma.transports import load_transport, options_of


def build_borrower(
    conf: cfg.ConfigOpts,
    controller: ControllerAPI,
    epoch: EpochGuard,
    executor: Executor,
    records: Callable[[Path], Records],
    clock: Callable[[], float],
    pages: Pages,
) -> Borrower:
    """Return the borrower side over the state folder; connects nowhere."""
    # Loaded for the name of its driver; options that it does not take stop the agent here, not a page store later.
    transport = load_transport(conf.lending.transport, options_of(conf.lending))
    return Borrower(
        host=conf.host,
        driver=transport.characteristics.driver,
        store=Store(records(Path(conf.agent.state_dir) / "borrowing"), clock),
        pages=pages,
        controller=controller,
        epoch=epoch,
        executor=executor,
    )
