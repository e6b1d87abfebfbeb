"""What stays free of the hosts that are awake, so that new servers find room before a sleeper could be woken. Pure."""

from collections.abc import Iterable

from pondstack.consolidation.decision.rooms import MEMORY
from pondstack.consolidation.decision.snapshot import HostState, HostView

CLASSES = ("VCPU", MEMORY)


class Reserve:
    """Percent of what Placement lets be claimed of awake hosts, in each class; 0: none. Hosts that only give count."""

    def __init__(self, hosts: Iterable[HostView], percent: float) -> None:
        self._percent = percent
        self._capacity = dict.fromkeys(CLASSES, 0.0)
        self._used = dict.fromkeys(CLASSES, 0.0)
        for host in hosts:
            if host.state is HostState.AWAKE and host.capacity is not None:
                self._change(host, 1)
                for name in CLASSES:
                    self._used[name] += host.used.get(name, 0)

    @property
    def is_short(self) -> bool:
        """Whether less is free."""
        return not self._holds(self._capacity)

    def allows_without(self, host: HostView) -> bool:
        """Return whether as much stays free when a host falls asleep whose servers are on the others then."""
        return self._holds({name: self._capacity[name] - _amount(host, name) for name in CLASSES})

    def add(self, host: HostView) -> None:
        """Have a sleeper be woken."""
        self._change(host, 1)

    def remove(self, host: HostView) -> None:
        """Have a host be emptied."""
        self._change(host, -1)

    def _change(self, host: HostView, sign: int) -> None:
        for name in CLASSES:
            self._capacity[name] += sign * _amount(host, name)

    def _holds(self, capacity: dict[str, float]) -> bool:
        share = self._percent / 100.0
        return share <= 0 or all(capacity[name] - self._used[name] >= share * capacity[name] for name in CLASSES)


def _amount(host: HostView, name: str) -> float:
    """Return what may be claimed of a host once it is awake: what it lends while it sleeps is not lent any more."""
    amount = float((host.capacity or {}).get(name, 0))
    if name == MEMORY and host.state is HostState.ASLEEP and host.memory_mib is not None:
        return max(amount, host.memory_mib.value)
    return amount
