"""Queue pairs of lenders, used by the device only: each in the domain of its borrower, connected as librdmacm says."""

import ipaddress
from typing import Any

from pondstack_rdma.errors import RegistrationFailed, TransportGone
from pondstack_rdma.verbs import pyverbs_binding
from pondstack_rdma.verbs.path import RETRIES, Path, acknowledge_exponent
from pondstack_rdma.verbs.pyverbs_binding import Access

_HOPS = 64


class QueuePair:
    """One side of a connection, in the protection domain `domain`; raises RegistrationFailed."""

    def __init__(self, domain: Any, queue: Any) -> None:
        verbs = pyverbs_binding.load()
        capacity = verbs.QPCap(max_send_wr=1, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
        how = verbs.QPInitAttr(
            qp_type=pyverbs_binding.RELIABLE_CONNECTION, scq=queue, rcq=queue, cap=capacity, sq_sig_all=0
        )
        try:
            self._pair = verbs.QP(domain, how)
        except verbs.Error as error:
            raise RegistrationFailed(f"the RDMA device gives no queue pair: {error}; see `rdma resource`") from error
        self.number = int(self._pair.qp_num)

    def connect(self, path: Path, access: Access, seconds: float) -> None:
        """Make it ready for a peer, whose device may do `access`. An answer is waited for so long, retries included.

        Raises TransportGone when the device cannot reach that peer.
        """
        verbs = pyverbs_binding.load()
        gid = str(ipaddress.IPv6Address(path.gid))
        route = verbs.GlobalRoute(
            dgid=verbs.GID(path.gid.hex(":", 2)),
            sgid_index=path.gid_index,
            hop_limit=_HOPS,
            traffic_class=path.traffic_class,
        )
        how = verbs.QPAttr(port_num=path.port)
        how.qp_access_flags = access
        how.ah_attr = verbs.AHAttr(gr=route, is_global=1, port_num=path.port)
        how.dest_qp_num, how.rq_psn, how.sq_psn = path.number, path.their_packet, path.our_packet
        how.path_mtu = path.mtu
        how.max_rd_atomic = how.max_dest_rd_atomic = path.reads
        how.timeout, how.retry_cnt = acknowledge_exponent(seconds), RETRIES
        try:
            self._pair.to_rts(how)
        except verbs.Error as error:
            raise TransportGone(f"no connection to {gid}: {error}; see `rdma link` at both sides") from error

    def close(self) -> None:
        """Destroy it: its peer gets no answer any more; idempotent."""
        self._pair.close()
