"""Schemas of loans. The operator's answers have hosts and buffers as well; a project's have not."""

from pondstack_api.schemas import base
from pondstack_api.schemas.lender import KIND

RUN = base.closed(
    {
        "lender": base.described(base.NAME, "name of the host that lends them"),
        "incarnation": base.described(base.UUID, "UUID of the life of the lender's memory that they belong to"),
        "kind": base.described(KIND, "what their lender is: active or zombie"),
        "start": base.described(base.COUNT, "index of the first one"),
        "count": base.described(base.COUNT, "how many adjacent ones are alike"),
        "mib": base.described(base.COUNT, "their size in MiB"),
        "state": base.STATE_OF_SLICE,
        "escrowed": base.described(base.FLAG, "whether keys of them are in escrow: their lender may sleep"),
        "disclosed": base.described(
            base.FLAG, "whether their borrower has its key from there: they stay with it until their lender is awake"
        ),
        "leaving": base.described(base.FLAG, "whether their lender wants them back"),
    }
)
PLACE = {
    "host": base.described(base.NAME, "host that borrows (operator only)"),
    "buffers": {
        "type": "array",
        "items": RUN,
        "description": "its buffers by lender and index, adjacent ones that are alike as one (operator only)",
    },
}
LOAN = base.closed(
    {
        "uuid": base.described(base.UUID, "UUID of the loan: the allocation of lent memory that its buffers name"),
        "consumer_uuid": base.described(base.UUID, "instance that uses it"),
        "project_id": base.described(base.TEXT, "project of the instance"),
        "user_id": base.described(base.TEXT, "user of the instance"),
        "guaranteed": base.described(
            base.FLAG, "true: a part of its memory, which stays; false: for its swap disk, and may be taken back"
        ),
        "state": base.described(base.STATE_OF_SLICE, "the least advanced state of its buffers"),
        "lent_mib": base.described(base.COUNT, "what it has from lenders, in MiB"),
        "created_at": base.CREATED_AT,
        **PLACE,
    },
    optional=tuple(PLACE),
)
LOANS = base.page("loans", LOAN)
LIST_QUERY = base.query(
    limit=base.LIMIT,
    marker=base.described(base.UUID, "the UUID of the last loan seen"),
    consumer_uuid=base.described(base.UUID, "an instance, a UUID"),
    project_id=base.described(base.NAME, "a project; the operator's only, unless it is one's own"),
    guaranteed={"type": "string", "enum": ["true", "false"], "description": "true or false: only such loans"},
    host=base.described(base.NAME, "the name of the host that borrows (operator only)"),
    lender=base.described(base.NAME, "the name of a host that lends some of it (operator only)"),
)
