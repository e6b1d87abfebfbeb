"""What has to hold of hosts and a server after a consolidation plan has ended, whoever died. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from pondstack.domain.host_sleep import DISABLED_REASON, ENDED, SleepState
from pondstack.domain.plan import SETTLED, ActionKind, ActionState, Plan, PlanState
from tests.robustness.plans.plan import Way

ASLEEP = ("disabled", DISABLED_REASON)
ENABLED = ("enabled", "")


@dataclass(frozen=True, slots=True)
class HostSeen:
    """A host as Nova and the ledger have it, and how many of its processes there are and stand still.

    `sleep`: the state of its newest sleep, None: it has had none. `service`: status, and reason why it is disabled.
    """

    service: tuple[str, str]
    sleep: SleepState | None
    lent_mib: int
    stopped: int
    processes: int


@dataclass(frozen=True, slots=True)
class Seen:
    """All parts, once a plan has ended. By host, where there is any: `domains`: libvirt's state of the server;
    `claimed_mib`: what it claims of a host's memory.
    """

    plan: Plan
    sleeper: HostSeen
    other: HostSeen
    status: str
    task: str
    host: str
    domains: Mapping[str, str]
    claimed_mib: Mapping[str, int]


def broken(seen: Seen, way: Way, sleeper: str, other: str) -> list[str]:
    """Return what is wrong, as text; nothing when all parts agree. `sleeper`, `other`: the names of the two hosts."""
    found = [f"the server is {seen.status} {seen.task}".rstrip()] * ((seen.status, seen.task) != ("ACTIVE", ""))
    if dict(seen.domains) != {seen.host: "running"}:
        found.append(f"Nova has it on {seen.host}, libvirt: {dict(seen.domains)}")
    if set(seen.claimed_mib) != {seen.host}:
        found.append(f"Nova has it on {seen.host}, Placement: {dict(seen.claimed_mib)}")
    found += _awake(seen.other, other)
    found += [
        f"action {item.kind} of an ended plan is {item.state}"
        for item in seen.plan.actions
        if item.state not in SETTLED
    ]
    if seen.plan.state is not PlanState.DONE:
        # What it had done is taken back; but what else woke a host, or had it sleep, may stand.
        rests = seen.sleeper.sleep is SleepState.ASLEEP and way is Way.UP
        return found + (_asleep(seen.sleeper, sleeper) if rests else _awake(seen.sleeper, sleeper))
    if way is Way.DOWN:
        return found + _asleep(seen.sleeper, sleeper) + _is_on(seen, other)
    moved = any(item.kind is ActionKind.MIGRATE and item.state is ActionState.DONE for item in seen.plan.actions)
    return found + _awake(seen.sleeper, sleeper) + (_is_on(seen, sleeper) if moved else [])


def _is_on(seen: Seen, host: str) -> list[str]:
    return [f"the plan is done, and Nova has the server on {seen.host}, not on {host}"] * (seen.host != host)


def _awake(host: HostSeen, name: str) -> list[str]:
    found = [f"{name} is {' '.join(host.service)} in Nova"] * (host.service != ENABLED)
    if host.sleep is not None and host.sleep not in ENDED:
        found.append(f"the sleep of {name} is {host.sleep}")
    found += [f"{name} lends {host.lent_mib} MiB"] * bool(host.lent_mib)
    return found + [f"{host.stopped} processes of {name} stand still"] * bool(host.stopped)


def _asleep(host: HostSeen, name: str) -> list[str]:
    found = [f"{name} sleeps, and is {' '.join(host.service)} in Nova"] * (host.service != ASLEEP)
    if host.sleep is not SleepState.ASLEEP:
        found.append(f"the sleep of {name} is {host.sleep}")
    found += [f"{name} sleeps and lends nothing"] * (not host.lent_mib)
    awake = host.processes - host.stopped
    return found + [f"{awake} of {host.processes} processes of {name} run while it sleeps"] * bool(awake)
