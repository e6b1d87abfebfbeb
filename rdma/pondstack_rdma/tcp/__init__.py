"""TCP, two-sided: the lender's process carries out every access. For debugging and for tests, never for production."""

from pondstack_rdma.base import Transport
from pondstack_rdma.keyring import Keyring
from pondstack_rdma.model import Characteristics, Ticket
from pondstack_rdma.tcp.lender import DRIVER, TcpLender
from pondstack_rdma.tcp.link import TcpLink
from pondstack_rdma.tcp.messages import MAX_BODY_BYTES


class TcpTransport(Transport):
    """Lenders listen on free ports of `host`."""

    characteristics = Characteristics(
        driver=DRIVER,
        one_sided=False,
        serves_frozen=False,
        refused_by="lender",
        refuses_revoked_at_once=True,
        refusal_ends_link=False,
        same_machine=False,
        max_batch=256,
        max_batch_bytes=MAX_BODY_BYTES,
        max_message_bytes=16 * 2**20,
    )

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._host = host

    def lend(self, name: str) -> TcpLender:
        """Start a lender."""
        return TcpLender(self._host, name, Keyring())

    def connect(self, ticket: Ticket, timeout_seconds: float) -> TcpLink:
        """Connect a borrower."""
        return TcpLink(ticket, self.characteristics, timeout_seconds)
