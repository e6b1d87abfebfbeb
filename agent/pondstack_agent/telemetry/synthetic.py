"""Traces that are made up, for guests without memory to measure, as fake computes have: every sample says so.

A guest touches its memory as time goes by, local memory first, and leaves a share of it untouched for good. The share
is about that of its project, and its own by its UUID, so that a project's history tells of its next guest. Its counters
are those of one made-up workload per project, a little its own. Pure but for the look.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pondstack.domain.telemetry import HostMetric, Metric
from pondstack.prediction.sample_generator import counters_of
from pondstack_agent.telemetry.load import Played, as_it_is
from pondstack_agent.telemetry.outbox import HostOutbox, Outbox

_PROJECT = (0.15, 0.75)
"""Least and greatest share that a project's guests leave untouched, on the average."""
_SPREAD = 0.08
"""How far a guest's share may be from its project's, up or down."""
_COUNTERS_SPREAD = 0.05
"""How far a guest's counters may be from its project's, as a share."""
_TOUCHING_SECONDS = (20.0, 300.0)
"""Least and greatest time in which a guest touches two thirds of what it is going to touch."""
_USED_CPUS = (0.05, 0.6)
"""Least and greatest number of CPUs that a guest uses on the average."""
_WAVE_SECONDS = 24 * 3600.0
"""How long a guest's day is: it uses half as much more at its noon, and as much less at its night."""
HOST_CPUS, HOST_MIB, HOST_OWN_MIB, HOST_OWN_PERCENT = 16, 128 * 1024, 4 * 1024, 2.0
"""A made-up host: its CPUs and memory, and what of both it needs for itself."""


@dataclass(frozen=True, slots=True)
class PlayedGuest:
    """A guest that has a trace in place of memory; sizes in MiB, `age_seconds` since its pool memory came online."""

    consumer_uuid: str
    project_id: str
    memory_mib: int
    pool_mib: int
    age_seconds: float


PlayedGuests = Callable[[], Sequence[PlayedGuest]]


def untouched_mib(guest: PlayedGuest) -> float:
    """Return what a guest has not touched by now; less from look to look, down to its share. The same on each host."""
    share = _between(*_PROJECT, f"project {guest.project_id}")
    share += _between(-_SPREAD, _SPREAD, f"share {guest.consumer_uuid}")
    seconds = _between(*_TOUCHING_SECONDS, f"touching {guest.consumer_uuid}")
    return guest.memory_mib * (share + (1.0 - share) * math.exp(-max(0.0, guest.age_seconds) / seconds))


def used_cpus(guest: PlayedGuest) -> float:
    """Return how many CPUs a guest uses now."""
    average = _between(*_USED_CPUS, f"cpus {guest.consumer_uuid}")
    return average * (1.0 + 0.5 * math.sin(2 * math.pi * guest.age_seconds / _WAVE_SECONDS))


def counters(guest: PlayedGuest) -> dict[str, float]:
    """Return what the counters of a guest's vCPUs say."""
    own = _between(1 - _COUNTERS_SPREAD, 1 + _COUNTERS_SPREAD, f"counters {guest.consumer_uuid}")
    return {name: value * own for name, value in counters_of(f"project {guest.project_id}").items()}


def _between(least: float, greatest: float, seed: str) -> float:
    """Return a number that is always the same for a seed, whatever Python's version."""
    drawn = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big") / 2**64
    return least + (greatest - least) * drawn


class SyntheticLook:
    """Plays the trace of every guest into the outbox, which has to say that all of it is made up."""

    def __init__(
        self, outbox: Outbox, guests: PlayedGuests, untouched: Callable[[PlayedGuest], float] = untouched_mib
    ) -> None:
        """`untouched`: what a guest has not touched by now, in MiB."""
        self._outbox = outbox
        self._guests = guests
        self._untouched = untouched

    def run(self) -> None:
        """Look once."""
        for guest in self._guests():
            untouched = self._untouched(guest)
            pool = min(untouched, guest.pool_mib)
            self._report(guest.consumer_uuid, None, guest.memory_mib, untouched)
            self._report(guest.consumer_uuid, 0, guest.memory_mib - guest.pool_mib, untouched - pool)
            self._report(guest.consumer_uuid, 1, guest.pool_mib, pool)
            for name, value in counters(guest).items():
                self._outbox.add(guest.consumer_uuid, Metric(name), value)

    def _report(self, consumer_uuid: str, node: int | None, memory: float, untouched: float) -> None:
        self._outbox.add(consumer_uuid, Metric.MEMORY_MIB, memory, node)
        self._outbox.add(consumer_uuid, Metric.UNTOUCHED_MIB, untouched, node)


class SyntheticLoadLook:
    """Plays the load of every guest, and that of a host that has nothing but these guests."""

    def __init__(
        self,
        outbox: Outbox,
        own: HostOutbox,
        guests: PlayedGuests,
        played: Played = as_it_is,
        most_lent_mib: int = 0,
    ) -> None:
        """`played`: the host's load in place of the one that its guests make; `most_lent_mib`: as HostLoadLook."""
        self._outbox, self._own, self._guests, self._played = outbox, own, guests, played
        self._most_lent_mib = most_lent_mib

    def run(self) -> None:
        """Look once."""
        busy, local_mib = 0.0, 0
        for guest in self._guests():
            cpus = used_cpus(guest)
            self._outbox.add(guest.consumer_uuid, Metric.USED_CPUS, cpus)
            busy, local_mib = busy + cpus, local_mib + guest.memory_mib - guest.pool_mib
        load, played = HOST_OWN_PERCENT + 100.0 * busy / HOST_CPUS, self._played()
        self._own.add(HostMetric.CPUS, HOST_CPUS)
        self._own.add(HostMetric.LOAD_PERCENT, min(100.0, load if played is None else played))
        self._own.add(HostMetric.MEMORY_MIB, HOST_MIB)
        self._own.add(HostMetric.FREE_MIB, max(0, HOST_MIB - HOST_OWN_MIB - local_mib))
        if self._most_lent_mib:
            self._own.add(HostMetric.MOST_LENT_MIB, self._most_lent_mib)
