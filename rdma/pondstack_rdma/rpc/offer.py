"""What a server gives a client over the broker, so that it can call."""

from dataclasses import dataclass
from typing import Any, Self

from pondstack.domain.errors import BadRequest
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.rpc.layout import Layout

VERSION = 2


@dataclass(frozen=True, slots=True)
class Offer:
    """A region for one client's calls, a word of the region of bells, and the server's half of the session's keys.

    Who reads it can write into the region, and cannot seal a frame (pondstack_rdma.rpc.session).
    """

    ticket: Ticket
    region: Key
    bells: Key
    bell: int
    session: str
    public_key: bytes
    layout: Layout

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can carry it; secrets included."""
        return {
            "version": VERSION,
            "ticket": self.ticket.to_dict(),
            "region": self.region.to_dict(),
            "bells": self.bells.to_dict(),
            "bell": self.bell,
            "session": self.session,
            "public_key": self.public_key.hex(),
            "layout": self.layout.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Undo to_dict; raises BadRequest, also for the offer of another version."""
        try:
            if data["version"] != VERSION:
                raise BadRequest(
                    f"the server offers calls of version {data['version']}, known is {VERSION}: upgrade both ends"
                )
            return cls(
                Ticket.from_dict(data["ticket"]),
                Key.from_dict(data["region"]),
                Key.from_dict(data["bells"]),
                int(data["bell"]),
                str(data["session"]),
                bytes.fromhex(data["public_key"]),
                Layout.from_dict(data["layout"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadRequest("this is no offer of a server; ask it again") from error
