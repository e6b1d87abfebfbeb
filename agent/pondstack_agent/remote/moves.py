"""Live migrations of guests with remote memory, as nova-compute of the destination has them prepared and ended.

expect (destination) -> hand_over (source) -> receive (destination) -> QEMU migrates; take_back (source) where it fails.
What was borrowed for the guest at either end is another matter: alloc_ext before, release_remote afterwards.
"""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pondstack.domain.errors import BadRequest, Conflict, NotFound
from pondstack_agent.data_plane.client import Origin
from pondstack_agent.locks import NamedLocks
from pondstack_agent.qemu.arrivals import Arrivals
from pondstack_agent.remote.handovers import Handovers
from pondstack_agent.remote.records import Consumer, Consumers, State
from pondstack_agent.remote.session_keys import SessionKeys


@dataclass(frozen=True, slots=True)
class _Expected:
    memory_mib: int
    local_mib: int
    origin: Origin


def former_mirror(mirror: Path, name: object) -> str:
    """Return where the source's mirror is on this host, by its name there; '' where hosts share no mirrors' folder.

    The data plane checks what it reads there: a file that only has the name does no harm.
    """
    if not isinstance(name, str) or not name or name.startswith(".") or "/" in name or "\0" in name:
        return ""
    found = mirror.with_name(name)
    try:
        return str(found) if found != mirror and found.is_file() else ""
    except OSError:  # nobody but the data plane may look there
        return ""


class Moves:
    """Of one agent. `locks`: a consumer's, those of RemoteMemory."""

    def __init__(
        self,
        host: str,
        consumers: Consumers,
        handovers: Handovers,
        locks: NamedLocks,
        use: Callable[[Consumer], object] = lambda _mine: None,
    ) -> None:
        """`use` has the data plane use what a guest has borrowed, as far as it can."""
        self._consumers, self._handovers, self._locks, self._use = consumers, handovers, locks, use
        self._keys = SessionKeys()
        self._expected: dict[str, _Expected] = {}
        self._arrivals = Arrivals(host, self._attach, self._is_wanted, handovers.limits.arrival_seconds)

    def expect(self, consumer_uuid: str) -> str:
        """Begin the move of a guest to this host, which has borrowed for it; returns a public key."""
        with self._locks.holding(consumer_uuid):
            self._borrowing(consumer_uuid)
            return self._keys.begin(consumer_uuid)

    def hand_over(self, consumer_uuid: str, public: str) -> dict[str, Any]:
        """Offer a guest of this host to who has a public key; see Handovers.offer.

        Answers {"host", "port", "public", "references"}, and "mirror": the name of its mirror's file.
        """
        with self._locks.holding(consumer_uuid):
            mine = self._borrowing(consumer_uuid, served=True)
            own = self._keys.begin(consumer_uuid)
            seen = self._handovers.offer(mine, self._keys.agree(consumer_uuid, public))
            self._keys.forget(consumer_uuid)
            where = {"host": self._handovers.limits.address, "port": seen.port, "public": own}
            mirror = {"mirror": Path(mine.mirror).name} if seen.publishes else {}
            return {**where, "references": seen.references, **mirror}

    def receive(
        self, consumer_uuid: str, memory_mib: int, local_mib: int, disk_mib: int, origin: dict[str, Any]
    ) -> None:
        """Wait for the guest's process from now on; `origin`: as hand_over answered. Raises BadRequest, Conflict."""
        with self._locks.holding(consumer_uuid):
            mine = self._borrowing(consumer_uuid)
            if not 0 < local_mib < memory_mib or not 0 <= memory_mib - local_mib - disk_mib <= mine.mib or disk_mib < 0:
                raise BadRequest(f"of {memory_mib} MiB, {local_mib} local and {disk_mib} on disk do not fit {mine.mib}")
            made = self._origin(mine, origin)
            self._expected[consumer_uuid] = _Expected(memory_mib, local_mib, made)
            self._arrivals.expect(consumer_uuid)

    def take_back(self, consumer_uuid: str) -> bool:
        """Have a guest that was offered go on here; False when it was not. See Handovers.take_back."""
        with self._locks.holding(consumer_uuid):
            mine = self._consumers.get(consumer_uuid)
            return mine is not None and self._handovers.take_back(mine)

    def _borrowing(self, consumer_uuid: str, *, served: bool = False) -> Consumer:
        mine = self._consumers.get(consumer_uuid)
        if mine is None or not mine.guaranteed or mine.state != State.ACTIVE:
            raise NotFound(f"instance {consumer_uuid} has borrowed no memory on this host; call alloc_ext first")
        if not served and mine.extension is not None:
            raise Conflict(f"guest {consumer_uuid} has a process that is served here; it cannot come again")
        return mine

    def _origin(self, mine: Consumer, told: dict[str, Any]) -> Origin:
        consumer_uuid = mine.consumer_uuid
        host, port, public = told.get("host"), told.get("port"), told.get("public")
        try:
            good = isinstance(port, int) and 0 < port < 65536 and bool(ipaddress.ip_address(str(host)))
        except ValueError:
            good = False
        if not good or not isinstance(public, str):
            raise BadRequest("origin: host (a numeric address), port and public are needed, as hand_over answered")
        key = self._keys.agree(consumer_uuid, public)
        self._keys.forget(consumer_uuid)
        silence_ms = int(self._handovers.limits.silence_seconds * 1000)
        references = told.get("references") is True
        mirror = former_mirror(Path(mine.mirror), told.get("mirror"))
        return Origin(str(host), int(str(port)), key, silence_ms, references, mirror)

    def _is_wanted(self, consumer_uuid: str) -> bool:
        mine = self._consumers.get(consumer_uuid)
        return mine is not None and mine.state == State.ACTIVE and consumer_uuid in self._expected

    def _attach(self, consumer_uuid: str, pid: int) -> None:
        with self._locks.holding(consumer_uuid):
            mine = self._borrowing(consumer_uuid)
            expected = self._expected.pop(consumer_uuid, None)
            if expected is None:
                raise Conflict(f"guest {consumer_uuid} is not expected")
            mine = self._handovers.receive(mine, expected.memory_mib, expected.local_mib, expected.origin, pid)
            self._use(mine)  # before QEMU takes the guest in: what lenders have for it is read there
