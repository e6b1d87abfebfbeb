"""What is signed: the content of requests and replies as bytes that both ends make of what they have.

Python's JSON of what has crossed the bus is the same at both ends: keys sorted, numbers as they were.
"""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from oslo_serialization import jsonutils

from pondstack.domain.errors import Refused

KEY = "pondstack"
"""The signature's place in the context of a request, and in a reply."""


@dataclass(frozen=True, slots=True)
class Request:
    """A call as its sender means it. `to`: the topic of its receiver, with `/NAME` where only one shall have it."""

    to: str
    method: str
    version: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seal:
    """Who signed, when (seconds since 1970), with which words that never come twice, and the signature."""

    certificate: bytes
    at: float
    nonce: str
    signature: bytes

    def to_wire(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "certificate": base64.b64encode(self.certificate).decode(),
            "at": self.at,
            "nonce": self.nonce,
            "signature": base64.b64encode(self.signature).decode(),
        }

    @classmethod
    def from_wire(cls, value: Any) -> "Seal":
        """Read plain JSON from anybody; raises Refused."""
        try:
            at, nonce = value["at"], value["nonce"]
            if not isinstance(at, int | float) or isinstance(at, bool) or not isinstance(nonce, str):
                raise TypeError
            if not 0 <= at < 1e12 or not 16 <= len(nonce) <= 64:
                raise ValueError
            return cls(
                base64.b64decode(value["certificate"], validate=True),
                float(at),
                nonce,
                base64.b64decode(value["signature"], validate=True),
            )
        except (TypeError, KeyError, ValueError, binascii.Error):
            raise Refused("a message has something else in the place of its signature") from None


def plain(value: Any) -> Any:
    """Return a value as the bus carries it, such as lists for tuples."""
    return json.loads(jsonutils.dumps(value))


def request_bytes(request: Request, at: float, nonce: str) -> bytes:
    """Return what the sender of a request signs; its arguments are plain."""
    return _bytes("request", request.to, request.method, request.version, request.arguments, at, nonce)


def reply_bytes(nonce: str, answer: Any, at: float) -> bytes:
    """Return what the receiver of the request `nonce` signs; `answer` is plain, and a result or a failure."""
    return _bytes("reply", nonce, answer, at)


def _bytes(*parts: Any) -> bytes:
    return json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()
