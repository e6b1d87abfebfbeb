"""Puts the borrower side together from the agent's configuration."""

from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.borrower.links import Links
from pondstack_agent.borrower.pages import Pages
from pondstack_agent.borrower.records import Store
from pondstack_agent.context import AgentContext
from pondstack_rdma.transports import load_transport, options_of


def build_borrower(context: AgentContext, pages: Pages, links: Links | None = None) -> Borrower:
    """Return the borrower side over the state folder; connects nowhere."""
    # Loaded for the name of its driver; options that it does not take stop the agent here.
    transport = load_transport(context.conf.lending.transport, options_of(context.conf.lending))
    return Borrower(
        host=context.host,
        driver=transport.characteristics.driver,
        store=Store(context.records("borrowing"), context.clock),
        pages=pages,
        controller=context.controller,
        executor=context.executor,
        links=links,
    )
