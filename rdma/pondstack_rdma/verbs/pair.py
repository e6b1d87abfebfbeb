"""Queue pairs of reliable connections: the lender's, which only its device uses, and what both have in common.

Their numbers are exchanged over the control connection. librdmacm's private data (56 bytes) would carry a ticket's
secret, but pyverbs keeps Python's global lock while it waits for an event of librdmacm, and neither gives that wait a
time-out nor shows its descriptor: a lender that waits for a borrower, and a borrower whose lender is frozen, would stop
all threads of their processes.
"""

import secrets
from typing import Any

from pondstack_rdma.errors import RegistrationFailed, TransportGone
from pondstack_rdma.verbs import binding
from pondstack_rdma.verbs.binding import Access
from pondstack_rdma.verbs.endpoint import RETRIES, Endpoint, acknowledge_exponent
from pondstack_rdma.verbs.port import Port

_HOPS = 64


class QueuePair:
    """One side of a connection, in the protection domain `domain`; raises RegistrationFailed."""

    def __init__(self, port: Port, domain: Any, queue: Any, *, depth: int = 1) -> None:
        verbs = binding.load()
        self._port = port
        capacity = verbs.QPCap(max_send_wr=depth, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
        how = verbs.QPInitAttr(qp_type=binding.RELIABLE_CONNECTION, scq=queue, rcq=queue, cap=capacity, sq_sig_all=0)
        try:
            self.qp = verbs.QP(domain, how)
        except verbs.Error as error:
            raise RegistrationFailed(f"the RDMA device gives no queue pair: {error}; see `rdma resource`") from error
        self.here = Endpoint(self.qp.qp_num, secrets.randbits(24), port.gid, port.mtu, port.max_reads)

    def connect(self, peer: Endpoint, access: Access, seconds: float) -> None:
        """Make it ready for a peer, whose device may do `access`. An answer is waited for so long, retries included.

        Raises TransportGone when the device cannot reach that peer.
        """
        verbs = binding.load()
        route = verbs.GlobalRoute(dgid=verbs.GID(peer.gid), sgid_index=self._port.gid_index, hop_limit=_HOPS)
        how = verbs.QPAttr(port_num=self._port.number)
        how.qp_access_flags = access
        how.ah_attr = verbs.AHAttr(gr=route, is_global=1, port_num=self._port.number)
        how.dest_qp_num, how.rq_psn, how.sq_psn = peer.number, peer.first_packet, self.here.first_packet
        how.path_mtu = min(peer.mtu, self.here.mtu)
        how.max_rd_atomic = how.max_dest_rd_atomic = min(peer.max_reads, self.here.max_reads)
        how.timeout, how.retry_cnt = acknowledge_exponent(seconds), RETRIES
        try:
            self.qp.to_rts(how)
        except verbs.Error as error:
            raise TransportGone(f"no connection to {peer.gid}: {error}; see `rdma link` at both sides") from error

    def close(self) -> None:
        """Destroy it: its peer gets no answer any more; idempotent."""
        self.qp.close()
