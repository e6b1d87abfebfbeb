"""What a page store does with borrowed buffers, as far as tests of agents need it: a link of its own to a lender."""

from oslo_config import cfg

from pondstack.domain.errors import NotFound
from pondstack_agent.borrower.borrower import Borrower
from pondstack_rdma.base import Link
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.transports import load_transport, options_of


class LenderLink:
    """Reads and writes buffers by what the borrower has on disk of one incarnation of a lender."""

    def __init__(self, conf: cfg.ConfigOpts, borrower: Borrower, lender: str, incarnation: str) -> None:
        self._conf, self._store = conf, borrower._store
        self._lender, self._incarnation = lender, incarnation
        self._link: Link | None = None

    def read_into(self, index: int, offset: int, into: bytearray) -> None:
        """Fill a buffer of ours; raises NotFound when the borrower has no key, and what the transport raises."""
        key = self._key(index)
        self._connected().read_into(key, offset, into)

    def write(self, index: int, offset: int, data: bytes) -> None:
        """Copy a buffer of ours; raises as read_into."""
        key = self._key(index)
        self._connected().write(key, offset, data)

    def close(self) -> None:
        """Hang up."""
        if self._link is not None:
            self._link.close()

    def _key(self, index: int) -> Key:
        key = self._store.get(self._lender, self._incarnation).keys.get(index)
        if key is None:
            raise NotFound(f"buffer {index} of lender {self._lender} is not borrowed")
        return key

    def _connected(self) -> Link:
        if self._link is None:
            ticket = Ticket.from_dict(self._store.get(self._lender, self._incarnation).ticket)
            transport = load_transport(self._conf.lending.transport, options_of(self._conf.lending))
            self._link = transport.connect(ticket, 1.0)
        return self._link
