"""What librdmacm chose for a connection, and how long its requests are tried. Pure."""

import math
from typing import NamedTuple

RETRIES = 6
"""Of a request that nobody answers. rxe takes 7 as endless."""

_UNIT_SECONDS = 4.096e-6
_SHORTEST, _LONGEST = 8, 21
"""Exponents: 1 ms, below which devices round up, and 8.6 s."""


class Path(NamedTuple):
    """From one queue pair to its peer, as verbs count."""

    gid: bytes
    """Of the peer."""
    number: int
    """Of the peer's queue pair."""
    their_packet: int
    our_packet: int
    port: int
    gid_index: int
    """Of this side."""
    mtu: int
    """1 is 256 bytes, 5 is 4096."""
    reads: int
    """That may be under way, from here and to here."""
    traffic_class: int


def acknowledge_exponent(seconds: float) -> int:
    """Return the device's time-out per try with which all tries together take at most `seconds`.

    The device waits 4.096 us times 2 to the power of it (InfiniBand specification, 9.7.6.1.3).
    """
    each = seconds / (RETRIES + 1)
    return min(max(int(math.log2(max(each, _UNIT_SECONDS) / _UNIT_SECONDS)), _SHORTEST), _LONGEST)
