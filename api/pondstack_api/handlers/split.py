"""Splits: how the memory of an instance was divided when it was placed, and why."""

from typing import Any
from uuid import UUID

from pondstack.domain.errors import BadRequest
from pondstack.ledger.records import SplitRecord
from pondstack_api import render
from pondstack_api.request import Reply, Request


def body(record: SplitRecord) -> dict[str, Any]:
    """Return a split as the API shows it."""
    return {
        "consumer_uuid": record.instance_uuid,
        "local_mib": record.local_mib,
        "pool_mib": record.pool_mib,
        "source": record.source,
        "confidence": record.confidence,
        "reason": record.reason,
        "created_at": render.time(record.created_at),
    }


def show_split(request: Request) -> Reply:
    """Show what an instance was placed with, as nova-scheduler told it."""
    try:
        consumer = str(UUID(request.args["consumer"]))
    except ValueError:
        raise BadRequest(f"{request.args['consumer']} is no UUID; name the instance by its UUID") from None
    return Reply(body(request.services.reader.split(consumer)))
