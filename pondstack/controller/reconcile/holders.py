"""Under whose UUID Placement holds the claim of each allocation. Pure; part of the reconciler's observation.

While Nova moves an instance, its claim at the source is the migration's, and the instance's own is at the destination.
Placement does not say which migration is of which instance, so the migration is known by what it holds: exactly the
memory of the allocation, of its pool and of its host, for a consumer that has no slices of its own.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from pondstack.domain.model import Allocation
from pondstack.domain.purpose import Purpose
from pondstack.domain.rack import AgedAllocation


@dataclass(frozen=True, slots=True)
class Claims:
    """What Placement holds, in MiB. `pools`: by pool and consumer; `hosts`: local memory by host and consumer.

    `remote`: lent memory by consumer; None: nobody looked, or Placement does not have that provider. `mirrors`: room
    for mirrors by host and consumer, of hosts that Placement has.
    """

    pools: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    hosts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    remote: Mapping[str, int] | None = None
    mirrors: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def of_consumer(self, item: Allocation) -> bool:
        """Whether an allocation's consumer claims memory of its pool, and, unless it is a host's, of its host."""
        here = item.purpose is not Purpose.GUEST or item.consumer_uuid in self.hosts.get(item.host, {})
        return here and self.pools.get(item.pool_uuid, {}).get(item.consumer_uuid, 0) > 0

    def claimed_remote_mib(self, host: str, consumer_uuid: str) -> int:
        """Return what a consumer claims of lent memory from a host, in MiB; 0 when it claims nothing on that host."""
        return (self.remote or {}).get(consumer_uuid, 0) if consumer_uuid in self.hosts.get(host, {}) else 0

    def moves_remote(self, host: str, least_mib: int, borrowers: Container[str]) -> bool:
        """Whether somebody who has borrowed nothing claims at least so much lent memory from a host: a migration.

        While Nova moves an instance that has borrowed it, the claim at the source is the migration's. It is for less
        than was lent, which is whole buffers, or for more: a lender may have been lost.
        """
        here = self.hosts.get(host, {})
        claimed = (self.remote or {}).items()
        return any(held >= least_mib and consumer in here and consumer not in borrowers for consumer, held in claimed)

    def holds_disk(self, host: str, consumer_uuid: str, mib: int, known: Container[str]) -> bool:
        """Whether somebody claims the mirror of a swap disk from a host: its instance, or a migration which moves that.

        A migration is known by what it holds: at least so much, for a consumer that is not `known` to have anything on
        the host. True where nobody could look.
        """
        if host not in self.mirrors:
            return True
        held = {consumer: has for consumer, has in self.mirrors[host].items() if has > 0}
        return consumer_uuid in held or any(has >= mib and other not in known for other, has in held.items())

    def elsewhere(self, item: Allocation) -> bool:
        """Whether an allocation's consumer claims pool memory, but not of this host: it is being moved, or was."""
        here = item.purpose is not Purpose.GUEST or item.consumer_uuid in self.hosts.get(item.host, {})
        return not here and any(held.get(item.consumer_uuid) for held in self.pools.values())

    def gone_from_host(self, item: Allocation) -> bool:
        """Whether an allocation's consumer claims no memory of its host any more.

        Where else it claims some is not asked: hosts without slices are not read.
        """
        return item.consumer_uuid not in self.hosts.get(item.host, {item.consumer_uuid: 0})

    def like(self, item: Allocation, mitigated: bool = False) -> Iterable[str]:
        """Yield the consumers that hold exactly an allocation's guest memory, of its host and of its pool.

        `mitigated`: all of its guest's memory is claimed of its host, and the pool share besides.
        """
        local_mib, here = item.guest_mib - (0 if mitigated else item.pool_mib), self.hosts.get(item.host, {})
        for consumer, mib in self.pools.get(item.pool_uuid, {}).items():
            if mib == item.pool_mib and consumer in here and here[consumer] + self._remote_mib(consumer) == local_mib:
                yield consumer

    def _remote_mib(self, consumer: str) -> int:
        """Return what is remote of the memory that is no pool memory."""
        return (self.remote or {}).get(consumer, 0)


def holders(
    allocations: Mapping[str, AgedAllocation], claims: Claims, mitigated: Container[str] = ()
) -> dict[str, str]:
    """Return the claiming consumer by allocation; one that nobody claims is missing.

    `mitigated`: consumers whose claim may be that of a mitigation, for all of their memory as local memory. Of several
    allocations on one host for one consumer only the newest is claimed.
    """
    newest: dict[tuple[str, str], Allocation] = {}
    for aged in sorted(allocations.values(), key=lambda aged: aged.age_seconds, reverse=True):
        newest[aged.item.consumer_uuid, aged.item.host] = aged.item
    mine = {item.uuid: item.consumer_uuid for item in newest.values() if claims.of_consumer(item)}
    known = {aged.item.consumer_uuid for aged in allocations.values()}
    taken: set[str] = set()
    for item in sorted(newest.values(), key=lambda item: item.uuid):
        if item.uuid in mine or not claims.elsewhere(item):
            continue
        like = {*claims.like(item), *(claims.like(item, True) if item.consumer_uuid in mitigated else ())}
        found = sorted(consumer for consumer in like if consumer not in known)
        if found:
            # Two moves of like instances from one host: which is whose does not matter, as long as both count.
            mine[item.uuid] = next((consumer for consumer in found if consumer not in taken), found[0])
            taken.add(mine[item.uuid])
    return mine
