"""Hosts and servers while energy is reckoned: who is where, with what memory, who sleeps."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from pondstack.planner.energy.systems import Extends, System
from pondstack.planner.settings import Settings

CPU = "VCPU"
MEMORY = "MEMORY_MB"


@dataclass
class Guest:
    """A server. `cpu`, `used`: booked and busy vCPUs; `local_mib`: of its memory, what is on its host."""

    name: str
    cpu: float
    used: float
    mib: int
    working_set_mib: int
    idle: bool
    host: int = -1
    local_mib: int = 0

    @property
    def remote_mib(self) -> int:
        """Return what of its memory is elsewhere."""
        return self.mib - self.local_mib


@dataclass
class Host:
    """A host; `guests` by name."""

    number: int
    awake: bool = True
    cpu: float = 0.0
    used: float = 0.0
    local_mib: int = 0
    guests: dict[str, Guest] = field(default_factory=dict)


class Fleet:
    """All hosts, alike. Memory that is nowhere local is with sleeping hosts or memory servers, as the system has it."""

    def __init__(self, hosts: int, cpus: float, mib: int, system: System, settings: Settings) -> None:
        self.cpus, self.mib, self.system, self._settings = cpus, mib, system, settings
        self.hosts = [Host(number) for number in range(hosts)]
        self.guests: dict[str, Guest] = {}
        self.rejected = 0

    @property
    def awake(self) -> list[Host]:
        """Return the hosts that are awake."""
        return [host for host in self.hosts if host.awake]

    @property
    def remote_mib(self) -> int:
        """Return the memory that is not where its server runs."""
        return sum(guest.remote_mib for guest in self.guests.values())

    def least_local(self, guest: Guest) -> int:
        """Return what of a server's memory has to be local at its start (Zombieland, section 5.1)."""
        if self.system.extends is not Extends.ALL:
            return guest.mib
        return math.ceil(guest.mib * self._settings.placed_local_percent / 100)

    def start(self, guest: Guest) -> None:
        """Start a server on the awake host with most free vCPUs that has room, or on one that is woken for it."""
        if self._booked() + guest.mib > len(self.hosts) * self.mib:
            self.rejected += 1
            return
        host = self._roomiest(self.awake, guest)
        if host is None:
            host = self._roomiest([host for host in self.hosts if not host.awake], guest)
        if host is None:
            self.rejected += 1
            return
        host.awake = True
        self.put(guest, host, min(guest.mib, self.mib - host.local_mib))

    def end(self, name: str) -> None:
        """End a server, if it was not rejected."""
        if name in self.guests:
            self.take(self.guests.pop(name))

    def put(self, guest: Guest, host: Host, local_mib: int) -> None:
        """Have a server run on a host with so much of its memory there."""
        guest.host, guest.local_mib = host.number, local_mib
        self.guests[guest.name] = host.guests[guest.name] = guest
        host.cpu += guest.cpu
        host.used += guest.used
        host.local_mib += local_mib

    def take(self, guest: Guest) -> None:
        """Take a server off its host."""
        host = self.hosts[guest.host]
        del host.guests[guest.name]
        host.cpu -= guest.cpu
        host.used -= guest.used
        host.local_mib -= guest.local_mib

    def _roomiest(self, hosts: Iterable[Host], guest: Guest) -> Host | None:
        need = self.least_local(guest)
        able = (host for host in hosts if host.cpu + guest.cpu <= self.cpus and host.local_mib + need <= self.mib)
        return min(able, key=lambda host: (host.cpu, host.number), default=None)

    def _booked(self) -> int:
        return sum(guest.mib for guest in self.guests.values())
