"""Telemetry: what agents measured of a guest from outside."""

from typing import Any

from pondstack.ledger.records import TelemetryRecord
from pondstack_api import render
from pondstack_api.pagination import limit_of
from pondstack_api.request import Reply, Request

SOURCE_SINCE = (1, 12)


def body(record: TelemetryRecord, version: tuple[int, int]) -> dict[str, Any]:
    """Return a sample as the API shows it."""
    source = {"source": record.source} if version >= SOURCE_SINCE else {}
    return {
        "metric": record.metric,
        "node": record.node,
        "host": record.host,
        "taken_at": render.time(record.taken_at),
        "period_seconds": record.period_seconds,
        "readings": record.readings,
        "minimum": record.minimum,
        "mean": record.mean,
        "maximum": record.maximum,
        "reason": record.reason,
        **source,
    }


def show_telemetry(request: Request) -> Reply:
    """Show what was measured of a guest; nothing of one that was not, or that does not exist."""
    consumer = request.args["consumer"].lower()
    history = request.query.get("history")
    whole = history is None and "limit" not in request.query  # a guest has so many metrics and nodes, and no more
    records = request.services.reader.telemetry(
        consumer,
        history=history,
        metric=request.query.get("metric"),
        limit=request.services.conf.api.page_size_max if whole else limit_of(request),
    )
    return Reply({"consumer_uuid": consumer, "samples": [body(record, request.version) for record in records]})
