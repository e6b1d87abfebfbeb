"""Decides a plan: OpenStack Neat's four steps over a snapshot, by Zombieland's rules. Pure.

Zombieland, EuroSys'18, section 5.2: a server fits where 30 % of its working set does; where nothing fits, the zombie
that lends the least is woken. Beyond the paper: never more than Placement lets be claimed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pondstack.consolidation.decision import overload, placement, selection, underload
from pondstack.consolidation.decision.demand import Demand, demand_of
from pondstack.consolidation.decision.draft import Draft, Move
from pondstack.consolidation.decision.eligibility import left_out, residents_of
from pondstack.consolidation.decision.groups import Groups
from pondstack.consolidation.decision.reserve import Reserve
from pondstack.consolidation.decision.rooms import Room, Rooms, Totals
from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import MEMORY, HostState, HostView, Snapshot, VmView
from pondstack.domain.energy import saved_watts
from pondstack.domain.errors import BadRequest
from pondstack.domain.plan import Action, Afterwards, Effect


@dataclass(frozen=True, slots=True)
class Decision:
    """What could be done, what it would bring, and why some hosts take no part or are not emptied."""

    actions: tuple[Action, ...]
    effect: Effect
    left_out: Mapping[str, str]


def decide(snapshot: Snapshot, settings: Settings) -> Decision:
    """Return a plan over a snapshot; raises BadRequest for an algorithm that does not exist."""
    check(settings)
    decider = _Decider(snapshot, settings)
    return decider.supply() if snapshot.unplaced else decider.run()


def check(settings: Settings) -> None:
    """Raise BadRequest for an algorithm that does not exist."""
    known: Mapping[str, tuple[str, Mapping[str, object]]] = {
        "underload": (settings.underload, underload.ALGORITHMS),
        "overload": (settings.overload, overload.ALGORITHMS),
        "selection": (settings.selection, selection.ALGORITHMS),
        "placement": (settings.placement, placement.ALGORITHMS),
    }
    for step, (name, algorithms) in known.items():
        if name not in algorithms:
            raise BadRequest(f"{step} is one of {', '.join(algorithms)}, not {name!r}")


class _Decider:
    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        self._snapshot, self._settings = snapshot, settings
        self._residents = residents_of(snapshot)
        self._reasons = left_out(snapshot, self._residents, settings)
        self._choose = placement.ALGORITHMS[settings.placement]
        self._rooms = Rooms(Totals.largest(map(_totals, snapshot.hosts.values())))
        self._draft, self._groups = Draft(), Groups(snapshot)
        self._reserve = Reserve(snapshot.hosts.values(), settings.reserve_percent)
        self._thresholds: dict[str, float] = {}
        self._awake = sum(host.state is HostState.AWAKE for host in snapshot.hosts.values())
        self._hosts = {
            name: host
            for name, host in snapshot.hosts.items()
            if host.state is HostState.AWAKE and name not in self._reasons
        }

    def run(self) -> Decision:
        """Relieve the overloaded, wake what the reserve lacks, then empty the underloaded, the least loaded first."""
        overloaded = set()
        for name, host in self._hosts.items():
            if host.load[-1] >= self._threshold(host):
                overloaded.add(name)
            else:
                self._rooms.add(name, self._room(host))
        for name in sorted(overloaded, key=lambda name: (-self._hosts[name].load[-1], name)):
            self._relieve(self._hosts[name])
        self._restock()
        for name in sorted(self._hosts, key=lambda name: (self._hosts[name].load[-1], name)):
            if name not in overloaded:
                self._consider(self._hosts[name])
        return Decision(self._draft.actions(self._settings.afterwards), self._effect(), self._reasons)

    def supply(self) -> Decision:
        """Wake hosts, the least borrowed first, for servers for which Nova found none and that fit on no awake one.

        Only claims count: what such a server will do is unknown, and Nova places it by its claim.
        """
        known = {name for host in self._snapshot.hosts.values() for name in host.capacity or {}}
        self._reasons = {}
        for name, host in self._snapshot.hosts.items():
            if host.state is HostState.AWAKE and host.capacity is not None:
                self._rooms.add(name, Room(_totals(host), 0.0, 0.0, _free(host)))
        for server in sorted(self._snapshot.unplaced, key=lambda item: (-item.local_mib, item.uuid)):
            claim = tuple(sorted(item for item in server.claim.items() if item[0] in known))
            reason = server.fixed or self._supply(Demand(server, 0.0, 0, claim, False))
            if reason:
                self._reasons[server.uuid] = reason
        return Decision(self._draft.actions(Afterwards.KEEP), self._effect(), self._reasons)

    def _supply(self, demand: Demand) -> str:
        """Find a place for a server that has none; returns why no host is woken for it."""
        found = self._place(demand)
        if found is not None:
            return "" if found in self._draft.woken else f"host {found}, which is awake, has room for its claim"
        if len(self._draft.woken) >= self._settings.most_woken:
            return f"a plan wakes {self._settings.most_woken} hosts at most for servers that found no host"
        return "" if self._wake(demand) else "it fits on no host that sleeps"

    # Rooms

    def _threshold(self, host: HostView) -> float:
        """Return the load up to which a host takes servers: never more than overload_percent of its CPUs."""
        known = self._thresholds.get(host.name)
        if known is None:
            known = self._thresholds[host.name] = min(self._settings.overload_percent, self._adaptive(host))
        return known

    def _adaptive(self, host: HostView) -> float:
        if not host.load:  # it sleeps
            return self._settings.overload_percent
        longest = max((server.local_mib for server in self._residents[host.name]), default=0)
        seconds = longest / self._settings.copy_mib_per_second
        return overload.ALGORITHMS[self._settings.overload].threshold(host.load, self._settings, seconds)

    def _room(self, host: HostView) -> Room:
        assert host.cpus is not None
        assert host.free_mib is not None
        cpus = host.cpus * (self._threshold(host) - host.load[-1]) / 100.0
        return Room(_totals(host), cpus, host.free_mib.value, _free(host), self._exit(host.name))

    def _exit(self, name: str) -> float:
        """Return when the last server of a host ends; one whose end is unknown stays for ever."""
        ends = [server.remaining_seconds for server in self._residents[name]]
        return max((float("inf") if seconds is None else seconds for seconds in ends), default=0.0)

    def _place(self, demand: Demand) -> str | None:
        found = self._choose(demand, self._rooms, self._groups.allowed(demand.server))
        if found is not None:
            self._take(found, demand)
        return found

    def _take(self, name: str, demand: Demand) -> None:
        self._rooms.take(name, demand)
        self._groups.move(demand.server, name)

    # Overload

    def _relieve(self, host: HostView) -> None:
        assert host.cpus is not None
        surplus = host.cpus * (host.load[-1] - self._threshold(host)) / 100.0
        movable = [server for server in self._residents[host.name] if not self._groups.fixed(server)]
        demands = [demand_of(server, self._settings) for server in movable]
        for demand in selection.ALGORITHMS[self._settings.selection](demands):
            if surplus < 0 or self._draft.migrations >= self._settings.most_migrations:
                break
            if self._move_away(demand):
                surplus -= demand.cpus
        if surplus >= 0:
            self._draft.left.append(host.name)
            self._reasons[host.name] = "it is overloaded, and no more of its servers may or can be moved"

    def _move_away(self, demand: Demand) -> bool:
        found = self._place(demand) or self._wake(demand)
        if found is None:
            return False
        chain = found if found in self._draft.woken else demand.server.host
        self._draft.add(chain, [Move(demand, found)])
        return True

    def _wake(self, demand: Demand) -> str | None:
        """Wake the zombie of which the least is borrowed among those on which a server fits, and place it there."""
        allowed = self._groups.allowed(demand.server)
        for host in self._sleepers():
            room = self._room_awake(host)
            if room.fits(demand) and (allowed is None or host.name in allowed):
                self._wake_up(host, room)
                self._take(host.name, demand)
                return host.name
        return None

    def _sleepers(self) -> list[HostView]:
        """Return those that may be woken, the least borrowed first."""
        asleep = [
            host
            for host in self._snapshot.hosts.values()
            if host.state is HostState.ASLEEP and host.name not in self._draft.woken
        ]
        known = [host for host in asleep if host.capacity is not None and host.cpus and host.memory_mib is not None]
        return sorted(known, key=lambda host: (host.lent_mib, host.name))

    def _room_awake(self, host: HostView) -> Room:
        assert host.cpus is not None
        assert host.memory_mib is not None
        return Room(_totals(host), host.cpus * self._threshold(host) / 100.0, host.memory_mib.value, _free(host))

    def _wake_up(self, host: HostView, room: Room) -> None:
        self._draft.woken.append(host.name)
        self._rooms.add(host.name, room)
        self._reserve.add(host)

    def _restock(self) -> None:
        """Wake hosts ahead of need, while less than the reserve is free."""
        for host in self._sleepers() if self._reserve.is_short else ():
            if not self._reserve.is_short:
                break
            self._wake_up(host, self._room_awake(host))

    # Underload

    def _consider(self, host: HostView) -> None:
        reason = self._reason_to_keep(host) or self._empty(host)
        if reason:
            self._reasons.setdefault(host.name, reason)

    def _reason_to_keep(self, host: HostView) -> str:
        settings, servers = self._settings, self._residents[host.name]
        kept = underload.ALGORITHMS[settings.underload].judge(host, servers, settings)
        if kept:
            return kept
        if self._rooms[host.name].taken:
            return "it takes servers of others in this plan"
        for server in servers:
            fixed = self._groups.fixed(server)
            if fixed:
                return f"server {server.uuid} cannot be moved: {fixed}"
        return self._reason_of_budgets(host, len(servers))

    def _reason_of_budgets(self, host: HostView, migrations: int) -> str:
        settings, draft = self._settings, self._draft
        if not self._reserve.allows_without(host):
            return f"{settings.reserve_percent:g} % of what may be claimed of awake hosts stays free"
        if self._awake + len(draft.woken) - len(draft.emptied) <= settings.least_awake:
            return f"{settings.least_awake} hosts stay awake"
        if len(draft.emptied) >= settings.most_emptied:
            return f"a plan empties {settings.most_emptied} hosts at most"
        if draft.migrations + migrations > settings.most_migrations:
            return f"a plan migrates {settings.most_migrations} servers at most"
        return ""

    def _empty(self, host: HostView) -> str:
        """Find a place for all servers of a host, the greatest load first, or leave all where they are."""
        own = self._rooms.withdraw(host.name)
        demands = [demand_of(server, self._settings) for server in self._residents[host.name]]
        demands.sort(key=lambda item: (-item.cpus, -item.mib, item.server.uuid))
        placed: list[tuple[Demand, str]] = []
        for demand in demands:
            found = self._place(demand)
            if found is None:
                self._rooms.undo(placed)
                for other, name in placed:
                    self._groups.undo(other.server, name)
                if own is not None:
                    self._rooms.add(host.name, own)
                return f"server {demand.server.uuid} fits on no other host"
            placed.append((demand, found))
        self._draft.emptied[host.name] = _lendable(host, demands)
        self._reserve.remove(host)
        if placed:
            self._draft.add(host.name, [Move(demand, found) for demand, found in placed])
        return ""

    # What it brings

    def _effect(self) -> Effect:
        settings, draft = self._settings, self._draft
        moves = [move for moves in draft.moves.values() for move in moves]
        lends = settings.afterwards is not Afterwards.KEEP
        asleep = len(draft.emptied) if settings.afterwards is Afterwards.SUSPEND else 0
        woken = sum(self._snapshot.hosts[name].lent_mib for name in draft.woken)
        return Effect(
            hosts_emptied=len(draft.emptied),
            hosts_woken=len(draft.woken),
            gained_mib=(sum(draft.emptied.values()) if lends else 0) - woken,
            saved_watts=saved_watts(settings.energy, asleep, len(draft.woken)),
            power_profile=settings.power_profile,
            migrations=len(moves),
            moved_mib=sum(move.demand.server.local_mib for move in moves),
            worst_load_percent=self._worst({move.destination for move in moves}),
            whole_memory=sum(move.demand.whole for move in moves),
            overloaded_left=len(draft.left),
        )

    def _worst(self, destinations: set[str]) -> float:
        """Return how near the destination that is nearest comes to its threshold, in percent of that."""

        def percent(name: str) -> float:
            host = self._snapshot.hosts[name]
            assert host.cpus is not None
            most = host.cpus * self._threshold(host) / 100.0
            return 100.0 * (most - self._rooms[name].cpus) / most if most > 0 else 100.0

        return round(max(map(percent, destinations), default=0.0), 1)


def _totals(host: HostView) -> Totals:
    memory = 0.0 if host.memory_mib is None else host.memory_mib.value
    return Totals(host.cpus or 0.0, memory, (host.capacity or {}).get(MEMORY, 0))


def _free(host: HostView) -> dict[str, int]:
    assert host.capacity is not None
    return {name: host.claimable(name) - host.used.get(name, 0) for name in host.capacity}


def _lendable(host: HostView, demands: list[Demand]) -> int:
    """Return what a host could lend more once it is empty: what is free, and what its servers had.

    What it lends already is neither free nor theirs; with that it lends no more than it may.
    """
    assert host.free_mib is not None
    assert host.memory_mib is not None
    had = sum(demand.server.local_mib for demand in demands)
    most = host.memory_mib.value if host.most_mib is None else min(host.memory_mib.value, host.most_mib)
    return max(0, int(min(most - host.lends_mib, host.free_mib.value + had)))


def drain(name: str, servers: list[VmView]) -> tuple[Action, ...]:
    """Return the actions that empty one host, wherever Nova's scheduler finds room: an operator wants it empty."""
    moves = [Move(Demand(server, 0.0, server.local_mib, (), False), "") for server in servers]
    return Draft(emptied={name: 0}, moves={name: moves} if moves else {}).actions(Afterwards.KEEP)
