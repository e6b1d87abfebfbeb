"""The process of a page store as a helper of the agent."""

from pondstack_agent.helper.program import Program

PAGE_STORE = Program(
    name="pondstack-page-store",
    title="page store",
    module="pondstack_agent.pagestore.process",
    options="page_store",
    lock="store.lock",
    socket="store.sock",
    log="store.log",
)
