"""The planner's engine on a replay's hosts and pools: a whole run by itself, and one decision in a given state.

What sizes and places is production's: pondstack.domain.share and host_choice, as the planner compiles them.
Times go in as milliseconds, vCPUs as thousandths.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bench.agreement.log import Log, first_looks
from pondstack.planner.replay import kernel, policy, sizes
from pondstack.planner.replay.state import (
    FOREVER,
    REJECTED,
    Moments,
    Outages,
    Pools,
    Rules,
    Servers,
    Sockets,
    no_result,
)
from pondstack.planner.settings import Settings

SETTINGS = Settings()
EQUAL = 1e-9
"""Weights that are as near are equal: Nova adds them up in another order."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server went; `host` "": nowhere."""

    host: str
    pool_mib: int


@dataclass
class State:
    """What servers have of each host, and what each pool has given. By host, by pool; `buffer`: other than at first."""

    cpu: dict[str, int] = field(default_factory=dict)
    local_mib: dict[str, int] = field(default_factory=dict)
    pooled_mib: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    returning: dict[str, int] = field(default_factory=dict)
    buffer: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Factors:
    """What the hosts that fit are weighed by, by host: free vCPUs, free local MiB, PondWeigher's weight of its pool.

    `scores`: of weighers that the planner has not. Of equal hosts the first is chosen.
    """

    cpu: Mapping[str, float]
    local_mib: Mapping[str, float]
    pond: Mapping[str, float]
    scores: Mapping[str, float] = field(default_factory=dict)


class Engine:
    """The engine for one log; of equal hosts the first of `order` is chosen."""

    def __init__(self, log: Log, order: Sequence[str]) -> None:
        self._log = log
        self._looks = first_looks(log.looks)
        known = {host.name: host for host in log.hosts}
        self._hosts = [known[name] for name in order]
        self._pools = list(self._looks)
        self.slice_mib = max((look.slice_mib for look in self._looks.values()), default=SETTINGS.slice_mib)
        memory = np.array([item.memory_mib for item in log.placements], np.int32)
        self.wanted_mib = sizes.static(memory, log.static_percent, self.slice_mib)

    def run(self) -> list[Place]:
        """Replay all by itself: each starts when it was asked for and ends when it was told to leave."""
        items = self._log.placements
        start = np.array([_milliseconds(item.asked) for item in items], np.int64)
        end = np.array([FOREVER if item.leaving is None else _milliseconds(item.leaving) for item in items], np.int64)
        servers = Servers(
            start,
            np.maximum(end, start + 1),
            np.argsort(end, kind="stable").astype(np.int32),
            np.array([1000 * item.vcpus for item in items], np.int32),
            np.array([item.memory_mib for item in items], np.int32),
            self.wanted_mib,
        )
        none = np.zeros(0, np.int64)
        result = no_result(len(items))
        before, moments = State(), Moments(none, none, none)
        never = Outages(none, none.astype(np.int32), none.astype(np.int32), none.astype(np.bool_))
        kernel.run(servers, self._sockets(before), self._rings(before), self._rules(), result, moments, never, 1)
        return [
            Place("", 0) if socket == REJECTED else Place(self._hosts[socket].name, int(slices) * self.slice_mib)
            for socket, slices in zip(result.socket, result.slices, strict=True)
        ]

    def decide(self, number: int, state: State) -> Place:
        """Return where the planner puts a server in a state."""
        wanted = self.at(number, int(self.wanted_mib[number]), state)
        return wanted if wanted.host else self.at(number, 0, state)

    def at(self, number: int, pool_mib: int, state: State) -> Place:
        """Return where the planner puts a server with so much pool memory."""
        item, scratch = self._log.placements[number], np.empty(len(self._hosts), np.int32)
        comforts, local = self._comforts(self._rings(state), pool_mib), item.memory_mib - pool_mib
        cpu, sockets = 1000 * item.vcpus, self._sockets(state)
        chosen = kernel.choose(sockets, comforts, cpu, local, pool_mib, self._rules(), scratch)
        return Place("", 0) if chosen == REJECTED else Place(self._hosts[chosen].name, pool_mib)

    def factors(self, number: int, pool_mib: int, state: State) -> Factors:
        """Return what the planner weighs hosts by, of those that a server with so much pool memory fits on."""
        item, sockets = self._log.placements[number], self._sockets(state)
        comforts, local = self._comforts(self._rings(state), pool_mib), item.memory_mib - pool_mib
        fitting = [
            (n, host.name)
            for n, host in enumerate(self._hosts)
            if kernel.fits(sockets, n, comforts, 1000 * item.vcpus, local, pool_mib)
        ]
        return Factors(
            {name: sockets.cpu[n] / 1000 for n, name in fitting},
            {name: float(sockets.local_mib[n]) for n, name in fitting},
            {
                name: policy.pool_weight(pool_mib, sockets.pool[n] >= 0, comforts[sockets.pool[n]] if pool_mib else 0.0)
                for n, name in fitting
            },
        )

    def _comforts(self, pools: Pools, pool_mib: int) -> np.ndarray:
        comforts = np.zeros(max(1, len(self._pools)))
        if pool_mib:
            kernel.look(pools, pool_mib // self.slice_mib, 0, comforts)
        return comforts

    def _sockets(self, state: State) -> Sockets:
        def free(totals: Sequence[int], used: Mapping[str, int], scale: int = 1) -> np.ndarray:
            names = (host.name for host in self._hosts)
            return np.array([scale * (n - used.get(name, 0)) for n, name in zip(totals, names, strict=True)], np.int32)

        vcpus = free([host.vcpus for host in self._hosts], state.cpu, 1000)
        local = free([host.memory_mib for host in self._hosts], state.local_mib)
        pooled = np.array([state.pooled_mib.get(host.name, 0) for host in self._hosts], np.int32)
        reach = [self._pools.index(host.pool) if host.pool in self._pools else -1 for host in self._hosts]
        out = np.zeros(len(reach), np.bool_)
        return Sockets(vcpus.copy(), vcpus, local, pooled, np.array(reach, np.int32), out)

    def _rings(self, state: State) -> Pools:
        """Return pools whose free slices were free before; those on their way back are ready late."""
        looks = [self._looks[name] for name in self._pools]
        total = np.array([look.free for look in looks], np.int32)
        free = np.array([look.free - state.held.get(look.pool, 0) for look in looks], np.int32)
        ready = free - np.array([state.returning.get(look.pool, 0) for look in looks], np.int32)
        size, first = int(total.sum()), np.cumsum(np.concatenate([[0], total]), dtype=np.int64)
        buffer = np.array([state.buffer.get(look.pool, look.buffer) for look in looks], np.int32)
        heads = np.zeros(len(looks), np.int32)
        released, ready_at = np.full(size, -1, np.int64), np.full(size, np.inf)
        return Pools(total, buffer, first, heads, free, ready, released, ready_at, np.zeros(len(looks), np.bool_))

    def _rules(self) -> Rules:
        return Rules(
            cpu_weight=float(SETTINGS.cpu_weight_multiplier),
            ram_weight=float(SETTINGS.ram_weight_multiplier),
            pool_weight=float(SETTINGS.pool_weight_multiplier),
            slice_mib=self.slice_mib,
            # One slice after the other, in the milliseconds of this run.
            offline_seconds=SETTINGS.offline_ms_per_gib * self.slice_mib / 1024,
            falls_back=True,
        )


def best(factors: Factors) -> list[str]:
    """Return the hosts of the highest weight: the planner's sum, and the scores that it has not."""
    if not factors.cpu:
        return []
    most_cpu, most_ram = max(factors.cpu.values()), max(factors.local_mib.values())
    weights = {
        name: SETTINGS.cpu_weight_multiplier * kernel.normalised(factors.cpu[name], most_cpu)
        + SETTINGS.ram_weight_multiplier * kernel.normalised(factors.local_mib[name], most_ram)
        + SETTINGS.pool_weight_multiplier * factors.pond[name]
        + factors.scores.get(name, 0.0)
        for name in factors.cpu
    }
    return [name for name, weight in weights.items() if weight >= max(weights.values()) - EQUAL]


def _milliseconds(seconds: float) -> int:
    return round(1000 * seconds)
