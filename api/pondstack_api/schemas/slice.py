"""Schemas of slices."""

from pondstack_api.schemas import base

SLICE = base.closed(
    {
        "pool_uuid": base.described(base.UUID, "UUID of the slice's pool"),
        "pool_name": base.described(base.NAME, "name of the slice's pool"),
        "index": base.described(base.COUNT, "number of the slice on its device, from 0"),
        "state": base.STATE_OF_SLICE,
        "host": base.nullable(base.described(base.NAME, "host that owns the slice, or is the cause of its quarantine")),
        "allocation_uuid": base.nullable(base.described(base.UUID, "allocation that the slice belongs to")),
        "consumer_uuid": base.nullable(base.described(base.UUID, "instance that the slice belongs to")),
        "epoch": base.described(base.COUNT, "epoch of the controller that changed it last"),
        "reason": base.described(base.TEXT, "why it is in this state, where that needs a word"),
        "cause": base.nullable(base.described(base.CAUSE, "why it is quarantined; null: it is not; since 1.6")),
        "changed_at": base.described(base.TIME, "when its state changed (ISO 8601, UTC)"),
    },
    optional=("cause",),
)
SLICES = base.page("slices", SLICE)
LIST_QUERY = base.query(
    limit=base.LIMIT,
    marker={"type": "string", "pattern": "^[0-9]{1,9}$", "description": "the index of the last slice seen"},
    state=base.STATE_OF_SLICE,
    host=base.described(base.NAME, "the name of a host"),
)
