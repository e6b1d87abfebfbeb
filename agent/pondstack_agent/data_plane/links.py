"""The links that the host's data plane keeps to lenders, whatever becomes of the agent."""

from collections.abc import Mapping
from typing import Any

from pondstack.domain.errors import Unavailable
from pondstack_agent.borrower.records import name_of
from pondstack_agent.data_plane.client import DataPlane, DataPlaneRefused


class DataPlaneLinks:
    """Implements borrower.links.Links: a link has the name by which keys of that incarnation are leased."""

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane

    def connect(self, lender: str, incarnation: str, ticket: Mapping[str, Any]) -> None:
        """Connect to a lender that is awake, unless it is connected; raises Unavailable."""
        try:
            self._plane.connect(name_of(lender, incarnation), ticket)
        except DataPlaneRefused as error:  # also one of a former release, which keeps no links
            raise Unavailable(f"the data plane does not connect to lender {lender}: {error.message}") from error

    def alive(self) -> list[tuple[str, str]]:
        """Return the links that live now, none while the data plane does not answer."""
        try:
            names = self._plane.links()
        except Unavailable:
            return []
        found = (name.rpartition("@") for name in names)
        return [(lender, incarnation) for lender, at, incarnation in found if at]
