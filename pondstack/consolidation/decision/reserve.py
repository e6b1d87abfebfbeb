"""What stays free of the hosts that are awake, so that new servers find room before a sleeper could be woken. Pure."""

from collections.abc import Iterable

from pondstack.consolidation.decision.snapshot import MEMORY, HostState, HostView

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
        return self._holds({name: self._capacity[name] - host.claimable(name) for name in CLASSES})

    def add(self, host: HostView) -> None:
        """Have a sleeper be woken."""
        self._change(host, 1)

    def remove(self, host: HostView) -> None:
        """Have a host be emptied."""
        self._change(host, -1)

    def _change(self, host: HostView, sign: int) -> None:
        for name in CLASSES:
            self._capacity[name] += sign * host.claimable(name)

    def _holds(self, capacity: dict[str, float]) -> bool:
        share = self._percent / 100.0
        return share <= 0 or all(capacity[name] - self._used[name] >= share * capacity[name] for name in CLASSES)
