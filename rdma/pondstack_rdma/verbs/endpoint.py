"""What two queue pairs have to know of each other, and how long the requester waits. Pure."""

import ipaddress
import math
from dataclasses import asdict, dataclass
from typing import Any, Self

RETRIES = 6
"""Of a request that nobody answers. rxe takes 7 as endless."""

_UNIT_SECONDS = 4.096e-6
_SHORTEST, _LONGEST = 8, 21
"""Exponents: 1 ms, below which devices round up, and 8.6 s."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One side of a connection."""

    number: int
    first_packet: int
    gid: str
    mtu: int
    max_reads: int

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can carry it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Undo to_dict; raises ValueError for what is no endpoint."""
        try:
            limits = {"number": 2**24, "first_packet": 2**24, "mtu": 6, "max_reads": 256}
            values = {name: int(data[name]) for name in limits}
            if all(0 <= value < limits[name] for name, value in values.items()) and values["mtu"]:
                return cls(gid=ipaddress.IPv6Address(data["gid"]).packed.hex(":", 2), **values)
        except (KeyError, TypeError) as error:
            raise ValueError("this is no endpoint of a connection") from error
        raise ValueError("an endpoint is out of range")


def acknowledge_exponent(seconds: float) -> int:
    """Return the device's time-out per try with which all tries together take at most `seconds`.

    The device waits 4.096 us times 2 to the power of it (InfiniBand specification, 9.7.6.1.3).
    """
    each = seconds / (RETRIES + 1)
    return min(max(int(math.log2(max(each, _UNIT_SECONDS) / _UNIT_SECONDS)), _SHORTEST), _LONGEST)
