"""What crosses: requests and replies as JSON of the library, as over the broker, and the request for an offer."""

from dataclasses import dataclass
from typing import Any, Self

from oslo_messaging._drivers import common
from oslo_serialization import jsonutils

from pondstack.domain.errors import BadRequest

OFFER_METHOD = "offer_rdma_ignore_errors"
"""Asked over the broker. An older server knows no such method; by its ending the library logs that as debug only."""


OFFER_VERSION = "1.0"


@dataclass(frozen=True, slots=True)
class OfferRequest:
    """Asks a server for a region: the client's transport, and its public key of the session."""

    driver: str
    public_key: bytes

    def to_args(self) -> dict[str, Any]:
        """Return the arguments of OFFER_METHOD."""
        return {"driver": self.driver, "public_key": self.public_key.hex()}

    @classmethod
    def from_args(cls, found: Any) -> Self:
        """Undo to_args; raises BadRequest, also for a client of a release without session keys."""
        if not isinstance(found, dict) or "public_key" not in found:
            raise BadRequest(
                "this server gives offers of calls over RDMA to clients with a session key only, and the client is of "
                "an older release: upgrade it; until then its calls go over the broker"
            )
        try:
            return cls(str(found.get("driver", "")), bytes.fromhex(found["public_key"]))
        except (TypeError, ValueError) as error:
            raise BadRequest(f"this is no request for an offer: {error}") from error


def is_offer_request(message: Any) -> bool:
    """Return whether a message over the broker asks for an offer."""
    return isinstance(message, dict) and message.get("method") == OFFER_METHOD


def pack_request(context: dict[str, Any], message: dict[str, Any], monitor_seconds: int | None) -> bytes:
    """Return a request as bytes."""
    return _dump({"context": context, "message": message, "monitor": monitor_seconds})


def unpack_request(data: bytes) -> tuple[dict[str, Any], dict[str, Any], int | None]:
    """Undo pack_request; raises ValueError."""
    found = jsonutils.loads(data)
    if not isinstance(found, dict) or not all(isinstance(found.get(name), dict) for name in ("context", "message")):
        raise ValueError("this is no request of oslo.messaging")
    return found["context"], found["message"], found.get("monitor")


def pack_reply(result: Any, failure: Any) -> bytes:
    """Return a reply as bytes. `failure`: as sys.exc_info() has it, or None."""
    if failure is not None:
        return _dump({"failure": common.serialize_remote_exception(failure)})
    return _dump({"result": result})


def unpack_reply(data: bytes, allowed_modules: list[str]) -> Any:
    """Return the result; raises the server's error, as RemoteError unless it is of an allowed module."""
    found = jsonutils.loads(data)
    if "failure" in found:
        raise common.deserialize_remote_exception(found["failure"], allowed_modules)
    return found["result"]


def _dump(value: dict[str, Any]) -> bytes:
    return bytes(jsonutils.dump_as_bytes(value))
