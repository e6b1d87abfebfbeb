"""Puts remote memory together from the agent's configuration."""

from pathlib import Path

from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.borrower.build import build_borrower
from pondstack_agent.borrower.records import Store
from pondstack_agent.context import AgentContext
from pondstack_agent.remote.borrow_requests import BorrowRequests
from pondstack_agent.remote.records import Consumers
from pondstack_agent.remote.remote import RemoteMemory
from pondstack_agent.remote.stores import PageStores, StoreTemplate
from pondstack_rdma.transports import options_of


def build_remote(context: AgentContext) -> tuple[Borrower, RemoteMemory]:
    """Return the remote-memory manager, and the borrower side, whose buffers its page stores use; starts none."""
    own = context.conf.page_store
    consumers = Consumers(context.records("remote"), context.clock)
    stores = PageStores(_template(context), consumers, Store(context.records("borrowing"), context.clock))
    borrower = build_borrower(context, stores)
    remote = RemoteMemory(
        consumers=consumers,
        stores=stores,
        asking=BorrowRequests(context.host, consumers, context.controller, borrower),
        borrower=borrower,
        executor=context.executor,
        mirror_folder=Path(own.mirror_folder),
        mirror_mib=own.mirror_mib,
        buffer_mib=context.conf.lending.buffer_mib,
        grow_seconds=own.grow_seconds,
    )
    return borrower, remote


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
