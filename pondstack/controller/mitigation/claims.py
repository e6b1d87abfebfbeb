"""What a guest's claim in Placement becomes while it is mitigated. Pure; claims are {provider: {class: MiB}}.

What is remote of a guest stays so: it is a part of the guest's first node, as its local memory is, and that node's
mirror grows with it where the next start makes the guest all of that node.

Between the first change and the last one MEMORY_MB covers all of the guest, and the pool share is claimed besides: its
memory is paid for twice rather than not at all, and whatever starts the guest anew makes it all local.
"""

from collections.abc import Mapping

from pondstack.domain.admission import MEMORY_CLASS
from pondstack.domain.errors import Conflict
from pondstack.domain.lending import REMOTE_CLASS
from pondstack.domain.remote_share import MIRROR_CLASS
from pondstack.domain.units import RESOURCE_CLASS

Held = Mapping[str, Mapping[str, int]]


def covers_all(held: Held, guest_mib: int) -> bool:
    """Tell whether a claim has all of a guest's memory as local memory of one host, but for what is remote."""
    amounts = [amount[MEMORY_CLASS] for amount in held.values() if amount.get(MEMORY_CLASS)]
    return len(amounts) == 1 and amounts[0] + _remote_mib(held) >= guest_mib


def with_local(held: Held, local_mib: int) -> Held:
    """Return the claim with so much memory that is no pool memory, and the same pool share. Raises Conflict."""
    host, remote_mib = _host(held), _remote_mib(held)
    # The mirror has the whole first node, and the swap disk beside it, if the guest has one.
    disk_mib = held[host].get(MIRROR_CLASS, 0) - held[host][MEMORY_CLASS] - remote_mib
    mirror = {MIRROR_CLASS: local_mib + max(0, disk_mib)} if remote_mib else {}
    return {**held, host: {**held[host], MEMORY_CLASS: local_mib - remote_mib, **mirror}}


def without_pool(held: Held, guest_mib: int) -> Held:
    """Return the claim with all of a guest's memory but the remote one local, and no pool share. Raises Conflict."""
    wider = with_local(held, max(guest_mib, held[_host(held)][MEMORY_CLASS] + _remote_mib(held)))
    kept = {
        uuid: {name: amount for name, amount in amounts.items() if name != RESOURCE_CLASS}
        for uuid, amounts in wider.items()
    }
    return {uuid: amounts for uuid, amounts in kept.items() if amounts}


def _remote_mib(held: Held) -> int:
    return sum(amounts.get(REMOTE_CLASS, 0) for amounts in held.values())


def _host(held: Held) -> str:
    hosts = [uuid for uuid, amounts in held.items() if amounts.get(MEMORY_CLASS)]
    if len(hosts) != 1:
        raise Conflict(f"the server claims memory of {len(hosts)} hosts in Placement: Nova starts, moves or deletes it")
    return hosts[0]
