"""Which hosts may take part, and why the others may not: a figure that is unknown or too old is never guessed. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from pondstack.consolidation.decision import overload, underload
from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import HostState, HostView, Reading, Snapshot, VmView

Residents = Mapping[str, Sequence[VmView]]


def residents_of(snapshot: Snapshot) -> dict[str, list[VmView]]:
    """Return the servers of each host."""
    found: dict[str, list[VmView]] = {name: [] for name in snapshot.hosts}
    for server in snapshot.servers:
        if server.host in found:
            found[server.host].append(server)
    return found


def left_out(snapshot: Snapshot, residents: Residents, settings: Settings) -> dict[str, str]:
    """Return the reasons of the hosts that take no part, by name. Hosts that sleep are judged when they are to wake."""
    reasons = {
        name: _reason(host, residents[name], settings)
        for name, host in snapshot.hosts.items()
        if host.state is not HostState.ASLEEP
    }
    return {name: reason for name, reason in reasons.items() if reason}


def _reason(host: HostView, servers: Sequence[VmView], settings: Settings) -> str:
    if host.state is HostState.CLOSED:
        return host.closed or "it is closed"
    if host.capacity is None:
        return "Placement has no inventory of it"
    if not host.cpus:
        return "the number of its CPUs is unknown"
    for reason in _figures(host, settings):
        if reason:
            return reason
    for server in servers:
        reason = _stale(server.used_cpus, f"the CPU load of server {server.uuid}", settings)
        if reason:
            return reason
    return ""


def _figures(host: HostView, settings: Settings) -> Iterator[str]:
    least = _least_readings(settings)
    if not host.load:
        yield "its CPU load is unknown"
    yield _stale(Reading(0.0, host.load_age_seconds), "its CPU load", settings)
    if len(host.load) < least:
        yield f"there are {len(host.load)} readings of its CPU load, and the algorithm needs {least}"
    yield _stale(host.memory_mib, "the size of its memory", settings)
    yield _stale(host.free_mib, "its free memory", settings)


def _least_readings(settings: Settings) -> int:
    adaptive = overload.ALGORITHMS[settings.overload].adaptive or underload.ALGORITHMS[settings.underload].adaptive
    return settings.readings if adaptive else 1


def _stale(reading: Reading | None, what: str, settings: Settings) -> str:
    if reading is None:
        return f"{what} is unknown"
    if reading.age_seconds > settings.metric_seconds:
        return f"{what} is {reading.age_seconds:.0f} s old, more than {settings.metric_seconds:g} s"
    return ""
