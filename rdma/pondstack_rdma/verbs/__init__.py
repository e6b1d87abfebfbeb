"""One-sided RDMA by verbs (pyverbs), on RoCE v2: the lender's device serves, and refuses, without its CPU."""

from pondstack_rdma.base import Transport
from pondstack_rdma.keyring import Keyring
from pondstack_rdma.model import Characteristics, Ticket
from pondstack_rdma.verbs.lender import DRIVER, VerbsLender
from pondstack_rdma.verbs.link import VerbsLink

_STAGE_BYTES = 4 * 2**20
"""Pinned by each link."""


class VerbsTransport(Transport):
    """Lenders use the RDMA port whose GID is the address `host`, or the first one with an IPv4 address.

    A borrower uses that of the address from which the lender is reached. `lend` and `connect` raise NoDevice, too.
    """

    characteristics = Characteristics(
        driver=DRIVER,
        one_sided=True,
        serves_frozen=True,
        refused_by="device",
        refuses_revoked_at_once=True,
        refusal_ends_link=True,
        same_machine=False,
        max_batch=256,
        max_batch_bytes=_STAGE_BYTES,
        max_message_bytes=_STAGE_BYTES,
    )

    def __init__(self, host: str = "") -> None:
        self._host = host

    def lend(self, name: str) -> VerbsLender:
        """Start a lender."""
        return VerbsLender(self._host, name, Keyring())

    def connect(self, ticket: Ticket, timeout_seconds: float) -> VerbsLink:
        """Connect a borrower."""
        return VerbsLink(ticket, self.characteristics, timeout_seconds)
