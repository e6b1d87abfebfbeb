"""Schemas of lenders: hosts that lend memory to others."""

from pondstack.domain.lending import LenderKind
from pondstack.domain.states import SliceState
from pondstack_api.schemas import base

KIND: base.Schema = {
    "type": "string",
    "enum": [str(kind) for kind in LenderKind],
    "description": "active: a host with guests; zombie: one that was emptied and sleeps while its memory serves",
}
OPERATION = base.closed(
    {
        "operation_id": base.described(base.UUID, "UUID of the operation"),
        "verb": {
            "type": "string",
            "enum": ["lend", "reclaim"],
            "description": "lend: it lends so much in all; reclaim: it takes so much back",
        },
        "state": {
            "type": "string",
            "enum": ["pending", "telling", "done"],
            "description": "pending: it works; telling: the controller has to hear of it; done: it has ended",
        },
        "mib": base.described(base.COUNT, "what was asked for, in MiB"),
        "done_mib": {"type": "integer", "description": "how much of it is there, in MiB"},
        "reason": base.described(base.TEXT, "why it is less than asked for, where that needs a word"),
    }
)
_BUFFERS = base.closed({str(state): base.described(base.COUNT, f"buffers that are {state}") for state in SliceState})

LENDER = base.closed(
    {
        "host": base.described(base.NAME, "name of the host that lends"),
        "incarnation": base.described(
            base.TEXT, "UUID of this life of its memory; empty: it lends nothing any more, but not all was let go of"
        ),
        "kind": KIND,
        "buffer_mib": base.described(base.COUNT, "size of one buffer in MiB"),
        "lent_mib": base.described(base.COUNT, "size of all its buffers in MiB, whether somebody has them or not"),
        "borrowed_mib": base.described(base.COUNT, "what of them is some host's, in MiB; since 1.18"),
        "lendable_mib": base.nullable(
            base.described(base.COUNT, "how much more it could lend, in MiB; null: it does not say")
        ),
        "buffers": base.described(_BUFFERS, "number of buffers in each state"),
        "operations": {
            "type": "array",
            "items": OPERATION,
            "description": "what it was asked to lend and to take back lately, the newest last",
        },
        "created_at": base.CREATED_AT,
    },
    optional=("borrowed_mib",),
)
LENDERS = base.page("lenders", LENDER)
LIST_QUERY = base.query(limit=base.LIMIT, marker=base.described(base.NAME, "the name of the last lender seen"))

_MIB_MAX = 2**31 - 1
_SECONDS_MAX = 365 * 86400
_OPERATION_ID = base.described(
    base.UUID, "a UUID of yours: a request that is repeated with it is carried out once, and answered with its progress"
)
DELEGATE = base.closed(
    {
        "mib": {
            "type": "integer",
            "minimum": 0,
            "maximum": _MIB_MAX,
            "description": "what it shall lend in all, in MiB, an integer from 0",
        },
        "kind": base.described(KIND, "as what: active (the default) or zombie"),
        "operation_id": _OPERATION_ID,
    },
    optional=("kind", "operation_id"),
)
RECLAIM = base.closed(
    {
        "mib": {
            "type": "integer",
            "minimum": 1,
            "maximum": _MIB_MAX,
            "description": "what it shall take back, in MiB, an integer from 1",
        },
        "seconds": {
            "type": "number",
            "minimum": 0,
            "maximum": _SECONDS_MAX,
            "description": "seconds that its borrowers have, then it takes the memory by force; by default the agent's "
            "[lending] reclaim_seconds",
        },
        "operation_id": _OPERATION_ID,
    },
    optional=("seconds", "operation_id"),
)
