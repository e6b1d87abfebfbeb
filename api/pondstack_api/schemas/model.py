"""Schemas of prediction models."""

from typing import Any

from pondstack_api.schemas import base

VERSION = base.described(base.NAME, "version of the model")
PERCENT: base.Schema = {"type": "number"}


def _percent(description: str) -> base.Schema:
    return base.nullable(base.described(PERCENT, description))


_ABOUT: dict[str, Any] = {
    "version": VERSION,
    "kind": base.described(
        base.NAME, "what it predicts; um: the memory that an instance never touches; li: its slowdown on pool memory"
    ),
    "state": {
        "type": "string",
        "enum": ["candidate", "running", "retired", "demoted", "failed"],
        "description": "running: it serves; retired: it served before; candidate: it was trained, or left; demoted: it "
        "over-predicted more than its budget; failed: a training that left no model",
    },
    "created_at": base.CREATED_AT,
    "promoted_at": base.nullable(base.described(base.TIME, "when it was promoted last; null: never")),
    "sha256": base.described(base.TEXT, "hash of its ONNX file"),
    "synthetic_labels": base.nullable(
        base.described(base.COUNT, "labels that were made up, of those that it learnt from; null: it does not say")
    ),
    "untouched_percent": _percent("untouched memory that it found on the newest data (UM), in percent of the memory"),
    "over_predictions_percent": _percent("its over-predictions there (OP), in percent of the instances"),
    "pool_percent": _percent("pool share expected at the chosen point, in percent of the memory"),
    "mispredictions_percent": _percent("mispredictions expected there, in percent of the instances"),
}
_POINT = {
    "gain": base.described(PERCENT, "UM or LI, in percent"),
    "loss": base.described(PERCENT, "bound of OP or FP, in percent"),
}
_MANIFEST: base.Schema = {
    "type": "object",
    "description": "all that its training noted; what more there is depends on the kind",
    "properties": {
        "features": {"type": "array", "items": {"type": "string"}, "description": "what it predicts from, in order"},
        "curve": {
            "type": "array",
            "items": {"type": "object", "properties": _POINT},
            "description": "the settings that were measured",
        },
        "curves": {"type": "object", "description": "of kind li: such a curve for each tolerated slowdown in percent"},
        "predictor": base.described(base.TEXT, "of kind li: forest, light or analytic"),
        "source": base.described(base.TEXT, "of kind li: measured, or synthetic: it learnt from made-up samples"),
        "chosen": {"type": "object", "description": "what Eq. 1 of Pond chose of them, and what is expected of it"},
        "margins": {"type": "object", "description": "what is taken off, with a history (known) and without (cold)"},
        "data": {
            "type": "object",
            "description": "what it was trained on",
            "properties": {
                "sha256": base.described(base.TEXT, "hash of the data"),
                "lifetimes": {"type": "object", "description": "labels by source: measured, synthetic"},
                "samples": {"type": "object", "description": "of kind li: runs by source: measured, synthetic"},
                "workloads": {"type": "array", "description": "of kind li: how many to learn, to judge"},
                "examples": {"type": "array", "description": "how many to learn, to set margins, to judge"},
                "window": {"type": "array", "description": "the first and the last start"},
            },
        },
        "newest": {"type": "object", "description": "UM and OP on the newest data, of it and of what it is to beat"},
        "verdict": {"type": "object", "description": "whether it is better, and than what it is not"},
        "target_percent": base.described(PERCENT, "instances to stay within their tolerated slowdown (TP)"),
        "budget_percent": base.described(PERCENT, "mispredictions that were allowed"),
        "opset": base.described(base.COUNT, "ONNX opset"),
        "trained_at": base.described(base.TEXT, "when (ISO 8601)"),
    },
}
_SERVING: base.Schema = {
    "type": "object",
    "description": "what the leader noted while it served; null: nothing yet; since 1.15",
    "properties": {
        "models": {"type": "object", "description": "versions that serve, by kind"},
        "points": {
            "type": "object",
            "description": "what Eq. 1 of Pond chose on the curves of all that serve, by PDM in percent; 0: for "
            "flavors of a smaller PDM than the curves have",
        },
        "budget": {
            "type": "object",
            "description": "instances that models decided in four weeks: decided, failed, proven, unproven, how many "
            "may fail (allowed) and may still (left), and by version",
        },
    },
}
MODEL = base.closed({**_ABOUT, "serving": base.nullable(_SERVING), "manifest": _MANIFEST}, optional=("serving",))
MODELS = base.page("models", base.closed(_ABOUT))
LIST_QUERY = base.query(limit=base.LIMIT, marker=base.described(base.NAME, "the version of the last model seen"))
NOTHING_MORE = base.closed({})
CHANGED = base.closed(
    {
        "running": base.nullable(base.described(base.NAME, "version that serves now; null: the static share does")),
        "former": base.nullable(base.described(base.NAME, "version that served before; null: the static share did")),
    }
)
