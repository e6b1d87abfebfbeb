"""Schemas of buffers: what hosts lend."""

from pondstack_api.schemas import base
from pondstack_api.schemas.lender import KIND

BUFFER = base.closed(
    {
        "lender": base.described(base.NAME, "name of the host that lends it"),
        "incarnation": base.described(base.UUID, "UUID of the life of the lender's memory that it belongs to"),
        "index": base.described(base.COUNT, "number of the buffer at its lender, from 0"),
        "offset_mib": base.described(base.COUNT, "where it begins in the lender's memory, in MiB"),
        "size_mib": base.described(base.COUNT, "its size in MiB"),
        "kind": base.described(KIND, "what its lender is: active or zombie"),
        "state": base.STATE_OF_SLICE,
        "host": base.nullable(base.described(base.NAME, "host that borrows it, or is the cause of its quarantine")),
        "allocation_uuid": base.nullable(base.described(base.UUID, "allocation of lent memory that it belongs to")),
        "consumer_uuid": base.nullable(base.described(base.UUID, "instance that it belongs to")),
        "guaranteed": base.nullable(
            base.described(base.FLAG, "whether its borrower keeps it until released; false: it may be taken back")
        ),
        "generation": base.described(base.COUNT, "how many owners and promises it has had; each has keys of its own"),
        "promised_to": base.nullable(base.described(base.NAME, "the only host that may have it; null: whoever asks")),
        "leaving": base.described(base.FLAG, "whether its lender wants it back: nobody gets it any more"),
        "epoch": base.described(base.COUNT, "epoch of the controller that changed it last"),
        "reason": base.described(base.TEXT, "why it is in this state, where that needs a word"),
        "cause": base.nullable(base.described(base.CAUSE, "why it is quarantined; null: it is not; since 1.6")),
        "changed_at": base.described(base.TIME, "when its state changed (ISO 8601, UTC)"),
    },
    optional=("cause",),
)
BUFFERS = base.page("buffers", BUFFER)
LIST_QUERY = base.query(
    limit=base.LIMIT,
    marker={
        "type": "string",
        "pattern": "^[0-9]{1,9}:[0-9a-f-]{36}$",
        "description": "index:incarnation of the last buffer seen",
    },
    state=base.STATE_OF_SLICE,
    host=base.described(base.NAME, "the name of the host that borrows"),
)
