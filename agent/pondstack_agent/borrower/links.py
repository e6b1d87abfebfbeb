"""The links of a host to lenders: its data plane holds them, and what is linked can use a lender that sleeps."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class Links(Protocol):
    """Implemented over the data plane's control socket. A lender and its incarnation name a link."""

    def connect(self, lender: str, incarnation: str, ticket: Mapping[str, Any]) -> None:
        """Connect to a lender that is awake, unless it is connected; raises Unavailable."""

    def alive(self) -> Iterable[tuple[str, str]]:
        """Return the links that live now, none while the data plane does not answer.

        One that a crash of the data plane ended cannot be made again while its lender sleeps.
        """
