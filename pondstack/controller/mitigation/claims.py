"""What a guest's claim in Placement becomes while it is mitigated. Pure; claims are {provider: {class: MiB}}.

Between the first change and the last one MEMORY_MB covers all of the guest, and the pool share is claimed besides: its
memory is paid for twice rather than not at all, and whatever starts the guest anew makes it all local.
"""

from collections.abc import Mapping

from pondstack.domain.admission import MEMORY_CLASS
from pondstack.domain.errors import Conflict
from pondstack.domain.units import RESOURCE_CLASS

Held = Mapping[str, Mapping[str, int]]


def covers_all(held: Held, guest_mib: int) -> bool:
    """Tell whether a claim has all of a guest's memory as local memory of one host."""
    amounts = [amount[MEMORY_CLASS] for amount in held.values() if amount.get(MEMORY_CLASS)]
    return len(amounts) == 1 and amounts[0] >= guest_mib


def with_local(held: Held, local_mib: int) -> Held:
    """Return the claim with so much local memory, and the same pool share. Raises Conflict."""
    host = _host(held)
    return {**held, host: {**held[host], MEMORY_CLASS: local_mib}}


def without_pool(held: Held, guest_mib: int) -> Held:
    """Return the claim with all of a guest's memory local, and no pool share. Raises Conflict."""
    wider = with_local(held, max(guest_mib, held[_host(held)][MEMORY_CLASS]))
    kept = {
        uuid: {name: amount for name, amount in amounts.items() if name != RESOURCE_CLASS}
        for uuid, amounts in wider.items()
    }
    return {uuid: amounts for uuid, amounts in kept.items() if amounts}


def _host(held: Held) -> str:
    hosts = [uuid for uuid, amounts in held.items() if amounts.get(MEMORY_CLASS)]
    if len(hosts) != 1:
        raise Conflict(f"the server claims memory of {len(hosts)} hosts in Placement: Nova starts, moves or deletes it")
    return hosts[0]
