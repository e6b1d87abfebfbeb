"""A cloud over time: servers start and end, hosts are emptied and woken, and power is added up."""

import math
from dataclasses import dataclass

import numpy as np

from pondstack.domain.energy import PROFILES
from pondstack.planner.energy.consolidation import consolidate
from pondstack.planner.energy.fleet import Fleet, Guest
from pondstack.planner.energy.systems import Extends, System
from pondstack.planner.history import Array, History, peak
from pondstack.planner.settings import Settings

GIB = 1024


@dataclass(frozen=True)
class Used:
    """Energy of the whole time, and servers that found no room.

    Means: hosts awake, machines that keep memory of others, servers that are idle (percent).
    """

    kwh: float
    awake_hosts: float
    hosts: int
    rejected: int
    memory_machines: float
    idle_percent: float


def simulate(history: History, kind: str, system: System, settings: Settings) -> Used:
    """Return the energy of one system over the history after its warm-up, at most energy_steps steps."""
    mib = host_mib(history, settings)
    memory = memory_of(history, kind, mib, settings)
    fleet = Fleet(host_count(history, memory, mib, settings), settings.vcpus_per_socket, mib, system, settings)
    step, first = settings.energy_step_seconds, history.counted_from
    steps = max(1, min(settings.energy_steps, (history.last - first) // step))
    running = (history.start < first) & (history.end > first)
    for number in np.flatnonzero(running):
        fleet.start(_guest(history, memory, int(number), settings))
    percents, awake, keeping, idle = 0.0, 0, 0, 0.0
    for begin in range(first, first + steps * step, step):
        if system.consolidates:
            consolidate(fleet, settings)
        percents += power_percent(fleet, settings)
        awake += len(fleet.awake)
        keeping += memory_machines(fleet)
        idle += sum(guest.idle for guest in fleet.guests.values()) / max(1, len(fleet.guests))
        _pass(fleet, history, memory, begin, begin + step, settings)
    kwh = percents / 100 * settings.host_watts / 1000 * step / 3600
    return Used(kwh, awake / steps, len(fleet.hosts), fleet.rejected, keeping / steps, 100 * idle / steps)


def host_mib(history: History, settings: Settings) -> int:
    """Return the memory of a host: what is set, or what its vCPUs ask for on average."""
    if settings.gib_per_host:
        return int(settings.gib_per_host * GIB)
    seconds = np.maximum(0, np.minimum(history.end, history.last) - history.start).astype(np.float64)
    per_cpu = (history.memory_mib * seconds).sum() / max(1.0, (history.cpu / 1000 * seconds).sum())
    return max(int(history.memory_mib.max()), math.ceil(per_cpu * settings.vcpus_per_socket))


def memory_of(history: History, kind: str, mib: int, settings: Settings) -> Array:
    """Return the servers' memory: their own, or of the modified history memory_per_cpu times their share of vCPUs."""
    if kind == "original":
        return history.memory_mib
    share = np.minimum(1.0, settings.memory_per_cpu * history.cpu / 1000 / settings.vcpus_per_socket)
    return np.maximum(1, np.ceil(share * mib)).astype(np.int64)


def host_count(history: History, memory: Array, mib: int, settings: Settings) -> int:
    """Return as many hosts as the peaks of vCPUs and of memory need at core_utilisation_percent."""
    cpus = peak(history.start, history.end, history.cpu) / 1000 / settings.vcpus_per_socket
    return math.ceil(
        max(cpus, peak(history.start, history.end, memory) / mib) / settings.core_utilisation_percent * 100
    )


def power_percent(fleet: Fleet, settings: Settings) -> float:
    """Return what a fleet takes now, in percent of one host at full load.

    Of hosts that sleep, as many are zombies as the remote memory needs; the others are suspended. Memory servers of
    Oasis come on top, as many as it needs.
    """
    profile = PROFILES[settings.power_profile]
    suspended = profile.asleep_percent["s3"]
    awake = fleet.awake
    asleep = len(fleet.hosts) - len(awake)
    needed = memory_machines(fleet)
    total = sum(profile.awake(host.used / fleet.cpus) for host in awake)
    if fleet.system.extends is Extends.IDLE:
        return total + asleep * suspended + needed * settings.memory_server_percent
    zombies = min(asleep, needed)
    return total + zombies * profile.asleep_percent["sz"] + (asleep - zombies) * suspended


def memory_machines(fleet: Fleet) -> int:
    """Return how many machines keep memory of others: zombies that lend, or memory servers."""
    return math.ceil(fleet.remote_mib / fleet.mib)


def _pass(fleet: Fleet, history: History, memory: Array, begin: int, end: int, settings: Settings) -> None:
    """Start and end what does so in [begin, end), in order."""
    starts = np.flatnonzero((history.start >= begin) & (history.start < end))
    ends = np.flatnonzero((history.end >= begin) & (history.end < end))
    events = sorted(
        [(int(history.end[number]), 0, int(number)) for number in ends]
        + [(int(history.start[number]), 1, int(number)) for number in starts]
    )
    for _, starting, number in events:
        if starting:
            fleet.start(_guest(history, memory, number, settings))
        else:
            fleet.end(str(number))


def _guest(history: History, memory: Array, number: int, settings: Settings) -> Guest:
    load = float(history.load_percent[number])
    cpu, mib = float(history.cpu[number]) / 1000, int(memory[number])
    return Guest(
        name=str(number),
        cpu=cpu,
        used=cpu * load / 100,
        mib=mib,
        working_set_mib=max(1, math.ceil(mib * (1 - float(history.untouched[number])))),
        idle=load < settings.oasis_idle_percent,
    )
