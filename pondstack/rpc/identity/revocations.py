"""Whose credentials are not believed any more, as this process knows it."""

from collections.abc import Mapping
from typing import Any

from oslo_log import log

LOG = log.getLogger(__name__)


class Revocations:
    """The moment of each revocation, in seconds since 1970, by ROLE/NAME. Thread-safe: replaced as a whole."""

    def __init__(self) -> None:
        self.moments: Mapping[str, float] = {}

    def learn(self, moments: Mapping[str, Any]) -> bool:
        """Add what somebody tells who may be behind; returns whether it is news. The later moment of a name counts."""
        told = _known(moments)
        return self.note({name: max(told.get(name, at), at) for name, at in {**told, **self.moments}.items()})

    def note(self, moments: Mapping[str, Any]) -> bool:
        """Take over what is known elsewhere; returns whether it is news. What is no moment is left out."""
        known = _known(moments)
        news = known != self.moments
        for name in sorted(set(known) - set(self.moments)):
            LOG.warning("Credentials of %s that were issued until now are not believed any more", name)
        self.moments = known
        return news


def _known(moments: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): float(at) for name, at in moments.items() if isinstance(at, int | float)}
