"""Hosts and servers for decisions: 10 CPUs, 100,000 MiB, nothing on them."""

from typing import Any

from pondstack.consolidation.decision.snapshot import HostState, HostView, Reading, Snapshot, VmView

CAPACITY = {"VCPU": 40, "MEMORY_MB": 100_000}


def host(name: str, *load: float, **changes: Any) -> HostView:
    """Return a host whose CPU load was `load` percent, the newest last."""
    values: dict[str, Any] = {
        "cpus": 10.0,
        "load": load or (10.0,),
        "memory_mib": Reading(100_000.0, 0.0),
        "free_mib": Reading(100_000.0, 0.0),
        "capacity": CAPACITY,
    }
    return HostView(name, **{**values, **changes})


def zombie(name: str, lent_mib: int) -> HostView:
    """Return a host that sleeps and of which so much is borrowed."""
    return host(name, state=HostState.ASLEEP, load_age_seconds=90_000.0, lent_mib=lent_mib)


def server(uuid: str, on: str, cpus: float = 0.5, mib: int = 1024, **changes: Any) -> VmView:
    """Return a server that uses so many CPUs."""
    values: dict[str, Any] = {
        "local_mib": mib,
        "claim": {"VCPU": 2, "MEMORY_MB": mib},
        "used_cpus": Reading(cpus, 0.0),
    }
    return VmView(uuid, on, **{**values, **changes})


def snapshot(*items: HostView | VmView, candidates: dict[str, frozenset[str]] | None = None) -> Snapshot:
    """Return a snapshot; what servers claim counts as used."""
    servers = tuple(item for item in items if isinstance(item, VmView))
    hosts = {item.name: item for item in items if isinstance(item, HostView)}
    return Snapshot(hosts, servers, candidates or {})
