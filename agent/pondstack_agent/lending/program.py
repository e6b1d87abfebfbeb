"""The lender's process as a helper of the agent."""

from pondstack_agent.helper.program import Program

LENDER = Program(
    name="pondstack-lender",
    title="lender",
    module="pondstack_agent.lending.process",
    options="lending",
    lock="lender.lock",
    socket="lender.sock",
    log="lender.log",
)
