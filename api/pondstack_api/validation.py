"""Query and body against the route's JSON schemas, with a message that a person can act on."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema
from jsonschema import validators
from webob.multidict import MultiDict

from pondstack.domain.errors import BadRequest
from pondstack_api.errors import UnsupportedMediaType

Schema = dict[str, Any]


def _pattern(validator: Any, pattern: str, value: Any, schema: Schema) -> Iterable[jsonschema.ValidationError]:
    """Check `pattern`, whose `$` is the end of the text, as in JSON Schema; Python's also matches before a newline."""
    exact = f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern
    yield from jsonschema.Draft202012Validator.VALIDATORS["pattern"](validator, exact, value, schema)


_VALIDATOR = validators.extend(jsonschema.Draft202012Validator, {"pattern": _pattern})


def _explain(error: jsonschema.ValidationError, what: str) -> str:
    where = "/".join(str(part) for part in error.absolute_path)
    legal = error.schema.get("description") if isinstance(error.schema, dict) else None
    text = f"{what}{' ' + where if where else ''}: {error.message}"
    return f"{text}; legal: {legal}" if legal else text


def _check(value: Any, schema: Schema, what: str) -> None:
    errors: Iterable[jsonschema.ValidationError] = _VALIDATOR(schema).iter_errors(value)
    best = jsonschema.exceptions.best_match(errors)
    if best is not None:
        raise BadRequest(_explain(best, what))


def query(params: MultiDict, schema: Schema) -> dict[str, str]:
    """Return the query's parameters; raises BadRequest for an unknown, repeated or malformed one."""
    values: dict[str, str] = {}
    for name, value in params.items():
        if name in values:
            raise BadRequest(f"query parameter {name} is given twice")
        values[name] = value
    _check(values, schema, "query parameter")
    return values


def path(args: Mapping[str, str], schemas: Mapping[str, Schema]) -> None:
    """Check the variable parts of a path; raises BadRequest."""
    for name, value in args.items():
        _check(value, schemas[name], f"{name} of the path")


def body(raw: bytes, content_type: str, schema: Schema) -> Any:
    """Return the request's JSON body; raises BadRequest, UnsupportedMediaType."""
    if content_type != "application/json":
        got = content_type or "nothing"
        raise UnsupportedMediaType(f"send the body as application/json (header Content-Type), not as {got}")
    try:
        value = json.loads(raw, parse_constant=_refuse)
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise BadRequest("the body is nested too deeply; no request of this API needs more than a few levels") from None
    _check(value, schema, "body")
    return value


def _refuse(constant: str) -> None:
    """Refuse NaN and infinities, which Python reads and JSON does not have: no bound of a schema holds for NaN."""
    raise ValueError(f"{constant} is no number")
