"""Proves that a run left nothing behind: ledger, Placement, agents and Nova are what they were before it."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from keystoneauth1.exceptions import ClientException

from pondstack.domain.states import SliceState
from pondstack.domain.units import RESOURCE_CLASS
from pondstack_rack.cloud_client import Cloud

SETTLE_SECONDS = 120.0
LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PoolState:
    """One pool as ledger and Placement have it."""

    name: str
    slices_total: int
    free: int
    in_ledger: int
    claimed_mib: int


@dataclass(frozen=True, slots=True)
class State:
    """What may not change through a run. `findings` are the audit's, as text."""

    pools: dict[str, PoolState]
    allocations: frozenset[str]
    claims: frozenset[str]
    findings: tuple[str, ...]
    servers: frozenset[str] = frozenset()
    totals: dict[str, object] = field(default_factory=dict)


def look(cloud: Cloud, prefix: str) -> State:
    """Read the present state; `prefix`: of the names of the run's servers. Raises ClientException."""
    pools: dict[str, PoolState] = {}
    claims: set[str] = set()
    for pool in cloud.memory_list("pools"):
        slices = pool["slices"]
        pools[pool["uuid"]] = PoolState(
            name=pool["name"],
            slices_total=pool["slices_total"],
            free=slices[SliceState.FREE],
            in_ledger=sum(slices.values()),
            claimed_mib=cloud.usages(pool["uuid"]).get(RESOURCE_CLASS, 0),
        )
        claims |= cloud.claims(pool["uuid"])
    audit = cloud.audit()
    return State(
        pools=pools,
        allocations=frozenset(item["uuid"] for item in cloud.memory_list("allocations")),
        claims=frozenset(claims),
        findings=tuple(
            f"{item['code']} {item['subject']}: {item['detail']}"
            for item in audit["findings"]
            if item["severity"] != "info"  # something under way or as configured, no fault
        ),
        servers=frozenset(server["id"] for server in cloud.servers(prefix)),
        totals=dict(audit["totals"]),
    )


def leaks(before: State | None, after: State) -> list[str]:
    """Return each way in which `after` holds more than `before`, as text; empty when nothing leaked.

    Without `before`: only what is wrong in itself.
    """
    before = before or after
    found = [f"server {server} is still in Nova" for server in sorted(after.servers)]
    found += [f"allocation {uuid} is still in the ledger" for uuid in sorted(after.allocations - before.allocations)]
    found += [f"consumer {uuid} still has a claim in Placement" for uuid in sorted(after.claims - before.claims)]
    found += [f"audit: {finding}" for finding in after.findings]
    for uuid, was in before.pools.items():
        now = after.pools.get(uuid)
        if now is None:
            found.append(f"pool {was.name} is gone")
            continue
        if now.in_ledger != now.slices_total:
            found.append(f"pool {was.name}: {now.in_ledger} of {now.slices_total} slices have a state")
        if now.free < was.free:
            found.append(f"pool {was.name}: {now.free} slices are free, {was.free} were before")
        if now.claimed_mib > was.claimed_mib:
            found.append(f"pool {was.name}: Placement claims {now.claimed_mib} MiB, {was.claimed_mib} before")
    return found


def settle(
    read: Callable[[], State],
    before: State | None,
    seconds: float = SETTLE_SECONDS,
    stop: threading.Event | None = None,
) -> tuple[State | None, list[str], float]:
    """Look again and again until nothing leaks: the last state, what still leaks, and how long it took in seconds."""
    stop = stop or threading.Event()
    begun = time.monotonic()
    while True:
        state: State | None = None
        try:
            state = read()
            found = leaks(before, state)
        except ClientException as error:
            found = [f"the rack does not answer: {error}"]
        elapsed = time.monotonic() - begun
        if not found or elapsed > seconds or stop.wait(LOOK_SECONDS):
            return state, found, elapsed
