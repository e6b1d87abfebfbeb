"""Schemas of telemetry."""

from pondstack.domain.telemetry import Source
from pondstack_api.schemas import base

_VALUE: base.Schema = {"type": "number"}


def _value(description: str) -> base.Schema:
    return base.nullable(base.described(_VALUE, description))


SAMPLE = base.closed(
    {
        "metric": base.described(base.NAME, "what was measured, with its unit in its name"),
        "node": base.nullable(
            base.described(base.COUNT, "node of the guest: 0 is local memory, others pool memory; null: all of it")
        ),
        "host": base.described(base.NAME, "host that the guest was on"),
        "taken_at": base.described(base.TIME, "when it was measured, or when the period began (ISO 8601, UTC)"),
        "period_seconds": base.described(base.COUNT, "length of the period; 0: a sample as the agent sent it"),
        "readings": base.described(base.COUNT, "how many readings are in it; 0: there is no value"),
        "minimum": _value("the least reading"),
        "mean": _value("the mean of the readings"),
        "maximum": _value("the greatest reading"),
        "reason": base.described(base.TEXT, "why there is no value; empty where there is one"),
        "source": {
            "type": "string",
            "enum": [str(source) for source in Source],
            "description": "where it comes from; synthetic: it is made up, or something in a period is (since 1.12)",
        },
    },
    optional=("source",),
)
TELEMETRY = base.closed(
    {
        "consumer_uuid": base.described(base.UUID, "instance that was measured"),
        "samples": {
            "type": "array",
            "items": SAMPLE,
            "description": "the newest of each metric and node, or the history, newest first",
        },
    }
)
HISTORY: base.Schema = {
    "type": "string",
    "enum": ["samples", "periods"],
    "description": "samples (a day by default) or periods (90 days), newest first; without it only the newest samples",
}
QUERY = base.query(
    history=HISTORY,
    metric=base.described(base.NAME, "only this metric"),
    limit=base.LIMIT,
)
