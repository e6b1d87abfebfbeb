"""Buffers of a lender: where each one is, who borrows it, and why."""

from typing import Any

from pondstack.domain.errors import NotFound
from pondstack.ledger.records import BufferRecord
from pondstack_api import render
from pondstack_api.handlers.slice import CAUSES_SINCE
from pondstack_api.pagination import page
from pondstack_api.request import Reply, Request

_INDEX_DIGITS = 9


def body(record: BufferRecord, version: tuple[int, int]) -> dict[str, Any]:
    """Return a buffer as the API shows it in a microversion."""
    cause = {"cause": record.cause} if version >= CAUSES_SINCE else {}
    return {
        "lender": record.lender,
        "incarnation": record.incarnation,
        "index": record.index,
        "offset_mib": record.offset_mib,
        "size_mib": record.size_mib,
        "kind": record.kind,
        "state": record.state,
        "host": record.host,
        "allocation_uuid": record.allocation_uuid,
        "consumer_uuid": record.consumer_uuid,
        "guaranteed": record.guaranteed,
        "generation": record.generation,
        "promised_to": record.promised_to,
        "leaving": record.leaving,
        "epoch": record.epoch,
        "reason": record.reason,
        **cause,
        "changed_at": render.time(record.changed_at),
    }


def list_buffers(request: Request) -> Reply:
    """List the buffers of a lender by index."""
    lender = request.args["host"]
    reader = request.services.reader
    query = request.query

    def fetch(limit: int) -> list[BufferRecord]:
        return reader.buffers(
            lender, state=query.get("state"), host=query.get("host"), limit=limit, marker=query.get("marker")
        )

    return page(
        request, "buffers", f"/lenders/{lender}/buffers", fetch, _key, lambda record: body(record, request.version)
    )


def show_buffer(request: Request) -> Reply:
    """Show one buffer of a lender: that of its present memory, where the index is there twice."""
    lender, text = request.args["host"], request.args["index"]
    if not (text.isascii() and text.isdigit() and len(text) <= _INDEX_DIGITS):
        raise NotFound(f"host {lender} lends no buffer {text}; buffers are numbered from 0")
    return Reply(body(request.services.reader.buffer(lender, int(text)), request.version))


def _key(record: BufferRecord) -> str:
    """Return the marker of a buffer: a former incarnation may have one of the same index."""
    return f"{record.index}:{record.incarnation}"
