"""Schemas of mitigations. The operator's answers have place and reasons as well; a project's have not."""

from pondstack.domain.mitigation import MitigationMethod, MitigationState, MitigationTrigger
from pondstack_api.schemas import base

METHOD: base.Schema = {
    "type": "string",
    "enum": [str(item) for item in MitigationMethod],
    "description": "copy: the host copies its pages to local memory; migrate: it moves to a host that has local memory",
}
DETAILS = {
    "host": base.described(base.NAME, "host where it had its pool memory (operator only)"),
    "method": base.described(METHOD, f"{METHOD['description']} (operator only)"),
    "trigger": {
        "type": "string",
        "enum": [str(item) for item in MitigationTrigger],
        "description": "who wanted it (operator only)",
    },
    "forced": base.described(base.FLAG, "whether it was begun although there was one before (operator only)"),
    "reason": base.described(base.TEXT, "why it waits, or ended so; empty: nothing to tell (operator only)"),
    "evidence": {"type": "object", "description": "what the QoS monitor saw; {} of an operator's (operator only)"},
}
MITIGATION = base.closed(
    {
        "uuid": base.described(base.UUID, "UUID of the mitigation"),
        "consumer_uuid": base.described(base.UUID, "instance whose pool memory is taken away"),
        "project_id": base.described(base.TEXT, "project of the instance"),
        "state": {
            "type": "string",
            "enum": [str(item) for item in MitigationState],
            "description": "done, failed and aborted are ends; claiming, moving, rewriting, releasing, unclaiming "
            "follow each other; undoing: it is taken back",
        },
        "pool_mib": base.described(base.COUNT, "pool memory that is taken away, in MiB"),
        "left_mib": base.described(base.COUNT, "how much of it is still to be moved, in MiB"),
        "created_at": base.described(base.TIME, "when it began (ISO 8601, UTC)"),
        "updated_at": base.described(base.TIME, "when it changed last"),
        "ended_at": base.nullable(base.described(base.TIME, "when it ended; null: it goes on")),
        **DETAILS,
    },
    optional=tuple(DETAILS),
)
MITIGATIONS = base.page("mitigations", MITIGATION)
LIST_QUERY = base.query(
    limit=base.LIMIT,
    marker=base.described(base.UUID, "the UUID of the last mitigation seen"),
    consumer_uuid=base.described(base.UUID, "an instance, a UUID"),
    project_id=base.described(base.NAME, "a project; the operator's only, unless it is one's own"),
    host=base.described(base.NAME, "the name of a host (operator only)"),
    open={"type": "string", "enum": ["true"], "description": "true: only those that go on"},
)
_OPERATION_ID = base.described(
    base.UUID, "a UUID of yours: a request that is repeated with it is carried out once, and answered with its progress"
)
BEGIN = base.closed(
    {
        "forced": base.described(base.FLAG, "although there was one before; false by default"),
        "method": base.described(
            METHOD, f"{METHOD['description']}; by default copy, and migrate where the host has no local memory left"
        ),
        "operation_id": _OPERATION_ID,
    },
    optional=("forced", "method", "operation_id"),
)
ABORT = base.closed({"operation_id": _OPERATION_ID}, optional=("operation_id",))
