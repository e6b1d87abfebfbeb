"""One consolidation: production's decision over a fleet, carried out at once."""

import math
from dataclasses import replace

from pondstack.consolidation.decision.decider import decide
from pondstack.consolidation.decision.settings import Settings as Rules
from pondstack.consolidation.decision.snapshot import HostState, HostView, Reading, Snapshot, VmView
from pondstack.domain.plan import ActionKind
from pondstack.planner.energy.fleet import CPU, MEMORY, Fleet, Guest, Host
from pondstack.planner.energy.systems import Extends
from pondstack.planner.settings import Settings

NO_END = 10**9


def consolidate(fleet: Fleet, settings: Settings) -> None:
    """Empty hosts as the fleet's system does, and have them sleep."""
    rules = Rules(
        underload_percent=settings.underload_percent,
        overload_percent=settings.overload_percent,
        working_set_percent=settings.working_set_percent,
        most_migrations=NO_END,
        most_emptied=NO_END,
        power_profile=settings.power_profile,
    )
    if fleet.system.extends is Extends.ALL:
        _run(fleet, rules, Extends.ALL)
        return
    _run(fleet, rules, Extends.NOBODY)
    if fleet.system.extends is Extends.IDLE:  # a partial migration takes all of the working set along
        less = min(settings.oasis_load_percent, settings.overload_percent)
        _run(fleet, replace(rules, underload_percent=less, working_set_percent=100.0), Extends.IDLE)


def _run(fleet: Fleet, rules: Rules, extends: Extends) -> None:
    views = {guest.name: _view(guest, extends) for guest in fleet.guests.values()}
    hosts = {_name(host): _host_view(fleet, host, views) for host in fleet.hosts}
    for action in decide(Snapshot(hosts, tuple(views.values())), rules).actions:
        if action.kind is ActionKind.MIGRATE:
            guest, host = fleet.guests[action.server_uuid], fleet.hosts[int(action.destination)]
            local = min(guest.local_mib, _need(guest, views[guest.name], rules))
            fleet.take(guest)
            fleet.put(guest, host, local)
        elif action.kind is ActionKind.SUSPEND:
            fleet.hosts[int(action.host)].awake = False
        elif action.kind is ActionKind.WAKE:
            fleet.hosts[int(action.host)].awake = True


def _need(guest: Guest, view: VmView, rules: Rules) -> int:
    """Return what goes along when a server moves: what the decision made room for."""
    if not view.extendable:
        return guest.local_mib
    return math.ceil(guest.working_set_mib * rules.working_set_percent / 100)


def _name(host: Host) -> str:
    return str(host.number)


def _view(guest: Guest, extends: Extends) -> VmView:
    """Return a server as a decision sees it: one that may leave memory behind claims none of its host in Placement."""
    extendable = extends is Extends.ALL or (extends is Extends.IDLE and guest.idle)
    claim = {CPU: round(guest.cpu * 1000)}
    if not extendable and not guest.remote_mib:
        claim[MEMORY] = guest.mib
    return VmView(
        uuid=guest.name,
        host=str(guest.host),
        local_mib=guest.local_mib,
        claim=claim,
        used_cpus=Reading(guest.used, 0.0),
        working_set_mib=Reading(guest.working_set_mib, 0.0),
        extendable=extendable,
    )


def _host_view(fleet: Fleet, host: Host, views: dict[str, VmView]) -> HostView:
    claims = [views[name].claim for name in host.guests]
    return HostView(
        name=_name(host),
        state=HostState.AWAKE if host.awake else HostState.ASLEEP,
        cpus=fleet.cpus,
        load=(100.0 * host.used / fleet.cpus,),
        memory_mib=Reading(fleet.mib, 0.0),
        free_mib=Reading(fleet.mib - host.local_mib, 0.0),
        capacity={CPU: round(fleet.cpus * 1000), MEMORY: fleet.mib},
        used={name: sum(claim.get(name, 0) for claim in claims) for name in (CPU, MEMORY)},
    )
