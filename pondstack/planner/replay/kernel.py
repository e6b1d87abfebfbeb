"""The replay itself, compiled: servers end and start in order, each where the scheduler of production would place it.

Its filters: vCPUs and local memory as Placement claims them, pool memory as Placement offers and PondFilter finds it.
Its weighers: Nova's CPUWeigher, LocalRAMWeigher and PondWeigher, with Nova's normalisation. The first of equals wins.
"""

import numpy as np

from pondstack.planner.replay import policy
from pondstack.planner.replay.compiled import jit
from pondstack.planner.replay.ring import give, refresh, take
from pondstack.planner.replay.state import (
    FOREVER,
    INTERRUPTED,
    REJECTED,
    Counts,
    Moments,
    Outages,
    Pools,
    Result,
    Rules,
    Servers,
    Sockets,
)

local_ram_mib, pool_weight, slices_needed = policy.local_ram_mib, policy.pool_weight, policy.slices_needed
comfort, kept_back = policy.comfort, policy.kept_back


@jit
def normalised(value: float, largest: float) -> float:
    """Return a weight as Nova normalises those of weighers with minval 0 (nova.weights.normalize)."""
    return value / largest if largest > 0 else 0.0


@jit
def look(pools: Pools, slices: int, now: int, comforts: np.ndarray) -> None:
    """Note the comfort of each pool with so many slices less; -1: it cannot give them."""
    for pool in range(len(pools.total)):
        refresh(pools, pool, now)
        returning = pools.free[pool] - pools.ready[pool]
        offered = pools.free[pool] - kept_back(pools.buffer[pool], returning)
        if slices <= offered and slices <= pools.ready[pool] and not pools.out[pool]:
            comforts[pool] = comfort(pools.ready[pool] - slices, pools.buffer[pool])
        else:
            comforts[pool] = -1.0


@jit
def fits(sockets: Sockets, socket: int, comforts: np.ndarray, cpu: int, local_mib: int, pool_mib: int) -> bool:
    """Say whether the filters pass a socket."""
    if sockets.cpu[socket] < cpu or sockets.local_mib[socket] < local_mib:
        return False
    if sockets.out[socket]:
        return False
    pool = sockets.pool[socket]
    return pool_mib == 0 or (pool >= 0 and comforts[pool] >= 0)


@jit
def weigh(
    sockets: Sockets, socket: int, comforts: np.ndarray, pool_mib: int, most_cpu: int, most_ram: int, rules: Rules
) -> float:
    """Return the weight of a socket that fits; `most_cpu`, `most_ram`: of all that fit."""
    pooled, pool = sockets.pooled_mib[socket], sockets.pool[socket]
    ram = local_ram_mib(sockets.local_mib[socket] - pooled, pooled)
    weight = rules.ram_weight * normalised(ram, most_ram)
    weight += rules.cpu_weight * normalised(sockets.cpu[socket], most_cpu)
    weight += rules.pool_weight * pool_weight(pool_mib, pool >= 0, comforts[pool] if pool_mib > 0 else 0.0)
    return weight


@jit
def choose(
    sockets: Sockets, comforts: np.ndarray, cpu: int, local_mib: int, pool_mib: int, rules: Rules, fitting: Counts
) -> int:
    """Return the socket for a server, REJECTED where it fits on none. `fitting` is scratch."""
    count, most_cpu, most_ram = 0, 0, 0
    for socket in range(len(sockets.cpu)):
        if fits(sockets, socket, comforts, cpu, local_mib, pool_mib):
            fitting[count] = socket
            count += 1
            most_cpu = max(most_cpu, sockets.cpu[socket])
            most_ram = max(most_ram, sockets.local_mib[socket])
    best, best_weight = REJECTED, -np.inf
    for place in range(count):
        weight = weigh(sockets, fitting[place], comforts, pool_mib, most_cpu, most_ram, rules)
        if weight > best_weight:
            best, best_weight = fitting[place], weight
    return best


@jit
def end(number: int, now: int, servers: Servers, sockets: Sockets, pools: Pools, rules: Rules, result: Result) -> None:
    """Give back what a server had."""
    socket = result.socket[number]
    if socket == REJECTED:
        return
    slices = result.slices[number]
    pooled = slices * rules.slice_mib
    sockets.cpu[socket] += servers.cpu[number]
    sockets.local_mib[socket] += servers.memory_mib[number] - pooled
    sockets.pooled_mib[socket] -= pooled
    if slices > 0:
        give(pools, sockets.pool[socket], slices, now, rules.offline_seconds)


@jit
def start(
    number: int,
    now: int,
    servers: Servers,
    sockets: Sockets,
    pools: Pools,
    rules: Rules,
    result: Result,
    comforts: np.ndarray,
    fitting: Counts,
) -> None:
    """Place a server, all local where no pool has room and the rules let it be."""
    cpu, memory, pool_mib = servers.cpu[number], servers.memory_mib[number], servers.pool_mib[number]
    slices = slices_needed(pool_mib, rules.slice_mib)
    if slices > 0:
        look(pools, slices, now, comforts)
    socket = choose(sockets, comforts, cpu, memory - pool_mib, pool_mib, rules, fitting)
    if socket == REJECTED and slices > 0 and rules.falls_back:
        pool_mib, slices = 0, 0
        socket = choose(sockets, comforts, cpu, memory, 0, rules, fitting)
    result.socket[number] = socket
    result.slices[number] = slices if socket != REJECTED else 0
    if socket == REJECTED:
        return
    sockets.cpu[socket] -= cpu
    sockets.local_mib[socket] -= memory - pool_mib
    sockets.pooled_mib[socket] += pool_mib
    if slices > 0:
        speed = take(pools, sockets.pool[socket], slices, now, rules.slice_mib)
        result.speed[number] = max(result.speed[number], speed)


@jit
def strike(
    outage: int,
    started: int,
    outages: Outages,
    servers: Servers,
    sockets: Sockets,
    pools: Pools,
    rules: Rules,
    result: Result,
    comforts: np.ndarray,
    fitting: Counts,
) -> None:
    """Have a host or pool fail or be repaired; of the first `started` servers those that it ends start again at once.

    A pool's failure ends those that have memory there and no others (Pond, section 4.2).
    """
    now, socket, pool = outages.at[outage], outages.socket[outage], outages.pool[outage]
    if socket >= 0:
        sockets.out[socket] = outages.fails[outage]
    else:
        pools.out[pool] = outages.fails[outage]
    if not outages.fails[outage]:
        return
    for number in range(started):
        mine = result.socket[number]
        if mine == REJECTED or servers.end[number] <= now:
            continue
        if mine == socket or (socket < 0 and result.slices[number] > 0 and sockets.pool[mine] == pool):
            end(number, now, servers, sockets, pools, rules, result)
            result.socket[number] = INTERRUPTED
    for number in range(started):
        if result.socket[number] == INTERRUPTED:
            result.restarts[number] += 1
            start(number, now, servers, sockets, pools, rules, result, comforts, fitting)


@jit
def observe(moment: int, sockets: Sockets, least_cpu: int, moments: Moments) -> None:
    """Note what is sold and what is stranded at one moment."""
    sold, stranded = 0, 0
    for socket in range(len(sockets.cpu)):
        sold += sockets.cpu_total[socket] - sockets.cpu[socket]
        if sockets.cpu[socket] < least_cpu:
            stranded += sockets.local_mib[socket]
    moments.sold_cpu[moment] = sold
    moments.stranded_mib[moment] = stranded


@jit
def run(
    servers: Servers,
    sockets: Sockets,
    pools: Pools,
    rules: Rules,
    result: Result,
    moments: Moments,
    outages: Outages,
    least_cpu: int,
) -> None:
    """Replay all servers; `sockets` and `pools` are left as they are after the last start or outage."""
    comforts = np.zeros(max(1, len(pools.total)))
    fitting = np.empty(len(sockets.cpu), np.int32)
    result.speed[:] = 0.0
    result.restarts[:] = 0
    ended, moment, outage, count = 0, 0, 0, len(servers.start)
    for number in range(count + 1):
        now = servers.start[number] if number < count else FOREVER
        while outage < len(outages.at) and outages.at[outage] <= now:
            ended, moment = _watch_until(
                outages.at[outage], ended, moment, servers, sockets, pools, rules, result, moments, least_cpu
            )
            strike(outage, number, outages, servers, sockets, pools, rules, result, comforts, fitting)
            outage += 1
        if number < count:
            ended, moment = _watch_until(now, ended, moment, servers, sockets, pools, rules, result, moments, least_cpu)
            start(number, now, servers, sockets, pools, rules, result, comforts, fitting)


@jit
def _watch_until(
    now: int,
    ended: int,
    moment: int,
    servers: Servers,
    sockets: Sockets,
    pools: Pools,
    rules: Rules,
    result: Result,
    moments: Moments,
    least_cpu: int,
) -> tuple[int, int]:
    """End servers up to now, and look at all moments up to then; returns how many of both are done."""
    while moment < len(moments.at) and moments.at[moment] <= now:
        ended = _end_until(moments.at[moment], ended, servers, sockets, pools, rules, result)
        observe(moment, sockets, least_cpu, moments)
        moment += 1
    return _end_until(now, ended, servers, sockets, pools, rules, result), moment


@jit
def _end_until(
    now: int, ended: int, servers: Servers, sockets: Sockets, pools: Pools, rules: Rules, result: Result
) -> int:
    while ended < len(servers.by_end) and servers.end[servers.by_end[ended]] <= now:
        number = servers.by_end[ended]
        end(number, servers.end[number], servers, sockets, pools, rules, result)
        ended += 1
    return ended
