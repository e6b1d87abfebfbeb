"""Placement's claims on lent memory: the admission of guaranteed loans (Zombieland, section 4.4)."""

from collections.abc import Mapping

from pondstack.clients.placement import Placement
from pondstack.controller.lending.inventory import PROVIDER
from pondstack.domain.lending import REMOTE_CLASS


class RemoteClaims:
    """Reads them. All methods raise Unavailable."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement

    def by_consumer(self) -> Mapping[str, int] | None:
        """Return what each consumer claims, in MiB; None when Placement does not have the provider.

        It was lost or is being rebuilt then, or nothing was ever lent, and that proves nothing.
        """
        held = self._placement.allocations_of(PROVIDER)
        if held is None:
            return None
        return {consumer: amounts[REMOTE_CLASS] for consumer, amounts in held.items() if amounts.get(REMOTE_CLASS)}

    def claimed_mib(self, host: str, consumer_uuid: str) -> int:
        """Return what a consumer claims from a host, in MiB; 0 when it claims nothing on that host."""
        held = self._placement.held_by(consumer_uuid)
        if not held.get(PROVIDER) or self._placement.provider_by_name(host) not in held:
            return 0
        return held[PROVIDER].get(REMOTE_CLASS, 0)
