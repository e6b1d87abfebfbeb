"""The attributes that librdmacm chose for a queue pair, and the time-out of its requests. Pure."""

import math
from typing import NamedTuple

RETRIES = 6
"""retry_cnt: how often the device sends a request again that nobody answers. rxe retries for ever with 7."""

_UNIT_SECONDS = 4.096e-6
_SHORTEST, _LONGEST = 8, 21
"""Exponents: 1 ms, below which devices round up, and 8.6 s."""


class CmAttrs(NamedTuple):
    """What connects a queue pair to its peer. Units and names are those of ibv_qp_attr."""

    dgid: bytes
    """The peer's GID."""
    dest_qpn: int
    """The number of the peer's queue pair."""
    rq_psn: int
    """The first packet sequence number that the peer sends."""
    sq_psn: int
    """The first packet sequence number that this side sends."""
    port_num: int
    sgid_index: int
    """The index of this side's GID."""
    path_mtu: int
    """An ibv_mtu: 1 is 256 bytes, 5 is 4096 bytes."""
    max_rd_atomic: int
    """How many reads may be outstanding, in either direction."""
    traffic_class: int


def acknowledge_exponent(seconds: float) -> int:
    """Return the device's time-out per try with which all tries together take at most `seconds`.

    The device waits 4.096 us times 2 to the power of it (InfiniBand specification, 9.7.6.1.3).
    """
    each = seconds / (RETRIES + 1)
    return min(max(int(math.log2(max(each, _UNIT_SECONDS) / _UNIT_SECONDS)), _SHORTEST), _LONGEST)
