"""Lenders: the hosts that lend memory, what they lend, and how far they are with what they were asked for."""

from collections.abc import Mapping
from typing import Any

from pondstack.domain.states import OWNED
from pondstack.ledger.records import LenderRecord
from pondstack_api import render
from pondstack_api.pagination import page
from pondstack_api.request import Reply, Request

BORROWED_SINCE = (1, 18)
_OPERATION = ("operation_id", "verb", "state", "mib", "done_mib", "reason")


def operation(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a lender was asked for as the API shows it, whatever else its agent tells."""
    return {name: told[name] for name in _OPERATION}


def body(lender: LenderRecord, version: tuple[int, int]) -> dict[str, Any]:
    """Return a lender as the API shows it in a microversion."""
    borrowed_mib = sum(lender.buffers[state] for state in OWNED) * lender.buffer_mib
    borrowed = {"borrowed_mib": borrowed_mib} if version >= BORROWED_SINCE else {}
    return {
        "host": lender.host,
        "incarnation": lender.incarnation,
        "kind": lender.kind,
        "buffer_mib": lender.buffer_mib,
        "lent_mib": lender.lent_mib,
        **borrowed,
        "lendable_mib": lender.lendable_mib,
        "buffers": dict(lender.buffers),
        "operations": [operation(told) for told in lender.operations],
        "created_at": render.time(lender.created_at),
    }


def list_lenders(request: Request) -> Reply:
    """List the hosts that lend memory by name."""
    marker = request.query.get("marker")
    reader = request.services.reader
    return page(
        request,
        "lenders",
        "/lenders",
        lambda limit: reader.lenders(limit=limit, marker=marker),
        lambda lender: lender.host,
        lambda lender: body(lender, request.version),
    )


def show_lender(request: Request) -> Reply:
    """Show a host that lends memory, and the progress of what it was asked for."""
    return Reply(body(request.services.reader.lender(request.args["host"]), request.version))
