"""What crosses: requests and replies as JSON of the library, as over the broker, and the question for an offer."""

from typing import Any

from oslo_messaging._drivers import common
from oslo_serialization import jsonutils

OFFER_METHOD = "offer_rdma_ignore_errors"
"""Asked over the broker. An older server knows no such method; by its ending the library logs that as debug only."""


def offer_request(driver: str) -> dict[str, Any]:
    """Return the message that asks a server for a region."""
    return {"method": OFFER_METHOD, "version": "1.0", "args": {"driver": driver}}


def offer_wanted(message: Any) -> str | None:
    """Return the transport's driver that a message asks for, None when it is another message."""
    if not isinstance(message, dict) or message.get("method") != OFFER_METHOD:
        return None
    return str((message.get("args") or {}).get("driver", ""))


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
