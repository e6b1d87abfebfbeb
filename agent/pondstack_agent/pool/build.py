"""Puts together what an agent does with pool memory."""

from dataclasses import dataclass

from pondstack_agent.context import AgentContext
from pondstack_agent.locks import NamedLocks
from pondstack_agent.misplaced.pages import MisplacedPages
from pondstack_agent.mitigation.mitigations import Mitigations
from pondstack_agent.pool.attach import AttachFlow
from pondstack_agent.pool.housekeeper import Housekeeper
from pondstack_agent.pool.operations import Operations
from pondstack_agent.pool.releases import Releases


@dataclass(frozen=True)
class PoolMemory:
    """The parts that others share. `consumers`: locks by consumer; `allocations`: by allocation."""

    operations: Operations
    releases: Releases
    attach_flow: AttachFlow
    consumers: NamedLocks
    allocations: NamedLocks


def build_pool(context: AgentContext) -> PoolMemory:
    """Return the operations on pool memory over the state folder."""
    consumers, allocations = NamedLocks(), NamedLocks()
    operations = Operations(context.records("operations"), context.clock)
    releases = Releases(
        host=context.host,
        records=context.records("releases"),
        pools=context.pools,
        controller=context.controller,
        executor=context.executor,
        clock=context.clock,
        boot=context.boot,
    )
    attach_flow = AttachFlow(
        host=context.host,
        operations=operations,
        releases=releases,
        pools=context.pools,
        controller=context.controller,
        epoch=context.epoch,
        sequence=context.sequence,
        locks=allocations,
    )
    return PoolMemory(operations, releases, attach_flow, consumers, allocations)


def build_housekeeper(
    context: AgentContext, pool: PoolMemory, mitigations: Mitigations, misplaced: MisplacedPages
) -> Housekeeper:
    """Return what is done with pool memory when no request waits for it."""
    return Housekeeper(
        operations=pool.operations,
        releases=pool.releases,
        attach_flow=pool.attach_flow,
        pools=context.pools,
        executor=context.executor,
        mitigations=mitigations,
        misplaced=misplaced,
        locks=pool.consumers,
    )
