"""Schemas of the history of instances."""

from pondstack.domain.telemetry import Source
from pondstack_api.schemas import base

_SHARE: base.Schema = {"type": "number", "minimum": 0, "maximum": 1}
_SECONDS: base.Schema = {"type": "number", "minimum": 0}
_SOURCE: base.Schema = {"type": "string", "enum": [str(source) for source in Source]}


def _maybe(schema: base.Schema, description: str) -> base.Schema:
    return base.nullable(base.described(schema, description))


LABEL = base.closed(
    {
        "node": _maybe(base.COUNT, "node of the guest: 0 is local memory, others pool memory; null: all of it"),
        "untouched_mib": base.described(base.COUNT, "least memory that was seen untouched"),
        "observed_seconds": base.described(base.COUNT, "for how long it was observed, after the first look"),
        "observed_until": base.described(base.TIME, "when it was looked at last (ISO 8601, UTC)"),
        "source": base.described(_SOURCE, "synthetic when a sample in it was made up"),
    }
)
HISTORY = base.closed(
    {
        "consumer_uuid": base.described(base.UUID, "instance"),
        "project_id": base.described(base.TEXT, "its project"),
        "flavor_name": base.described(base.TEXT, "its flavor"),
        "memory_mib": base.described(base.COUNT, "its memory"),
        "vcpus": base.described(base.COUNT, "its virtual CPUs"),
        "image_os": base.described(base.TEXT, "operating system by its image; empty: not known"),
        "zone": base.described(base.TEXT, "its availability zone; empty: not known"),
        "created_at": base.described(base.TIME, "when it was created (ISO 8601, UTC)"),
        "sized_at": base.described(base.TIME, "since when it has this flavor; what was seen is of the time since"),
        "deleted_at": _maybe(base.TIME, "when it was deleted; null: it is there"),
        "age_seconds": base.described(_SECONDS, "its age, or how long it lived"),
        "untouched_mib": _maybe(base.COUNT, "least memory that it was seen to leave untouched; null: not known"),
        "coverage": base.described(_SHARE, "share of its life since sized_at that was observed, 0 to 1"),
        "trains": base.described(base.FLAG, "whether so much was observed that predictions learn from it"),
        "labels": {"type": "array", "items": LABEL, "description": "what was seen of each node, and of all of it"},
        "remaining_median_seconds": _maybe(_SECONDS, "half of the instances that reached its age ended within this"),
        "remaining_p90_seconds": _maybe(_SECONDS, "as above, nine of ten"),
        "remaining_group": _maybe(
            {"type": "string", "enum": ["flavor", "project", "cloud"]},
            "which instances these are: of its project and flavor, of its project, or all",
        ),
        "remaining_at_risk": base.described(base.COUNT, "how many of them reached its age"),
        "remaining_reason": base.described(base.TEXT, "why nothing is said of its remaining life; else empty"),
        "recent_instances": base.described(
            base.COUNT, "instances of its project and flavor in the last week from which predictions learn"
        ),
        "recent_untouched_p5": _maybe(_SHARE, "share of their memory that 5 % of them undercut as untouched"),
        "recent_untouched_p25": _maybe(_SHARE, "as above, a quarter of them"),
        "recent_untouched_p50": _maybe(_SHARE, "as above, half of them"),
        "recent_source": _maybe(_SOURCE, "synthetic when one of them is"),
    }
)
