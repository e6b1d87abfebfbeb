"""The API as an OpenAPI 3.1 document, made from the same table and schemas that serve it."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pondstack_api import microversion
from pondstack_api.route import Route
from pondstack_api.schemas.base import PATH

_ERROR = {
    "description": "An error",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Errors"}}},
}
_ERRORS_SCHEMA = {
    "type": "object",
    "required": ["errors"],
    "properties": {
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["status", "code", "title", "detail", "request_id"],
                "properties": {
                    "status": {"type": "integer"},
                    "code": {"type": "string"},
                    "title": {"type": "string"},
                    "detail": {"type": "string"},
                    "request_id": {"type": "string"},
                },
            },
        }
    },
}


def build(table: Mapping[str, Mapping[str, Route]], url: str) -> dict[str, Any]:
    """Return the document for the API at `url`."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "pondstack: rack memory", "version": microversion.MAXIMUM},
        "servers": [{"url": url}],
        "paths": {
            path: {method.lower(): _operation(path, route) for method, route in methods.items()}
            for path, methods in table.items()
        },
        "components": {
            "schemas": {"Errors": _ERRORS_SCHEMA},
            "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}},
        },
    }


def errors_of(path: str, route: Route) -> list[int]:
    """Return the statuses of a route's errors: what its parameters, policy, body and version imply, and its own."""
    found = {400, 406, 500, *route.errors}
    if route.policy:
        found |= {401, 403, 503}
    if "{" in path or "marker" in route.query["properties"] or route.since > (1, 0):
        found.add(404)
    if route.body is not None:
        found |= {413, 415}
    return sorted(found)


def _operation(path: str, route: Route) -> dict[str, Any]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters = [{"name": name, "in": "path", "required": True, "schema": PATH[name]} for name in names]
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in route.query["properties"].items()
    ]
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "parameters": parameters,
        "security": [{"token": []}] if route.policy else [],
        "responses": {
            str(route.status): {
                "description": HTTPStatus(route.status).phrase,
                **({"content": {"application/json": {"schema": route.response}}} if route.response else {}),
            },
            **{str(status): _ERROR for status in errors_of(path, route)},
        },
    }
    if route.since > (1, 0):
        operation["x-since"] = ".".join(map(str, route.since))
    if route.policy:
        operation["x-policy"] = route.policy
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": route.body}}}
    return operation
