"""JSON schemas of requests and answers, one file per noun."""

from pondstack_api.schemas import (
    agent,
    allocation,
    audit,
    base,
    buffer,
    controller,
    history,
    host,
    leader,
    lender,
    model,
    pool,
    root,
    slice,
    split,
    telemetry,
)

__all__ = [
    "agent",
    "allocation",
    "audit",
    "base",
    "buffer",
    "controller",
    "history",
    "host",
    "leader",
    "lender",
    "model",
    "pool",
    "root",
    "slice",
    "split",
    "telemetry",
]
