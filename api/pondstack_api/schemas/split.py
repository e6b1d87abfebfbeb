"""Schemas of splits."""

from pondstack_api.schemas import base

SPLIT = base.closed(
    {
        "consumer_uuid": base.described(base.UUID, "instance that was placed"),
        "project_id": base.nullable(
            base.described(base.TEXT, "project of the instance; null: Nova has not told of it; since 1.13")
        ),
        "local_mib": base.described(base.COUNT, "memory of its host, in MiB"),
        "pool_mib": base.described(base.COUNT, "pool memory, in MiB"),
        "source": base.described(
            base.NAME,
            "what decided it: fixed (the flavor), static (a share of each VM), untouched or insensitive (a model), "
            "present (what it had), repredicted (its own past), control (of the control group); or why it is all local "
            "although the flavor says otherwise, as timeout or model_budget",
        ),
        "confidence": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "0 to 1; 1 for a rule (operator only)",
        },
        "reason": base.described(base.TEXT, "why, for people (operator only)"),
        "model_version": base.nullable(
            base.described(base.NAME, "model that decided it; null: none did; since 1.15 (operator only)")
        ),
        "inputs": {
            "type": "object",
            "description": "what the model decided from: pdm, instances of history, and of untouched memory the "
            "predicted share and the margin, of insensitivity slowdown and threshold; since 1.15 (operator only)",
        },
        "created_at": base.described(base.TIME, "when it was placed with it (ISO 8601, UTC)"),
    },
    optional=("project_id", "confidence", "reason", "model_version", "inputs"),
)
SPLITS = base.page("splits", SPLIT)
LIST_QUERY = base.query(
    limit=base.LIMIT,
    marker=base.described(base.UUID, "the instance of the last split seen"),
    project_id=base.described(base.NAME, "a project; the operator's only, unless it is one's own"),
)
