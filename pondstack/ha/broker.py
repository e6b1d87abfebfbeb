"""Who leads when the message broker is out of reach for some: ages in, decision out. No I/O and no clock in here.

A lease goes on for as long as the database answers. A leader that is cut off from the broker alone would keep it, and
answer nobody; so each controller calls itself through the broker, and one that hears nothing lets another one lead.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pondstack.domain.errors import BadRequest

CHECKS_IN_A_SILENCE = 6
"""So many checks, and so many entries in the list of controllers, fit into a silence.

Then two that lose the broker at the same moment never take each other for one that reaches it: see `fresh_seconds`.
"""


@dataclass(frozen=True, slots=True)
class BrokerTerms:
    """How long things take, in seconds; see [ha]. `silent_seconds` 0: nobody gives way for the broker's sake."""

    check_seconds: float = 1.0
    silent_seconds: float = 10.0

    @property
    def answer_seconds(self) -> float:
        """How long a controller waits for its own answer: one that is late is no silence."""
        return 2 * self.check_seconds

    @property
    def fresh_seconds(self) -> float:
        """How lately a successor has reached the broker.

        Far less than a silence: when the broker fails for all, each notices it a little later than another one, and
        the lease must not wander.
        """
        return self.silent_seconds / 2

    def cut_off(self, reached_seconds: float) -> bool:
        """Return whether a controller that reached the broker so long ago gives way to others."""
        return 0 < self.silent_seconds < reached_seconds

    def deaf_seconds(self, agent_down_seconds: float) -> float:
        """Return after which silence of its own a leader takes no agent's for a sign of anything.

        Well before an agent counts as down, and not before some checks have failed.
        """
        return max(agent_down_seconds / 2, CHECKS_IN_A_SILENCE * self.check_seconds)

    def reaches(self, reached_seconds: float | None) -> bool | None:
        """Return what people are told of a controller: whether it reaches the broker, None when it never did."""
        if reached_seconds is None:
            return None
        return reached_seconds <= max(self.silent_seconds, CHECKS_IN_A_SILENCE * self.check_seconds)

    def validate(self, node_report_seconds: float) -> None:
        """Raise BadRequest, with what to change, for terms that cannot work together."""
        least = CHECKS_IN_A_SILENCE * max(self.check_seconds, node_report_seconds)
        if 0 < self.silent_seconds < least:
            raise BadRequest(
                f"[ha] broker_silent_seconds ({self.silent_seconds:g}) must be 0, or {CHECKS_IN_A_SILENCE} times "
                f"broker_check_seconds ({self.check_seconds:g}) and node_report_seconds ({node_report_seconds:g}) "
                f"at least: set it to {least:g} or more"
            )


@dataclass(frozen=True, slots=True)
class Peer:
    """Another controller, as the list of controllers has it. `reached_seconds`: since it reached the broker, if ever.

    A controller of a release that does not check itself never has: it may reach the broker, and nobody knows.
    """

    name: str
    stands_by: bool
    reached_seconds: float | None
    lag: int = 0


def successor(peers: Iterable[Peer], terms: BrokerTerms) -> str | None:
    """Return who shall lead instead of one that is cut off: who reaches the broker and is least behind.

    None: nobody is known to reach it, so that the lead stays where it is.
    """
    able = [
        peer
        for peer in peers
        if peer.stands_by and peer.reached_seconds is not None and peer.reached_seconds <= terms.fresh_seconds
    ]
    return min(able, key=lambda peer: (peer.lag, peer.name)).name if able else None
