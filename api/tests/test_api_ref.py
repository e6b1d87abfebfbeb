"""The reference is fresh, and its samples have the structure that the running application answers."""

import importlib.util
import json
from pathlib import Path

import jsonschema
import pytest

from pondstack_api.routes import ROUTES

ROOT = Path(__file__).resolve().parents[2]


def _load():
    spec = importlib.util.spec_from_file_location("api_ref", ROOT / "tools" / "api_ref.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


api_ref = _load()
ROUTE_LIST = [
    (path, route)
    for path, methods in ROUTES.items()
    for route in methods.values()
    if path != "/openapi.json" and route.response
]


def shape(value):
    """Return the structure of a JSON value: keys and types; of a list, that of each distinct item."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted({json.dumps(shape(item), sort_keys=True) for item in value})
    return type(value).__name__


def test_the_pages_are_fresh(capsys):
    assert api_ref.main(["--check"]) == 0, capsys.readouterr().err


def test_every_route_is_in_the_pages_with_its_fields():
    text = "\n".join(api_ref.pages().values())
    for path, methods in ROUTES.items():
        for method in methods:
            assert f"\n## {method} {path}\n" in text


def test_every_field_is_described():
    for _, path, route in api_ref.routes():
        for schema in (route.response, route.query, route.body or {}):
            for name, _, description in api_ref.fields(schema):
                assert description.replace(" (optional)", ""), f"{path}: {name}"


@pytest.fixture(scope="module")
def live():
    """The samples as the application answers them now."""
    return api_ref.live_samples()


def test_every_route_has_a_sample(live):
    assert {file.name for file in api_ref.SAMPLES.glob("*.json")} == set(live)


@pytest.mark.parametrize(
    ("path", "route"), ROUTE_LIST, ids=[f"{route.handler.__name__} {path}" for path, route in ROUTE_LIST]
)
def test_a_sample_has_the_live_structure(live, path, route):
    name = f"{route.handler.__name__}.json"
    sample = json.loads((api_ref.SAMPLES / name).read_text())
    assert shape(sample) == shape(live[name]), path
    jsonschema.validate(sample, route.response)


@pytest.mark.parametrize("name", api_ref.BODIES)
def test_a_request_sample_is_legal(name):
    sample = json.loads((api_ref.SAMPLES / f"{name}-request.json").read_text())
    (route,) = [route for _, route in ROUTE_LIST if route.handler.__name__ == name]
    jsonschema.validate(sample, route.body)
    assert sample == api_ref.BODIES[name]


def test_the_shape_tells_differences():
    assert shape({"a": 1}) != shape({"a": "1"})
    assert shape({"a": 1}) != shape({"b": 1})
    assert shape([{"a": 1}]) != shape([{"a": None}])
    assert shape([{"a": 1}, {"a": 2}]) == shape([{"a": 3}])
