"""Has the rack's other controller lead, and watches: who leads, how long changes wait, whether the guest notices."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from keystoneauth1.adapter import Adapter

from pondstack_rack.demo import demo, guest_heartbeat
from pondstack_rack.demo.guest_heartbeat import Beat
from pondstack_rack.demo.write_probe import Changes
from pondstack_rack.layout import Layout, RackError
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone, pondstack_services
from pondstack_rack.wait import wait_until

Say = Callable[[str], None]

CHANGES = 10
"""So many changes are seen to work before the fail-over, and as many after it."""
LEAD_SECONDS = 60.0
WHOLE_SECONDS = 60.0
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a fail-over showed. `wait_seconds`: the longest time between two acknowledged changes."""

    before: str
    after: str
    epoch_before: int
    epoch_after: int
    wait_seconds: float
    changes: int
    refused: int
    roles: dict[str, str]
    findings: tuple[str, ...]
    guest_before: Beat | None
    guest_after: Beat | None


def run(rack: Rack, *, kill: bool, say: Say) -> Outcome:
    """Kill the leading controller (-9), or have it hand over; RackError when nobody takes over in time."""
    memory = _memory(rack.layout)
    leader, standby = _pair(memory)
    say(f"{leader['name']} leads with epoch {leader['epoch']}; {standby['name']} stands by, {standby['lag']} behind")
    first = guest_heartbeat.read(rack)
    say(str(first or f"no guest {demo.NAME} runs (make demo boots it): only the controllers are watched"))
    with Changes(memory, rack.layout.all_hosts[-1]) as changes:
        _until(lambda: len(changes.acknowledged) >= CHANGES, changes, "no change is possible")
        begun = time.monotonic()
        _end_lead(rack, memory, leader["name"], standby["name"], kill=kill, say=say)
        successor = _successor(memory, leader, changes)
        seen = time.monotonic()
        say(f"{successor['name']} leads with epoch {successor['epoch']}, seen after {seen - begun:.2f} s")
        _until(lambda: changes.since(seen) >= CHANGES, changes, f"{successor['name']} leads, but no change is possible")
    say(
        f"changes go on: {len(changes.acknowledged)} acknowledged, {len(changes.refused)} refused; "
        f"the longest wait between two was {changes.longest_wait_seconds:.2f} s"
    )
    _make_whole(rack, memory, leader["name"], say)
    last = guest_heartbeat.later(rack, first) if first else None
    if last:
        say(str(last))
    return Outcome(
        before=leader["name"],
        after=successor["name"],
        epoch_before=leader["epoch"],
        epoch_after=successor["epoch"],
        wait_seconds=changes.longest_wait_seconds,
        changes=len(changes.acknowledged),
        refused=len(changes.refused),
        roles=_roles(memory),
        findings=_findings(memory),
        guest_before=first,
        guest_after=last,
    )


def check(outcome: Outcome) -> list[str]:
    """Return what is not as it should be after a fail-over; nothing when all is well."""
    wrong = []
    if outcome.after == outcome.before:
        wrong.append(f"{outcome.before} leads again, the other one did not take over")
    if outcome.epoch_after <= outcome.epoch_before:
        wrong.append(f"epoch {outcome.epoch_after} does not follow {outcome.epoch_before}")
    if sorted(outcome.roles.values()) != ["leader", "standby"]:
        wrong.append(f"the controllers are {outcome.roles}, not a leader and a stand-by")
    wrong += [f"the audit finds {finding}" for finding in outcome.findings]
    if outcome.guest_before and outcome.guest_after:
        wrong += guest_heartbeat.compare(outcome.guest_before, outcome.guest_after)
    return wrong


def repeat(rack: Rack, times: int, *, kill: bool, say: Say) -> tuple[list[Outcome], list[str]]:
    """Fail over `times` times, the controllers in turn; ends at the first that is not as it should be, and says why."""
    outcomes: list[Outcome] = []
    for number in range(1, times + 1):
        if times > 1:
            say(f"fail-over {number} of {times}")
        outcomes.append(run(rack, kill=kill, say=say))
        if wrong := check(outcomes[-1]):
            return outcomes, wrong
    first, last = outcomes[0].guest_before, outcomes[-1].guest_after
    return outcomes, guest_heartbeat.compare(first, last) if first and last else []


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the last line: figures first."""
    if len(outcomes) > 1:
        return _summary_of_many(outcomes)
    (outcome,) = outcomes
    guest = "; the guest noticed nothing" if outcome.guest_after else ""
    return (
        f"{outcome.wait_seconds:.2f} s without a change: {outcome.before} (epoch {outcome.epoch_before}) -> "
        f"{outcome.after} (epoch {outcome.epoch_after}); the audit is clean{guest}"
    )


def _summary_of_many(outcomes: Sequence[Outcome]) -> str:
    waits = [outcome.wait_seconds for outcome in outcomes]
    first, last = outcomes[0].guest_before, outcomes[-1].guest_after
    guest = ""
    if first and last:
        guest = (
            f"; one guest, pid {last.pid}, ran through all of them: beat {first.count} to {last.count}, "
            f"{last.errors} errors"
        )
    return (
        f"{statistics.median(waits):.2f} s without a change at the median, {max(waits):.2f} s at most, of "
        f"{len(outcomes)} fail-overs (epoch {outcomes[0].epoch_before} -> {outcomes[-1].epoch_after}); the audit is "
        f"clean after each{guest}"
    )


def _memory(layout: Layout) -> Adapter:
    session = keystone.session(layout)
    return Adapter(session, service_type="memory", region_name="RegionOne", default_microversion="1.1")


def _controllers(memory: Adapter) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = memory.get("/controllers").json()["controllers"]
    return found


def _roles(memory: Adapter) -> dict[str, str]:
    return {controller["name"]: controller["role"] for controller in _controllers(memory)}


def _pair(memory: Adapter) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the leader and a stand-by."""
    by_role = {controller["role"]: controller for controller in _controllers(memory)}
    for role in ("leader", "standby"):
        if role not in by_role:
            raise RackError(f"no controller is {role} ({_roles(memory)}): `make rack-up` starts what does not run")
    return by_role["leader"], by_role["standby"]


def _until(condition: Callable[[], bool], changes: Changes, otherwise: str) -> None:
    held = wait_until(lambda: condition() or changes.failure is not None, LEAD_SECONDS, POLL_SECONDS)
    if changes.failure is not None:
        raise RackError(f"{otherwise}: {changes.failure}; log: pondstack-api.log")
    if not held:
        last = f": {changes.refused[-1]}" if changes.refused else ""
        raise RackError(f"{otherwise}, not within {LEAD_SECONDS:.0f} s{last}; log: pondstack-controller*.log")


def _end_lead(rack: Rack, memory: Adapter, leader: str, standby: str, *, kill: bool, say: Say) -> None:
    if kill:
        rack.service(pondstack_services.controller_service(leader)).kill()
        say(f"{leader} is killed (-9)")
    else:
        memory.post("/controllers/failover", json={"to": standby})
        say(f"{leader} is asked to hand over to {standby}")


def _successor(memory: Adapter, leader: dict[str, Any], changes: Changes) -> dict[str, Any]:
    """Return the controller that leads with a later epoch."""
    found: list[dict[str, Any]] = []

    def leads() -> bool:
        leaders = [controller for controller in _controllers(memory) if controller["role"] == "leader"]
        found[:] = [controller for controller in leaders if controller["epoch"] > leader["epoch"]]
        return bool(found)

    _until(leads, changes, f"nobody leads after {leader['name']}")
    return found[0]


def _make_whole(rack: Rack, memory: Adapter, name: str, say: Say) -> None:
    """Start the former leader if it was killed, and wait until it stands by."""
    rack.service(pondstack_services.controller_service(name)).start()
    if not wait_until(lambda: _roles(memory).get(name) == "standby", WHOLE_SECONDS, POLL_SECONDS):
        raise RackError(f"{name} does not stand by within {WHOLE_SECONDS:.0f} s: it is {_roles(memory).get(name)}")
    say(f"{name} stands by")


def _findings(memory: Adapter) -> tuple[str, ...]:
    """Return what an audit finds, once the rack has had the time to settle."""
    found: list[dict[str, Any]] = []

    def clean() -> bool:
        answer = memory.post("/audits", json={"repair": False}).json()
        found[:] = answer["findings"]
        return bool(answer["clean"])

    wait_until(clean, WHOLE_SECONDS, 1.0)
    return tuple(f"{finding['code']} of {finding['subject']}: {finding['detail']}" for finding in found)
