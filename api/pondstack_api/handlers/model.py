"""Prediction models: what they were trained on, what is expected of them, which one serves. The operator's only."""

from typing import Any

from pondstack.domain.telemetry import Source
from pondstack.ledger.records import ModelRecord
from pondstack_api import render
from pondstack_api.pagination import page
from pondstack_api.request import Reply, Request

SERVING_SINCE = (1, 15)


def body(model: ModelRecord) -> dict[str, Any]:
    """Return a model as lists show it. A figure that its manifest does not have is null, never 0."""
    data = model.manifest.get("data", {})
    labels = data.get("lifetimes", data.get("samples"))
    newest = model.manifest.get("newest", {}).get("candidate", {})
    chosen = model.manifest.get("chosen", {})
    return {
        "version": model.version,
        "kind": model.kind,
        "state": model.state,
        "created_at": render.time(model.created_at),
        "promoted_at": None if model.promoted_at is None else render.time(model.promoted_at),
        "sha256": model.sha256,
        "synthetic_labels": None if labels is None else labels.get(Source.SYNTHETIC, 0),
        "untouched_percent": newest.get("um"),
        "over_predictions_percent": newest.get("op"),
        "pool_percent": chosen.get("pool_percent"),
        "mispredictions_percent": chosen.get("mispredictions_percent"),
    }


def list_models(request: Request) -> Reply:
    """List the prediction models, the newest first."""
    marker = request.query.get("marker")
    models = request.services.reader.models
    return page(
        request,
        "models",
        "/models",
        lambda limit: models.models(limit=limit, marker=marker),
        lambda model: model.version,
        body,
    )


def show_model(request: Request) -> Reply:
    """Show a prediction model, with all of its manifest and without its blob."""
    model = request.services.reader.models.model(request.args["version"])
    serving = {"serving": model.serving or None} if request.version >= SERVING_SINCE else {}
    return Reply({**body(model), **serving, "manifest": model.manifest})


def promote_model(request: Request) -> Reply:
    """Have a prediction model serve, whatever its verdict was. The leader computes its decisions at once."""
    version = _known(request)
    return Reply(request.services.controller.promote_model(version=version))


def rollback_model(request: Request) -> Reply:
    """Retire the model that runs; the one before it serves again, or the static share. 409 where another one runs."""
    version = _known(request)
    return Reply(request.services.controller.rollback_model(version=version))


def _known(request: Request) -> str:
    return request.services.reader.models.model(request.args["version"]).version
