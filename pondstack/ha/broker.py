"""Who leads when the message broker is out of reach for some: ages in, decision out. No I/O and no clock in here.

A lease goes on for as long as the database answers. A leader that is cut off from the broker alone would keep it, and
answer nobody; so each controller calls itself through the broker, and one that hears nothing lets another one lead.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pondstack.domain.errors import BadRequest

MIN_CHECKS_PER_OUTAGE = 6
"""An outage lasts at least as long as this many checks, and as this many entries in the list of controllers.

So two controllers that lose the broker at the same moment never take each other for one that reaches it: see
`fresh_seconds`.
"""


@dataclass(frozen=True, slots=True)
class BrokerTerms:
    """How long things take, in seconds; see [ha]. `silent_seconds` 0: no leader steps aside because of the broker."""

    check_seconds: float = 1.0
    silent_seconds: float = 10.0

    @property
    def answer_seconds(self) -> float:
        """How long a controller waits for its own answer; an answer that is late is no silence."""
        return 2 * self.check_seconds

    @property
    def fresh_seconds(self) -> float:
        """Return how recently a successor must have reached the broker.

        It is far less than an outage: when the broker fails for all, the controllers notice it one after the other,
        and the lease must not wander from one to the next.
        """
        return self.silent_seconds / 2

    def cut_off(self, reached_seconds: float) -> bool:
        """Return whether a controller that last reached the broker so long ago lets others lead."""
        return 0 < self.silent_seconds < reached_seconds

    def deaf_seconds(self, agent_down_seconds: float) -> float:
        """Return after how long without an answer a leader draws no conclusion from the silence of agents.

        It is well before an agent counts as down, and not before some checks have failed.
        """
        return max(agent_down_seconds / 2, MIN_CHECKS_PER_OUTAGE * self.check_seconds)

    def reaches(self, reached_seconds: float | None) -> bool | None:
        """Return whether a controller reaches the broker, as the API shows it; None when it never did."""
        if reached_seconds is None:
            return None
        return reached_seconds <= max(self.silent_seconds, MIN_CHECKS_PER_OUTAGE * self.check_seconds)

    def validate(self, node_report_seconds: float) -> None:
        """Raise BadRequest, with what to change, for terms that cannot work together."""
        least = MIN_CHECKS_PER_OUTAGE * max(self.check_seconds, node_report_seconds)
        if 0 < self.silent_seconds < least:
            raise BadRequest(
                f"[ha] broker_silent_seconds ({self.silent_seconds:g}) must be 0, or {MIN_CHECKS_PER_OUTAGE} times "
                f"broker_check_seconds ({self.check_seconds:g}) and node_report_seconds ({node_report_seconds:g}) "
                f"at least: set it to {least:g} or more"
            )


@dataclass(frozen=True, slots=True)
class Peer:
    """Another controller, as the list of controllers has it. `reached_seconds`: since it reached the broker, if ever.

    A controller of a release that does not probe the broker never has: whether it reaches it is unknown.
    """

    name: str
    standby: bool
    reached_seconds: float | None
    lag: int = 0


def successor(peers: Iterable[Peer], terms: BrokerTerms) -> str | None:
    """Return the controller that takes the lead over from one that is cut off: it reaches the broker, is least behind.

    None when no other is known to reach the broker; then the lead stays where it is.
    """
    able = [
        peer
        for peer in peers
        if peer.standby and peer.reached_seconds is not None and peer.reached_seconds <= terms.fresh_seconds
    ]
    return min(able, key=lambda peer: (peer.lag, peer.name)).name if able else None
