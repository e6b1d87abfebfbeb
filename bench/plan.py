"""`make bench-plan`: how long a consolidation plan takes to decide, against a strategy of OpenStack Watcher's.

The cloud is synthetic, the same for a seed: HOSTS equal hosts with some twelve servers each, of which most are little
loaded. Time is that of one CPU (process time), of ROUNDS runs, for each way of the algorithms that is listed. Targets:
the slowest run of the default way under 5 s with 12,500 hosts and 150,000 servers; and, on one and the same snapshot in
this run, at least 20 times as fast as Watcher's vm_workload_consolidation. That takes no such cloud in any useful
time: it gets clouds that double, until one takes longer than WATCHER_SECONDS, and the largest that it has ended with is
compared. It runs in a process of its own, since importing it changes options and threads of ours.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pondstack.consolidation.decision.decider import Decision, decide
from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import HostView, Reading, Snapshot, VmView
from pondstack.domain.telemetry import Source

HOSTS, SERVERS_PER_HOST = 12_500, 12
CPUS, MEMORY_MIB, VCPU_RATIO = 48, 384 * 1024, 4.0
LIMIT_SECONDS, LEAST_RATIO = 5.0, 20.0
FIRST_HOSTS = 25
"""Of the smallest cloud that Watcher gets."""
WAYS: dict[str, dict[str, str]] = {
    "default": {},
    "mad": {"overload": "mad", "underload": "average"},
    "iqr": {"overload": "iqr", "placement": "worst-fit"},
    "local-regression": {"overload": "local-regression", "selection": "least-load"},
    "lifetime": {"underload": "lifetime", "selection": "longest-lifetime", "placement": "lifetime"},
}
UNLIMITED = 10**9


@dataclass(frozen=True, slots=True)
class Cloud:
    """A snapshot, and the same as Watcher takes it."""

    snapshot: Snapshot
    plain: dict[str, Any]


def make_cloud(hosts: int, seed: int) -> Cloud:
    """Return a synthetic cloud: flavors of 1 to 8 vCPUs with 2 or 4 GiB each, loads of 1 to 30 % of a vCPU."""
    chance = random.Random(seed)
    views, servers, plain_hosts, plain_servers = {}, [], [], []
    for number in range(hosts):
        name, used, busy = f"host-{number:05d}", {"VCPU": 0, "MEMORY_MB": 0}, 0.0
        for _ in range(chance.randint(SERVERS_PER_HOST // 2, SERVERS_PER_HOST * 3 // 2)):
            vcpus = chance.choice((1, 2, 4, 8))
            mib, percent = vcpus * chance.choice((2048, 4096)), chance.uniform(1.0, 30.0)
            uuid, claim = f"server-{len(servers):06d}", {"VCPU": vcpus, "MEMORY_MB": mib}
            reading = Reading(vcpus * percent / 100.0, 30.0, Source.SYNTHETIC)
            servers.append(VmView(uuid, name, mib, claim, reading, remaining_seconds=chance.expovariate(1 / 86400.0)))
            plain_servers.append([uuid, name, vcpus, mib, percent])
            used = {key: used[key] + claim[key] for key in used}
            busy += reading.value
        load = 100.0 * busy / CPUS
        history = tuple(min(100.0, max(0.0, load + chance.gauss(0.0, 3.0))) for _ in range(11))
        views[name] = HostView(
            name=name,
            cpus=float(CPUS),
            load=(*history, load),
            load_age_seconds=30.0,
            memory_mib=Reading(MEMORY_MIB, 30.0, Source.SYNTHETIC),
            free_mib=Reading(MEMORY_MIB - used["MEMORY_MB"], 30.0, Source.SYNTHETIC),
            capacity={"VCPU": int(CPUS * VCPU_RATIO), "MEMORY_MB": MEMORY_MIB},
            used=used,
        )
        plain_hosts.append([name, CPUS, MEMORY_MIB, VCPU_RATIO, load])
    return Cloud(Snapshot(views, tuple(servers)), {"hosts": plain_hosts, "servers": plain_servers})


def timed(snapshot: Snapshot, way: dict[str, str], rounds: int) -> tuple[list[float], Decision]:
    """Return the process times of some runs in seconds, and the last decision."""
    settings = Settings(**way, most_migrations=UNLIMITED, most_emptied=UNLIMITED)  # type: ignore[arg-type]
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        found = decide(snapshot, settings)
        seconds.append(time.process_time() - begin)
    return seconds, found


def exceeded(snapshot: Snapshot, found: Decision) -> list[str]:
    """Return the hosts of which a plan claims more than Placement has."""
    claims = {server.uuid: server.claim for server in snapshot.servers}
    used = {name: dict(host.used) for name, host in snapshot.hosts.items()}
    for action in found.actions:
        if action.server_uuid:
            for key, amount in claims[action.server_uuid].items():
                used[action.destination][key] += amount
    return [
        name
        for name, amounts in used.items()
        if any(amount > (snapshot.hosts[name].capacity or {})[key] for key, amount in amounts.items())
    ]


def watcher_seconds(cloud: Cloud, limit_seconds: float) -> dict[str, Any] | None:
    """Return {"seconds", "migrations", "emptied"} of Watcher's strategy, None where it takes longer than that."""
    script = Path(__file__).with_name("plan_watcher.py")
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(script)],
            input=json.dumps(cloud.plain),
            capture_output=True,
            text=True,
            timeout=limit_seconds,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(rounds: int, seed: int, limit_seconds: float) -> float | None:
    """Return how many times as fast we are on the largest cloud that Watcher has ended with, None: on none."""
    hosts, ratio = FIRST_HOSTS, None
    while True:
        cloud = make_cloud(hosts, seed)
        theirs = watcher_seconds(cloud, limit_seconds)
        size = f"{hosts} hosts, {len(cloud.snapshot.servers)} servers"
        if theirs is None:
            print(f"Watcher vm_workload_consolidation, {size}: not ended after {limit_seconds:g} s; it gets no more")
            return ratio
        seconds, found = timed(cloud.snapshot, {}, max(rounds, 3))
        ours = statistics.median(seconds)
        ratio = theirs["seconds"] / ours
        print(
            f"{size}: Watcher {theirs['seconds']:.3f} s ({theirs['emptied']} hosts emptied, {theirs['migrations']} "
            f"migrations), ours {ours:.4f} s ({found.effect.hosts_emptied}, {found.effect.migrations}): {ratio:.0f} "
            "times as fast",
            flush=True,
        )
        hosts *= 2


def main(arguments: Sequence[str]) -> int:
    """Return 0 when all targets hold."""
    parser = argparse.ArgumentParser(prog="make bench-plan", description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--watcher-seconds", type=float, default=60.0)
    given = parser.parse_args(arguments)
    cloud = make_cloud(given.hosts, given.seed)
    print(f"synthetic cloud, seed {given.seed}: {given.hosts} hosts, {len(cloud.snapshot.servers)} servers", flush=True)
    failures, slowest = [], 0.0
    for name, way in WAYS.items():
        seconds, found = timed(cloud.snapshot, way, given.rounds)
        effect = found.effect
        print(
            f"{name}: {given.rounds} runs, median {statistics.median(seconds):.2f} s, {min(seconds):.2f} to "
            f"{max(seconds):.2f} s of one CPU; {effect.hosts_emptied} hosts emptied, {effect.migrations} migrations",
            flush=True,
        )
        beyond = exceeded(cloud.snapshot, found)
        if beyond:
            failures.append(f"{name} exceeds Placement on {len(beyond)} hosts")
        slowest = max(seconds) if name == "default" else slowest
    ratio = compare(given.rounds, given.seed, given.watcher_seconds)
    if slowest >= LIMIT_SECONDS:
        failures.append(f"{slowest:.2f} s, not under {LIMIT_SECONDS:g} s")
    if ratio is None or ratio < LEAST_RATIO:
        failures.append(f"{ratio} times as fast as Watcher, not {LEAST_RATIO:g}")
    compared = "not compared with Watcher" if ratio is None else f"{ratio:.0f} times as fast as Watcher at its largest"
    print(f"a plan for {given.hosts} hosts in {slowest:.2f} s at most (synthetic); {compared}")
    print("targets missed: " + "; ".join(failures) if failures else "all targets hold")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
