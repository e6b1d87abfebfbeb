"""Slices of a pool device: where each one is, and why."""

from typing import Any

from pondstack.domain.errors import NotFound
from pondstack.ledger.records import SliceRecord
from pondstack_api import render
from pondstack_api.pagination import page
from pondstack_api.request import Reply, Request

CAUSES_SINCE = (1, 6)
_INDEX_DIGITS = 9


def body(record: SliceRecord, version: tuple[int, int]) -> dict[str, Any]:
    """Return a slice as the API shows it in a microversion."""
    cause = {"cause": record.cause} if version >= CAUSES_SINCE else {}
    return {
        "pool_uuid": record.pool_uuid,
        "pool_name": record.pool_name,
        "index": record.index,
        "state": record.state,
        "host": record.host,
        "allocation_uuid": record.allocation_uuid,
        "consumer_uuid": record.consumer_uuid,
        "epoch": record.epoch,
        "reason": record.reason,
        **cause,
        "changed_at": render.time(record.changed_at),
    }


def list_slices(request: Request) -> Reply:
    """List the slices of a pool by index."""
    reader = request.services.reader
    pool = reader.pool(request.args["pool"])
    marker = request.query.get("marker")

    def fetch(limit: int) -> list[SliceRecord]:
        return reader.slices(
            pool.uuid,
            state=request.query.get("state"),
            host=request.query.get("host"),
            limit=limit,
            marker=int(marker) if marker is not None else None,
        )

    return page(
        request,
        "slices",
        f"/pools/{pool.uuid}/slices",
        fetch,
        lambda record: record.index,
        lambda record: body(record, request.version),
    )


def show_slice(request: Request) -> Reply:
    """Show one slice of a pool."""
    reader = request.services.reader
    pool = reader.pool(request.args["pool"])
    text = request.args["index"]
    if not (text.isascii() and text.isdigit() and len(text) <= _INDEX_DIGITS):
        raise NotFound(f"pool {pool.name} has no slice {text}; slices are numbered 0 to {pool.slices_total - 1}")
    return Reply(body(reader.slice(pool.uuid, int(text)), request.version))
