"""Schemas of jobs of the planner. What a job may ask for is bounded by pondstack.planner.job.bounds."""

from pondstack.domain.planner_job import JobState
from pondstack.planner.job.bounds import BOUNDS, Bound
from pondstack.planner.job.order import RANGES, Source
from pondstack_api.schemas import base
from pondstack_api.schemas.plan import OPERATION_ID


def _one(bound: Bound) -> base.Schema:
    if bound.words:
        return {"type": "string", "enum": list(bound.words)}
    return {"type": "integer" if bound.whole else "number", "minimum": bound.least, "maximum": bound.most}


def _setting(bound: Bound) -> base.Schema:
    unit = f" in {bound.unit}" if bound.unit else ""
    default = list(bound.default) if bound.many else bound.default
    described = {"description": f"{bound.about}{unit}; default {default}"}
    if not bound.many:
        return _one(bound) | described
    return {
        "type": "array",
        "items": _one(bound),
        "minItems": 1,
        "maxItems": bound.many,
        "uniqueItems": True,
    } | described


def _within(name: str, kind: str, text: str) -> base.Schema:
    least, most = RANGES[name]
    return {"type": kind, "minimum": least, "maximum": most, "description": text}


_SOURCE: base.Schema = {
    "type": "string",
    "enum": [str(item) for item in Source],
    "description": "cloud: this cloud's own history; generated: the synthetic trace that ships",
}
SETTINGS = base.closed({name: _setting(bound) for name, bound in BOUNDS.items()}, optional=tuple(BOUNDS))
_ASKED: dict[str, base.Schema] = {
    "source": _SOURCE,
    "window_days": _within("window_days", "number", "how far back the history of the cloud goes, in days"),
    "sockets_per_host": _within("sockets_per_host", "integer", "CPU sockets of each host of the cloud"),
    "servers": _within("servers", "integer", "servers to generate"),
    "days": _within("days", "integer", "days to generate"),
    "trace_seed": _within("trace_seed", "integer", "seed of what is generated"),
    "settings": {**SETTINGS, "description": "settings of the planner that are to be otherwise than by default"},
}
CREATE = base.closed({**_ASKED, "operation_id": OPERATION_ID}, optional=(*_ASKED, "operation_id"))
CANCEL = base.closed({"operation_id": OPERATION_ID}, optional=("operation_id",))
_STATE: base.Schema = {
    "type": "string",
    "enum": [str(item) for item in JobState],
    "description": "queued, running; ended (with a report), failed and cancelled are ends",
}
JOB = base.closed(
    {
        "uuid": base.described(base.UUID, "UUID of the job"),
        "state": _STATE,
        "order": {"type": "object", "description": "what is replayed, as it was asked for, with what is by default"},
        "synthetic": base.described(base.FLAG, "whether its trace is generated: a model, no cloud"),
        "user_id": base.nullable(base.described(base.TEXT, "user who asked for it; null: unknown")),
        "project_id": base.nullable(base.described(base.TEXT, "project of who asked for it; null: unknown")),
        "done": base.described(base.COUNT, "parts of the replay that are done"),
        "total": base.described(base.COUNT, "parts of the replay in all; 0: not known yet"),
        "tries": base.described(base.COUNT, "how often it was begun"),
        "controller": base.nullable(base.described(base.NAME, "controller that ran it last; null: none")),
        "reason": base.described(base.TEXT, "why it was begun again or ended so; empty: nothing to tell"),
        "summary": base.described(base.TEXT, "what it came to, one screen of text; empty: it has not ended"),
        "created_at": base.CREATED_AT,
        "begun_at": base.nullable(base.described(base.TIME, "when it was begun last; null: it was not yet")),
        "ended_at": base.nullable(base.described(base.TIME, "when it ended; null: it did not")),
    }
)
JOBS = base.page("planner-jobs", JOB)
LIST_QUERY = base.query(
    limit=base.LIMIT,
    marker=base.described(base.UUID, "the UUID of the last job seen"),
    state=_STATE,
)
REPORT = base.closed(
    {
        "uuid": base.described(base.UUID, "UUID of the job"),
        "answers": {"type": "object", "description": "all answers, as `pondstack-planner run --json` writes them"},
        "html": base.described(base.TEXT, "the report as one page of HTML that loads nothing from elsewhere"),
    }
)
