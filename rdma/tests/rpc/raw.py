"""A client of calls over RDMA that writes what it likes, for tests of what a server makes of that."""

from pathlib import Path
from typing import Any

from pondstack.domain.errors import PondError
from pondstack_rack.wait import wait_until
from pondstack_rdma.base import Link, Transport
from pondstack_rdma.rpc.client import RpcClient
from pondstack_rdma.rpc.connection import Request
from pondstack_rdma.rpc.frame import RequestHeader
from pondstack_rdma.rpc.layout import HEADER_BYTES, Layout
from pondstack_rdma.rpc.offer import Offer
from pondstack_rdma.rpc.sealer import FrameSealer
from pondstack_rdma.rpc.server import RpcServer, ServerTerms
from pondstack_rdma.rpc.session import KeyPair, Session
from pondstack_rdma.shm import ShmTransport
from rdma.tests.harness import DEADLINE_SECONDS, TIMEOUT_SECONDS

LAYOUT = Layout(slots=2, slot_bytes=512, max_message_bytes=4096)
TORN_SECONDS = 0.05


def offered(server: RpcServer) -> tuple[Offer, Session]:
    """Return an offer of a server, and the session of its client."""
    pair = KeyPair()
    offer = server.offer(pair.public)
    return offer, pair.call(offer.public_key, offer.session)


class Raw:
    """The client, and a server that answers all."""

    def __init__(self, folder: Path, transport: Transport | None = None, max_clients: int = 64) -> None:
        self.transport = transport or ShmTransport(folder)
        self.requests: list[bytes] = []
        self.refused: list[str] = []
        terms = ServerTerms(max_clients=max_clients, sweep_seconds=0.02, linger_seconds=0.1, torn_seconds=TORN_SECONDS)
        self.server = RpcServer(self.transport.lend("server"), self._deliver, LAYOUT, terms, self._note)
        self.offer, self.session = offered(self.server)
        self.link: Link = self.transport.connect(self.offer.ticket, TIMEOUT_SECONDS)
        self.sealers = [FrameSealer(self.session, slot) for slot in range(LAYOUT.slots)]

    def _deliver(self, request: Request) -> None:
        self.requests.append(request.payload)
        request.reply(request.payload)

    def _note(self, error: PondError) -> None:
        self.refused.append(error.message)

    def client(self) -> RpcClient:
        """Return another client, which does as it should."""
        offer, session = offered(self.server)
        return RpcClient(self.transport.connect(offer.ticket, TIMEOUT_SECONDS), offer, session, self._note)

    def part(self, data: bytes, slot: int = 0) -> tuple[int, bytes]:
        """Return the number of a part, and its bytes."""
        return self.sealers[slot].part(data)

    def header(self, slot: int = 0, **fields: Any) -> bytes:
        """Return a sealed header."""
        given: dict[str, Any] = {"number": 0, "sequence": 1, "part": 0, "fragment": 0, "fragments": 1, "length": 0}
        return self.sealers[slot].header(RequestHeader(**(given | fields)))

    def frame(self, data: bytes, slot: int = 0, **fields: Any) -> tuple[bytes, bytes]:
        """Return a request of one fragment: its part, its header."""
        part, sealed = self.part(data, slot)
        return sealed, self.header(slot, part=part, length=len(sealed), **fields)

    def write_part(self, sealed: bytes, slot: int = 0) -> None:
        """Write bytes where a request is."""
        self.link.write(self.offer.region, LAYOUT.request(slot), sealed)

    def write_header(self, header: bytes, slot: int = 0) -> None:
        """Write bytes where the header of a request is."""
        self.link.write(self.offer.region, LAYOUT.header(slot), header)

    def write(self, frame: tuple[bytes, bytes], slot: int = 0) -> None:
        """Write a part, then its header."""
        self.write_part(frame[0], slot)
        self.write_header(frame[1], slot)

    def reply(self, slot: int = 0) -> bytes:
        """Return all that is there of a reply."""
        return self.link.read(self.offer.region, LAYOUT.reply(slot), HEADER_BYTES + LAYOUT.slot_bytes)

    def done(self, *wanted: bytes) -> bool:
        """Return whether just these requests are carried out, at some time."""
        return wait_until(lambda: self.requests == list(wanted), DEADLINE_SECONDS)

    def swept(self) -> None:
        """Return after the server has looked at everything, twice."""
        for _ in range(2):
            before = self.server._swept
            assert wait_until(lambda seen=before: self.server._swept > seen, DEADLINE_SECONDS)

    def noted(self, count: int, what: str = "") -> bool:
        """Return whether so many frames are refused, at some time, the last one for that."""
        return wait_until(lambda: len(self.refused) == count, DEADLINE_SECONDS) and what in self.refused[-1]

    def close(self) -> None:
        """Hang up, and end the server."""
        self.link.close()
        self.server.close()
