"""Schemas of the QoS monitor: decisions, what is known of one instance, the comparison of groups."""

from pondstack.domain.qos import QosAction, QosMode, Verdict
from pondstack_api.schemas import base

_PERCENT: base.Schema = {"type": "number"}
_MODE: base.Schema = {"type": "string", "enum": [str(item) for item in QosMode]}
_ACTION: base.Schema = {
    "type": "string",
    "enum": [str(item) for item in QosAction],
    "description": "leave; would_mitigate (a dry run); mitigate (begun); wait (for quiet hours or a rate limit); once "
    "(there was one before); refused (it could not begin, and is tried again)",
}
DECISION = base.closed(
    {
        "id": base.described(base.COUNT, "number of the decision"),
        "consumer_uuid": base.described(base.UUID, "instance"),
        "allocation_uuid": base.described(base.UUID, "its allocation then"),
        "project_id": base.described(base.TEXT, "its project"),
        "host": base.described(base.NAME, "its host then"),
        "verdict": {
            "type": "string",
            "enum": [str(item) for item in Verdict],
            "description": "sensitive, insensitive, or unknown (no model knows its counters): each touched more of its "
            "pool memory than it was to",
        },
        "action": _ACTION,
        "mode": base.described(_MODE, "mode of the monitor then"),
        "reason": base.described(base.TEXT, "why, for people"),
        "expected_percent": base.nullable(
            base.described(_PERCENT, "slowdown that is expected of it as it is, in percent; null: no model knows")
        ),
        "evidence": {"type": "object", "description": "what it rests on: MiB touched, limit, slowdown, models"},
        "decided_at": base.described(base.TIME, "when (ISO 8601, UTC)"),
    }
)
DECISIONS = base.page("decisions", DECISION)
LIST_QUERY = base.query(
    limit=base.LIMIT,
    marker=base.described(base.LIMIT, "the id of the last decision seen"),
    consumer_uuid=base.described(base.UUID, "an instance, a UUID"),
    action=_ACTION,
)
PERFORMANCE = base.closed(
    {
        "metric": base.described(base.NAME, "name of the metric"),
        "higher_is_better": base.described(base.FLAG, "whether more is better"),
        "readings": base.described(base.COUNT, "how many there were"),
        "mean": base.described({"type": "number"}, "their mean"),
        "newest": base.described({"type": "number"}, "the newest"),
        "updated_at": base.described(base.TIME, "when that came"),
    }
)
REPREDICTION = base.closed(
    {
        "memory_mib": base.described(base.COUNT, "its memory, in MiB"),
        "pool_mib": base.described(base.COUNT, "pool memory that it has, in MiB"),
        "wanted_mib": base.described(base.COUNT, "pool memory that it could have by its own past, in MiB"),
        "reclaimable_mib": base.described(base.COUNT, "how much more that is, in MiB"),
        "untouched_mib": base.described({"type": "number"}, "what it left untouched lately, in MiB"),
        "age_seconds": base.described(base.COUNT, "how long it has had its size"),
        "source": base.described(base.NAME, "measured, or synthetic as soon as one sample was"),
        "predicted_at": base.described(base.TIME, "when it was predicted again"),
    }
)
_DETAILS = {
    "split_source": base.nullable(
        base.described(base.NAME, "what decided its split; control: it is in the control group (operator only)")
    ),
    "reprediction": base.nullable(
        base.described(REPREDICTION, "what was predicted again of it; null: nothing was (operator only)")
    ),
    "decisions": {
        "type": "array",
        "items": DECISION,
        "description": "the newest decisions about it (operator only)",
    },
}
QOS = base.closed(
    {
        "consumer_uuid": base.described(base.UUID, "instance"),
        "project_id": base.nullable(base.described(base.TEXT, "its project; null: Nova has not told of it")),
        "corrected": base.described(
            base.FLAG, "whether its pool memory was taken away for good, since it used what it was not to need"
        ),
        "corrected_at": base.nullable(base.described(base.TIME, "when; null: it was not")),
        "performance": {"type": "array", "items": PERFORMANCE, "description": "what its project told of it"},
        **_DETAILS,
    },
    optional=tuple(_DETAILS),
)
_MEAN = base.nullable({"type": "number", "description": "mean of the group; null: nobody told"})
_BOUND = base.nullable({"type": "number", "description": "bound of the interval in percent; null: too few instances"})
COMPARISON = base.closed(
    {
        "metric": base.described(base.NAME, "name of the metric"),
        "higher_is_better": base.described(base.FLAG, "whether more is better"),
        "control_instances": base.described(base.COUNT, "instances of the control group, all local"),
        "predicted_instances": base.described(base.COUNT, "instances whose split was predicted"),
        "control_mean": _MEAN,
        "predicted_mean": _MEAN,
        "difference_percent": base.nullable(
            {"type": "number", "description": "predicted less control, in percent of control; null: a group is empty"}
        ),
        "low_percent": _BOUND,
        "high_percent": _BOUND,
    }
)
REPORT = base.closed(
    {
        "level_percent": base.described({"type": "number"}, "how often the intervals hold the truth, in percent"),
        "comparisons": {"type": "array", "items": COMPARISON, "description": "one for each metric"},
        "repredicted_instances": base.described(base.COUNT, "long-lived instances that were predicted again"),
        "reclaimable_mib": base.described(base.COUNT, "how much more of them could come from a pool, in MiB"),
    }
)
PERFORM = base.closed(
    {
        "metric": {
            "type": "string",
            "pattern": "^[a-z][a-z0-9_]{0,63}$",
            "description": "name of the metric with its unit, as p99_ms: 1 to 64 lower-case letters, digits and _",
        },
        "value": {"type": "number", "minimum": -1e15, "maximum": 1e15, "description": "the figure"},
        "higher_is_better": base.described(base.FLAG, "whether more is better"),
    }
)
