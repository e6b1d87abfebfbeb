"""Puts remote memory together from the agent's configuration."""

from collections.abc import Callable
from pathlib import Path

from oslo_config import cfg

from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.borrower.records import Store
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.executor import Executor
from pondstack_agent.records import Records
from pondstack_agent.remote.borrow_requests import BorrowRequests
from pondstack_agent.remote.records import Consumers
from pondstack_agent.remote.remote import RemoteMemory
from pondstack_agent.remote.stores import PageStores, StoreTemplate
from pondstack_rdma.transports import options_of


def build_consumers(conf: cfg.ConfigOpts, records: Callable[[Path], Records], clock: Callable[[], float]) -> Consumers:
    """Return who borrows, over the state folder."""
    return Consumers(records(Path(conf.agent.state_dir) / "remote"), clock)


def build_stores(
    conf: cfg.ConfigOpts, consumers: Consumers, records: Callable[[Path], Records], clock: Callable[[], float]
) -> PageStores:
    """Return the page stores over the state folder; starts none."""
    own, folder = conf.page_store, Path(conf.agent.state_dir)
    making = StoreTemplate(
        folder=folder / "pages",
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
    return PageStores(making, consumers, Store(records(folder / "borrowing"), clock))


def build_remote(
    conf: cfg.ConfigOpts,
    consumers: Consumers,
    stores: PageStores,
    controller: ControllerAPI,
    borrower: Borrower,
    epoch: EpochGuard,
    executor: Executor,
) -> RemoteMemory:
    """Return the remote-memory manager."""
    own = conf.page_store
    return RemoteMemory(
        consumers=consumers,
        stores=stores,
        asking=BorrowRequests(conf.host, consumers, controller, borrower, epoch),
        borrower=borrower,
        executor=executor,
        mirror_folder=Path(own.mirror_folder),
        mirror_mib=own.mirror_mib,
        buffer_mib=conf.lending.buffer_mib,
        grow_seconds=own.grow_seconds,
    )
