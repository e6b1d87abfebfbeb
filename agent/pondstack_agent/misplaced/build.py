"""Puts the moving back of misplaced pages together."""

from collections.abc import Callable

from pondstack_agent.context import AgentContext
from pondstack_agent.locks import NamedLocks
from pondstack_agent.misplaced.pages import MisplacedPages
from pondstack_agent.mitigation.mover import Mover
from pondstack_agent.mitigation.room import HostNodes


def build_misplaced(
    context: AgentContext, nodes: HostNodes, mitigated: Callable[[str], bool], consumers: NamedLocks
) -> MisplacedPages:
    """Return it, in chunks of the same size as a mitigation's."""
    return MisplacedPages(
        pools=context.pools,
        nodes=nodes,
        mover=Mover(nodes, context.conf.agent.mitigation_chunk_mib),
        mitigated=mitigated,
        consumers=consumers,
        executor=context.executor,
        clock=context.clock,
    )
