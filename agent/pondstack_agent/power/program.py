"""The waker as a helper of the agent."""

from oslo_privsep import capabilities

from pondstack_agent.helper.program import Program

WAKER = Program(
    name="pondstack-waker",
    title="waker",
    module="pondstack_agent.power.process",
    options="power",
    lock="waker.lock",
    socket="waker.sock",
    log="waker.log",
    # To stop processes of other users.
    abilities=frozenset({capabilities.CAP_KILL}),
)
