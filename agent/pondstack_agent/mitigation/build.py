"""Puts mitigations together from the agent's configuration."""

from collections.abc import Callable

from pondstack_agent.context import AgentContext
from pondstack_agent.mitigation import libvirt_domains
from pondstack_agent.mitigation.domains import Domains
from pondstack_agent.mitigation.mitigations import Mitigations
from pondstack_agent.mitigation.mover import Mover
from pondstack_agent.mitigation.records import Entries
from pondstack_agent.mitigation.room import HostNodes, LocalRoom


def build_room(context: AgentContext, nodes: HostNodes) -> LocalRoom:
    """Return the local memory that mitigations may take."""
    return LocalRoom(nodes.free_mib, context.conf.agent.mitigation_headroom_mib)


def build_mitigations(
    context: AgentContext, nodes: HostNodes, room: LocalRoom, step: Callable[[str], None]
) -> Mitigations:
    """Return the mitigations over the state folder; `step` is told before each of their changes."""
    return Mitigations(
        entries=Entries(context.records("mitigations"), context.clock),
        pools=context.pools,
        nodes=nodes,
        room=room,
        mover=Mover(nodes, context.conf.agent.mitigation_chunk_mib, step),
        executor=context.executor,
        step=step,
    )


def build_domains(context: AgentContext, nodes: HostNodes, step: Callable[[str], None]) -> Domains:
    """Return what libvirt keeps of this host's guests; `step` is told before each change of it."""
    if libvirt_domains.context.elsewhere:
        return libvirt_domains.PrivilegedDomains(context.conf.agent.libvirt_uri)
    return Domains(context.conf.agent.libvirt_uri, nodes.with_cpus, step)
