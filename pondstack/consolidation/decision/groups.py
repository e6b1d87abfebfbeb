"""Server groups while a plan is made: Nova refuses a migration that would break one. Pure."""

from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass

from pondstack.consolidation.decision.snapshot import Snapshot, VmView


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """All hosts, or those of `base`, but `taken`."""

    base: Container[str] | None
    taken: frozenset[str]

    def __contains__(self, name: object) -> bool:
        return name not in self.taken and (self.base is None or name in self.base)


class Groups:
    """Where the members of server groups are, and will be: until a migration has ended both hosts count."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._groups, self._candidates = snapshot.groups, snapshot.candidates
        self._places: dict[str, list[str]] = defaultdict(list)
        for server in snapshot.servers:
            if server.uuid in self._groups:
                self._places[server.uuid].append(server.host)

    def fixed(self, server: VmView) -> str:
        """Return why a server stays, "": it may be moved."""
        group = self._groups.get(server.uuid)
        if not server.fixed and group is not None and group.together and len(self._others(server)) > 0:
            return f"it stays with the others of server group {group.uuid} (affinity)"
        return server.fixed

    def allowed(self, server: VmView) -> Container[str] | None:
        """Return the hosts that may take a server, None: all."""
        base, group = self._candidates.get(server.uuid), self._groups.get(server.uuid)
        if group is None or group.together:
            return base
        return Elsewhere(base, frozenset(self._others(server)))

    def _others(self, server: VmView) -> list[str]:
        members = self._groups[server.uuid].members - {server.uuid}
        return [host for member in members for host in self._places.get(member, ())]

    def move(self, server: VmView, host: str) -> None:
        """Have a server be on one more host."""
        if server.uuid in self._groups:
            self._places[server.uuid].append(host)

    def undo(self, server: VmView, host: str) -> None:
        """Have it not be there after all."""
        if server.uuid in self._groups:
            self._places[server.uuid].remove(host)
