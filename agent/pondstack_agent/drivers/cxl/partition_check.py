"""Pool memory is for guests that were given it: the partition is made before a slice comes online, and read back.

Pond (section 4.2) has "a special-purpose memory partition that is only available to the hypervisor", as host agents and
drivers on pool memory keep it from going offline.
"""

from collections.abc import Collection

from pondstack.domain.errors import DeviceFailed, HostUnusable
from pondstack_agent.drivers.cxl.preflight import Failure, failed
from pondstack_agent.partition import Gap, Partition
from pondstack_agent.partition.partition import Kind

_FAILURES = {
    Kind.SYSTEM: Failure.SYSTEM_ANYWHERE,
    Kind.DAEMON: Failure.DAEMON_ANYWHERE,
    Kind.GUEST: Failure.GUEST_ANYWHERE,
}


def ensure(partition: Partition, holders: Collection[str], *, make: bool) -> None:
    """Make the partition (`make`) and look whether it holds; raises HostUnusable with what does not.

    `holders`: the consumers that have pool memory of this host, or are about to get some.
    """
    trouble = ""
    if make:
        try:
            partition.make()
            partition.confine_guests(holders)
        except DeviceFailed as error:
            trouble = error.message
    gaps = partition.gaps(holders)
    if gaps:
        raise _refusal(gaps[0], partition.local(), trouble)


def _refusal(gap: Gap, local: str, trouble: str) -> HostUnusable:
    made = f" (the agent could not: {trouble})" if trouble else ""
    return failed(_FAILURES[gap.kind], name=gap.name, nodes=gap.nodes or "any", local=local, made=made)
