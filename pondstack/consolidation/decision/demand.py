"""What a server needs of the host that it moves to. Pure."""

import math
from dataclasses import dataclass

from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import VmView


@dataclass(frozen=True, slots=True)
class Demand:
    """A server with what has to be free for it: CPUs, memory of the host itself in MiB, and its claim in Placement.

    `whole`: its working set is unknown or too old, so all of its local memory counts.
    """

    server: VmView
    cpus: float
    mib: int
    claim: tuple[tuple[str, int], ...]
    whole: bool


def demand_of(server: VmView, settings: Settings) -> Demand:
    """Return what a server needs, whose CPU load is known.

    Zombieland, section 5.2: of a server whose cold memory can be elsewhere, 30 % of its working set has to fit
    locally. One without a pager has all of its local memory with it.
    """
    assert server.used_cpus is not None
    mib, whole = server.local_mib, False
    if server.extendable:
        found = server.working_set_mib
        whole = found is None or found.age_seconds > settings.working_set_seconds
        if found is not None and not whole:
            mib = min(mib, math.ceil(found.value * settings.working_set_percent / 100.0))
    return Demand(server, server.used_cpus.value, mib, tuple(sorted(server.claim.items())), whole)
