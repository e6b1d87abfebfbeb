"""Has Placement say where the servers of a plan may go, before the plan names destinations that it would refuse.

Traits are Placement's to judge, with all else that it knows of a claim. It is asked for the servers that are to move,
once for those that claim the same and want the same traits, and the plan is decided again with what it said.
"""

from collections.abc import Mapping
from dataclasses import replace

from pondstack.clients.placement import Placement
from pondstack.consolidation.decision.decider import Decision, decide
from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import HostState, HostView, Question, Snapshot, VmView

ROUNDS = 4
"""How often a plan is decided anew with what Placement said meanwhile."""
MOST_QUESTIONS = 64
"""How often Placement is asked for one plan."""
UNKNOWN = "what its flavor asks Placement for is unknown, or more than a plan asks for"
UNASKED = "Placement would have to be asked too often for one plan"


class Candidates:
    """One leader's."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement

    def decide(self, snapshot: Snapshot, settings: Settings) -> Decision:
        """Return a plan whose migrations Placement would admit now; raises Unavailable, BadRequest."""
        told: dict[Question, frozenset[str] | None] = {}
        for _ in range(ROUNDS):
            found = decide(_narrowed(snapshot, told), settings)
            moved = {action.server_uuid for action in found.actions if action.server_uuid}
            servers = [server for server in snapshot.servers if server.uuid in moved]
            servers += [server for server in snapshot.unplaced if not server.fixed]
            new = dict.fromkeys(server.question for server in servers if server.question not in told)
            if not new:
                return found
            for question in list(new)[: MOST_QUESTIONS - len(told)]:
                if question is not None:
                    told[question] = self._ask(question, snapshot.hosts)
            if None in new:
                snapshot = _fixed(snapshot, {None: UNKNOWN})
        every = (*snapshot.servers, *snapshot.unplaced)
        unasked = {server.question: UNASKED for server in every if server.question not in told}
        unasked[None] = UNKNOWN
        return decide(_narrowed(_fixed(snapshot, unasked), told), settings)

    def _ask(self, question: Question, hosts: Mapping[str, HostView]) -> frozenset[str] | None:
        """Return the hosts of Placement's candidates; None: all that seem to have room are among them.

        Of sleepers nothing can be claimed before they are awake: they are candidates unless traits are wanted.
        """
        claim, traits = question
        admitted = self._placement.candidates(dict(claim), traits)
        names = {
            name
            for name, host in hosts.items()
            if host.provider_uuid in admitted or (host.state is HostState.ASLEEP and not traits)
        }
        refused = [name for name, host in hosts.items() if name not in names and _has_room(host, claim)]
        return frozenset(names) if refused else None


def _has_room(host: HostView, claim: tuple[tuple[str, int], ...]) -> bool:
    if host.capacity is None or host.state is HostState.CLOSED:
        return False
    return all(host.capacity.get(name, 0) - host.used.get(name, 0) >= amount for name, amount in claim)


def _narrowed(snapshot: Snapshot, told: Mapping[Question, frozenset[str] | None]) -> Snapshot:
    """Return a snapshot with what Placement said of servers like these."""
    some = {question: names for question, names in told.items() if names is not None}
    candidates = dict(snapshot.candidates)
    for server in (*snapshot.servers, *snapshot.unplaced) if some else ():
        names = some.get(server.question) if server.question is not None else None
        if names is not None:
            reach = candidates.get(server.uuid)
            candidates[server.uuid] = names if reach is None else names & reach
    return replace(snapshot, candidates=candidates)


def _fixed(snapshot: Snapshot, reasons: Mapping[Question | None, str]) -> Snapshot:
    """Return a snapshot in which the servers of these questions stay where they are."""

    def stay(server: VmView) -> VmView:
        reason = reasons.get(server.question)
        return server if server.fixed or reason is None else replace(server, fixed=reason)

    servers, unplaced = tuple(map(stay, snapshot.servers)), tuple(map(stay, snapshot.unplaced))
    return replace(snapshot, servers=servers, unplaced=unplaced)
