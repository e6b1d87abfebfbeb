"""Which hosts sleep and which are woken, by what must stay free on those that are awake. Pure.

Zombieland, EuroSys'18, section 5.2: the zombie of which the least is borrowed is woken first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """A compute node. `used` and `capacity`: VCPUs and MiB as Nova may place them; `servers`: how many are there.

    `borrowed_mib`: what others have of its memory, where it sleeps.
    """

    uuid: str
    name: str
    capacity: tuple[float, float]
    used: tuple[float, float] = (0.0, 0.0)
    servers: int = 0
    borrowed_mib: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Free VCPUs and memory of those awake in percent, nodes that stay awake, are suspended, and servers on those."""

    reserve_percent: float
    least_awake: int
    most_suspended: int
    most_servers: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Nodes to be woken and to be suspended, of which one is empty; `missing`: too little is free, and none sleeps."""

    wake: tuple[Node, ...] = ()
    suspend: tuple[Node, ...] = ()
    missing: bool = False


def choose(awake: Sequence[Node], asleep: Iterable[Node], limits: Limits) -> Choice:
    """Return whom to wake, where less than the reserve is free, else whom to suspend, the emptiest first."""
    used = _sum(node.used for node in awake)
    capacity = _sum(node.capacity for node in awake)
    if not _enough(capacity, used, limits):
        return _woken(capacity, used, asleep, limits)
    chosen: list[Node] = []
    for node in sorted(awake, key=lambda node: (node.servers, node.used[1], node.name)):
        left = (capacity[0] - node.capacity[0], capacity[1] - node.capacity[1])
        if node.servers > limits.most_servers or len(awake) - len(chosen) <= limits.least_awake:
            break
        if len(chosen) < limits.most_suspended and _enough(left, used, limits):
            chosen.append(node)
            capacity = left
    return Choice(suspend=tuple(chosen))


def _woken(capacity: tuple[float, float], used: tuple[float, float], asleep: Iterable[Node], limits: Limits) -> Choice:
    chosen: list[Node] = []
    for node in sorted(asleep, key=lambda node: (node.borrowed_mib, node.name)):
        if _enough(capacity, used, limits):
            break
        chosen.append(node)
        capacity = (capacity[0] + node.capacity[0], capacity[1] + node.capacity[1])
    return Choice(wake=tuple(chosen), missing=not _enough(capacity, used, limits))


def _sum(amounts: Iterable[tuple[float, float]]) -> tuple[float, float]:
    vcpus, mib = 0.0, 0.0
    for item in amounts:
        vcpus, mib = vcpus + item[0], mib + item[1]
    return vcpus, mib


def _enough(capacity: tuple[float, float], used: tuple[float, float], limits: Limits) -> bool:
    """Return whether of both the reserve is free."""
    share = limits.reserve_percent / 100.0
    return all(has - taken >= share * has for has, taken in zip(capacity, used, strict=True))
