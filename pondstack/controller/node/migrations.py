"""Whether Nova moves a server from one host to another, as far as ledger and Placement say; any controller can tell.

Nova claims the destination for the server before it calls the destination's nova-compute, and has its claim at the
source be the migration's until it ends (nova.conductor.tasks). So a server that has slices on one host, or has
borrowed there, by the ledger, and claims another by Placement, moves there.
"""

from collections.abc import Container

from pondstack.clients.placement import Placement
from pondstack.ledger.reader import Reader


class Migrations:
    """Looks migrations up; thread-safe. `placement` None: nobody claims anything, and the ledger alone decides."""

    def __init__(self, reader: Reader, placement: Placement | None) -> None:
        self._reader, self._placement = reader, placement

    def confirm(self, consumer_uuid: str, source: str, destination: str) -> bool:
        """Return whether a server moves; raises Unavailable while Placement or the database does not answer."""
        hosts = {item.host for item in self._reader.allocations(consumer_uuid=consumer_uuid)}
        hosts |= self._reader.borrowing_hosts(consumer_uuid)
        if self._placement is None:
            return migrates(hosts, source, {destination}, destination)
        provider = self._placement.provider_by_name(destination) if source in hosts else None
        if provider is None:
            return False
        return migrates(hosts, source, self._placement.held_by(consumer_uuid), provider)


def migrates(hosts: Container[str], source: str, claimed: Container[str], destination: str) -> bool:
    """Return whether a server moves, which holds slices on `hosts` and claims memory of the providers `claimed`."""
    return source in hosts and destination in claimed
