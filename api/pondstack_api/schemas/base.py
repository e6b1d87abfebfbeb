"""Pieces that the schemas share. They are JSON Schema 2020-12: they validate, and make the OpenAPI document."""

from typing import Any

from pondstack.domain.causes import Cause
from pondstack.domain.printable import PRINTABLE

Schema = dict[str, Any]

UUID: Schema = {
    "type": "string",
    "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    "description": "a UUID",
}
NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": PRINTABLE,
    "description": "a name of 1 to 255 printable characters",
}
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean", "description": "true or false"}
TIME: Schema = {
    "type": "string",
    "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$",
    "description": "ISO 8601, UTC, as in 2026-11-20T20:15:00Z",
}
LIMIT: Schema = {
    "type": "string",
    "pattern": "^[1-9][0-9]{0,8}$",
    "description": "a number of objects, 1 or more",
}
LINKS: Schema = {
    "type": "array",
    "description": "links to what belongs to this; the next page has the relation `next`",
    "items": {
        "type": "object",
        "properties": {
            "rel": {"type": "string", "description": "the relation"},
            "href": {"type": "string", "description": "the address"},
        },
        "required": ["rel", "href"],
        "additionalProperties": False,
    },
}
STATE_OF_SLICE: Schema = {
    "type": "string",
    "enum": ["free", "assigning", "online", "releasing", "sanitizing", "quarantined"],
    "description": "one of free, assigning, online, releasing, sanitizing, quarantined",
}
CAUSE: Schema = {"type": "string", "enum": [str(cause) for cause in Cause]}


PATH: dict[str, Schema] = {
    "pool": {**NAME, "description": "UUID or name of the pool"},
    "index": {**NAME, "description": "index of the slice or the buffer"},
    "name": {**NAME, "description": "name of the host or the controller"},
    "host": {**NAME, "description": "name of the host"},
    "uuid": {**NAME, "description": "UUID of the allocation"},
    "loan": {**NAME, "description": "UUID of the loan"},
    "plan": {**NAME, "description": "UUID of the plan"},
    "job": {**NAME, "description": "UUID of the job"},
    "version": {**NAME, "description": "version of the model"},
    "project_id": {**NAME, "description": "id of the project"},
    "consumer": {
        "type": "string",
        "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
        "description": "UUID of the instance",
    },
}
"""The variable parts of paths, by the name that the table of routes gives them."""


def closed(properties: dict[str, Schema], optional: tuple[str, ...] = ()) -> Schema:
    """Return an object's schema: these properties and no others; all but `optional` are required."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def described(schema: Schema, description: str) -> Schema:
    """Return the schema with a description of its own: it is shown in api-ref, in OpenAPI and in errors."""
    return {**schema, "description": description}


def nullable(schema: Schema) -> Schema:
    """Return a schema that also accepts null."""
    plain = {key: value for key, value in schema.items() if key != "description"}
    return {"anyOf": [plain, {"type": "null"}], "description": schema.get("description", "")}


def query(**parameters: Schema) -> Schema:
    """Return the schema of a query string: every parameter optional, no others."""
    return closed(parameters, optional=tuple(parameters))


def page(collection: str, item: Schema) -> Schema:
    """Return the schema of one page of a list."""
    items: Schema = {"type": "array", "items": item, "description": f"one page of the {collection}"}
    return closed({collection: items, "links": LINKS}, optional=("links",))


NOTHING: Schema = {}
"""Of an answer without a body."""
CREATED_AT = described(TIME, "when it was made (ISO 8601, UTC)")
GENERATION = described(COUNT, "grows with each change; a change names the one that was read")
