"""Whose credentials are not believed any more, as this process knows it."""

from collections.abc import Mapping
from typing import Any

from oslo_log import log

LOG = log.getLogger(__name__)


class Revocations:
    """The moment of each revocation, in seconds since 1970, by ROLE/NAME. Thread-safe: replaced as a whole."""

    def __init__(self) -> None:
        self.moments: Mapping[str, float] = {}

    def note(self, moments: Mapping[str, Any]) -> bool:
        """Take over what is known elsewhere; returns whether it is news. What is no moment is left out."""
        known = {str(name): float(at) for name, at in moments.items() if isinstance(at, int | float)}
        news = known != self.moments
        for name in sorted(set(known) - set(self.moments)):
            LOG.warning("Credentials of %s that were issued until now are not believed any more", name)
        self.moments = known
        return news
