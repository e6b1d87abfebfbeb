"""Schemas of splits."""

from pondstack_api.schemas import base

SPLIT = base.closed(
    {
        "consumer_uuid": base.described(base.UUID, "instance that was placed"),
        "local_mib": base.described(base.COUNT, "memory of its host, in MiB"),
        "pool_mib": base.described(base.COUNT, "pool memory, in MiB"),
        "source": base.described(
            base.NAME,
            "what decided it: fixed (the flavor), static (a share of each VM), present (what it had); or why it is all "
            "local although the flavor says otherwise, as timeout or over_quota",
        ),
        "confidence": {"type": "number", "minimum": 0, "maximum": 1, "description": "0 to 1; 1 for a rule"},
        "reason": base.described(base.TEXT, "why, for people"),
        "created_at": base.described(base.TIME, "when it was placed with it (ISO 8601, UTC)"),
    }
)
