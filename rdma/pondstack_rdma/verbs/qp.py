"""Queue pairs of lenders: each is in the protection domain of its borrower, with attributes by librdmacm."""

import ipaddress
from typing import Any

from pondstack_rdma.errors import RegistrationFailed, TransportGone
from pondstack_rdma.verbs import pyverbs_binding
from pondstack_rdma.verbs.cm_attrs import RETRIES, CmAttrs, acknowledge_exponent
from pondstack_rdma.verbs.pyverbs_binding import Access

_HOPS = 64


class QueuePair:
    """One side of a reliable connection, in the protection domain `pd`; raises RegistrationFailed."""

    def __init__(self, pd: Any, cq: Any) -> None:
        verbs = pyverbs_binding.load()
        capacity = verbs.QPCap(max_send_wr=1, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
        how = verbs.QPInitAttr(qp_type=pyverbs_binding.RELIABLE_CONNECTION, scq=cq, rcq=cq, cap=capacity, sq_sig_all=0)
        try:
            self._qp = verbs.QP(pd, how)
        except verbs.Error as error:
            raise RegistrationFailed(f"the RDMA device gives no queue pair: {error}; see `rdma resource`") from error
        self.qpn = int(self._qp.qp_num)

    def connect(self, attrs: CmAttrs, access: Access, seconds: float) -> None:
        """Move it to RTS, for a peer with the rights `access`. A request times out after `seconds`, retries included.

        Raises TransportGone when the device cannot reach that peer.
        """
        verbs = pyverbs_binding.load()
        gid = str(ipaddress.IPv6Address(attrs.dgid))
        route = verbs.GlobalRoute(
            dgid=verbs.GID(attrs.dgid.hex(":", 2)),
            sgid_index=attrs.sgid_index,
            hop_limit=_HOPS,
            traffic_class=attrs.traffic_class,
        )
        how = verbs.QPAttr(port_num=attrs.port_num)
        how.qp_access_flags = access
        how.ah_attr = verbs.AHAttr(gr=route, is_global=1, port_num=attrs.port_num)
        how.dest_qp_num, how.rq_psn, how.sq_psn = attrs.dest_qpn, attrs.rq_psn, attrs.sq_psn
        how.path_mtu = attrs.path_mtu
        how.max_rd_atomic = how.max_dest_rd_atomic = attrs.max_rd_atomic
        how.timeout, how.retry_cnt = acknowledge_exponent(seconds), RETRIES
        try:
            self._qp.to_rts(how)
        except verbs.Error as error:
            raise TransportGone(f"no connection to {gid}: {error}; see `rdma link` at both sides") from error

    def close(self) -> None:
        """Destroy it, so that its peer gets no answers any more; idempotent."""
        self._qp.close()
