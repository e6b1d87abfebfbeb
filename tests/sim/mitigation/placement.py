"""Placement of a history: capacities, claims with generations, and what must hold of a mitigation's changes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pondstack.domain.admission import MEMORY_CLASS
from pondstack.domain.errors import Unavailable
from pondstack.domain.units import RESOURCE_CLASS

from ..invariants import Violation

if TYPE_CHECKING:
    from .servers import Guest
    from .world import World

Held = dict[str, dict[str, int]]
POOL = "pool"
TRIES = 4


@dataclass(slots=True)
class Claim:
    """What a consumer holds."""

    held: Held
    generation: int = 0


class SimPlacement:
    """As pondstack.clients.placement.Placement, as far as mitigations call it, and Nova's changes."""

    def __init__(self, world: "World", host_mib: int, pool_mib: int) -> None:
        self._world = world
        self._capacity = {**{host: (MEMORY_CLASS, host_mib) for host in world.hosts}, POOL: (RESOURCE_CLASS, pool_mib)}
        self.claims: dict[str, Claim] = {}

    def held_by(self, consumer: str) -> Held:
        """Return what a consumer holds."""
        self._world.before("placement")
        found = self.claims.get(consumer)
        answer = {} if found is None else {uuid: dict(amounts) for uuid, amounts in found.held.items()}
        self._world.after("placement")
        return answer

    def resize_claim(
        self,
        consumer: str,
        change: Callable[[Held], Mapping[str, Mapping[str, int]]],
        *,
        still: Callable[[], object] = lambda: None,
        force: bool = False,
    ) -> bool:
        """Change a claim on condition of its generation."""
        for _ in range(TRIES):
            self._world.before("placement")
            found = self.claims.get(consumer)
            held = {} if found is None else {uuid: dict(amounts) for uuid, amounts in found.held.items()}
            generation = None if found is None else found.generation
            wanted = {uuid: dict(amounts) for uuid, amounts in change(held).items()}
            if wanted == held and not force:
                return True
            still()
            self._world.before("placement")
            found = self.claims.get(consumer)
            if (None if found is None else found.generation) != generation:
                self._world.count("claim changed meanwhile")
                continue
            self._check(consumer, held, wanted)
            if not self._put(consumer, wanted):
                self._world.count("no room by Placement")
                return False
            self._world.after("placement")
            return True
        raise Unavailable("somebody else keeps changing the claim")

    def _check(self, consumer: str, held: Held, wanted: Held) -> None:
        guest = self._world.nova.guests[consumer]
        if guest.looked_busy:
            raise Violation("while_busy", f"the claim of {consumer} is changed while Nova works on it")
        holds = self._world.agents[guest.host].holds(consumer)
        if POOL in held and POOL not in wanted and holds:
            raise Violation("unclaimed_too_soon", f"{consumer} has slices and no claim of them any more")

    def place(self, consumer: str, held: Held) -> bool:
        """Claim for a new server."""
        return self._put(consumer, held)

    def _put(self, consumer: str, wanted: Held) -> bool:
        for uuid, amounts in wanted.items():
            name, capacity = self._capacity[uuid]
            others = sum(item.held.get(uuid, {}).get(name, 0) for key, item in self.claims.items() if key != consumer)
            if others + amounts.get(name, 0) > capacity:
                return False
        before = self.claims.get(consumer)
        self.claims[consumer] = Claim(wanted, 0 if before is None else before.generation + 1)
        return True

    def move(self, guest: "Guest", target: str, pool_mib: int) -> bool:
        """Put a server's claim aside for its migration, and claim for it on another host."""
        aside = self.claims.pop(guest.uuid)
        self.claims[f"move-{guest.uuid}"] = aside
        wanted = {target: {MEMORY_CLASS: guest.guest_mib - pool_mib}}
        if pool_mib:
            wanted[POOL] = {RESOURCE_CLASS: pool_mib}
        if self._put(guest.uuid, wanted):
            self.claims[guest.uuid].generation = aside.generation + 1
            return True
        self.put_back(guest)
        return False

    def put_back(self, guest: "Guest") -> None:
        """Undo a move."""
        aside = self.claims.pop(f"move-{guest.uuid}")
        self.claims[guest.uuid] = Claim(aside.held, aside.generation + 2)

    def forget_move(self, guest: "Guest") -> None:
        """End a move."""
        del self.claims[f"move-{guest.uuid}"]
