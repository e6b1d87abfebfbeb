"""A plan that is being made: where each server goes, which hosts are emptied, which are woken. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pondstack.consolidation.decision.demand import Demand
from pondstack.domain.plan import Action, ActionKind, Afterwards

AFTER = {
    Afterwards.KEEP: (),
    Afterwards.LEND: (ActionKind.DELEGATE,),
    Afterwards.SUSPEND: (ActionKind.SUSPEND,),
}


@dataclass(frozen=True, slots=True)
class Move:
    """A server's way from its host."""

    demand: Demand
    destination: str


@dataclass(slots=True)
class Draft:
    """Moves by the host that they are made for: one that is emptied, one that is relieved, or one that is woken.

    `emptied`: with what each could lend then, in MiB. `left`: overloaded hosts that stay so. `migrations`: how many
    servers move; counted, since it is asked for each host.
    """

    emptied: dict[str, int] = field(default_factory=dict)
    moves: dict[str, list[Move]] = field(default_factory=dict)
    woken: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    migrations: int = 0

    def add(self, chain: str, moves: Sequence[Move]) -> None:
        """Have servers move for a host."""
        self.moves.setdefault(chain, []).extend(moves)
        self.migrations += len(moves)

    def actions(self, afterwards: Afterwards) -> tuple[Action, ...]:
        """Return the actions in order: hosts are woken and relieved before others are emptied."""
        found: list[tuple[str, ActionKind, Move | None]] = []
        for host in self.woken:
            found.append((host, ActionKind.WAKE, None))
            found += [(host, ActionKind.MIGRATE, move) for move in self.moves.get(host, ())]
        for host, moves in self.moves.items():
            if host not in self.woken and host not in self.emptied:
                found += [(host, ActionKind.MIGRATE, move) for move in moves]
        for host in self.emptied:
            found.append((host, ActionKind.DISABLE, None))
            found += [(host, ActionKind.MIGRATE, move) for move in self.moves.get(host, ())]
            found += [(host, kind, None) for kind in AFTER[afterwards]]
        return tuple(self._action(number, *item) for number, item in enumerate(found, 1))

    def _action(self, number: int, chain: str, kind: ActionKind, move: Move | None) -> Action:
        if move is None:
            mib = self.emptied.get(chain, 0) if kind in AFTER[Afterwards.LEND] + AFTER[Afterwards.SUSPEND] else 0
            return Action(number, kind, chain, chain, mib=mib)
        server = move.demand.server
        return Action(number, kind, chain, server.host, server.uuid, move.destination, server.local_mib)
