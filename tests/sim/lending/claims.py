"""Placement's claims of guaranteed loans in a history, and what must hold of them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pondstack.controller.lending.inventory import PROVIDER
from pondstack.domain.lending import Buffer
from pondstack.domain.states import SliceState

from .. import settings
from ..invariants import Violation
from ..leadership_watch import LOOK_SECONDS
from .watch import Place

if TYPE_CHECKING:
    from ..rack import Rack

EARLY = 0.9
"""A loan is asked back after this part of the grace at the earliest: the database's clock is read at other moments."""


class LoanClaims:
    """`consumer_of`: by allocation, of the guaranteed loans that somebody was answered with."""

    def __init__(self, rack: "Rack") -> None:
        self._rack = rack
        self.consumer_of: dict[str, str] = {}
        self._gone_at: dict[str, float] = {}
        self._back: dict[str, tuple[float, float]] = {}
        self._judged: set[tuple[Place, str]] = set()

    @property
    def present(self) -> Mapping[str, int]:
        """What each consumer claims now, in MiB."""
        return self._rack.placement.providers[PROVIDER].claims

    def claim(self, consumer: str, host: str, mib: int) -> None:
        """Claim lent memory for a consumer on a host."""
        self._rack.placement.claim_lent(consumer, host, PROVIDER, mib)
        gone_at = self._gone_at.pop(consumer, None)
        if gone_at is not None:
            self._back[consumer] = gone_at, self._rack.scheduler.now

    def drop(self, consumer: str) -> None:
        """Claim nothing any more."""
        if consumer in self.present:
            self._rack.placement.drop(consumer)
            now = self._rack.scheduler.now
            gone_at, back_at = self._back.pop(consumer, (now, 0.0))
            # One that was back between two looks only, or while nobody could look and write it down, nobody has seen.
            seen = self._rack.lead.led_seconds(back_at) > settings.RECONCILE_SECONDS + LOOK_SECONDS
            self._gone_at[consumer] = now if seen else gone_at

    def only(self, consumer: str, allocation_uuid: str) -> None:
        """Of a consumer's loans only this one is claimed from now on: it was moved, or is back."""
        self.consumer_of = {
            uuid: other for uuid, other in self.consumer_of.items() if other != consumer or uuid == allocation_uuid
        }

    def look(self, buffers: Mapping[Place, Buffer]) -> None:
        """No loan is asked back for want of a claim that is there, or has gone a moment ago.

        Judged when it is asked back: a borrower that is paused still has it when its claim is there again.
        """
        asked = {
            (place, item.allocation_uuid or ""): item
            for place, item in buffers.items()
            if item.state is SliceState.RELEASING and item.reason.startswith("unclaimed")
        }
        new, self._judged = set(asked) - self._judged, set(asked)
        for key in sorted(new):
            item, consumer = asked[key], self.consumer_of.get(key[1])
            if consumer is None:
                continue
            if self._gone_seconds(consumer) < EARLY * settings.LIMITS.unclaimed_grace_seconds:
                about = f"{item.name} is asked back from {item.host}: {item.reason}"
                raise Violation(
                    "claimed_loan_taken", f"{about}; its claim went {self._gone_seconds(consumer):.1f} s ago"
                )

    def _gone_seconds(self, consumer: str) -> float:
        """Return for how long a claim has been gone, as who has just looked at Placement may know it; 0: it is there.

        Whoever leads may act by a look from before a claim came back, as long as the lease goes.
        """
        now = self._rack.scheduler.now
        if consumer in self._gone_at:
            return now - self._gone_at[consumer]
        gone_at, back_at = self._back.get(consumer, (now, now))
        return back_at - gone_at if now - back_at < settings.TERMS.lease_seconds else 0.0

    def missing(self, buffers: Mapping[Place, Buffer]) -> list[str]:
        """Return the guaranteed loans that nobody claims."""
        found = []
        for place, item in buffers.items():
            consumer = self.consumer_of.get(item.allocation_uuid or "")
            if item.state is SliceState.ONLINE and consumer is not None and consumer not in self.present:
                found.append(f"buffer {place.index} of {place.lender} is lent to {item.host} without a claim")
        return found
