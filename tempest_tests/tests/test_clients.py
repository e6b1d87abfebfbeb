"""The plugin's clients and personas know every route of the API."""

import inspect
import json
import re
from typing import Any

import pytest
from tempest.lib import exceptions

from pondstack_api.routes import ROUTES
from pondstack_tempest import services
from pondstack_tempest.api.test_personas import ROUTES as PERSONA_ROUTES
from pondstack_tempest.services.base import HEADER, MemoryClient

ALL = {(method, path) for path, methods in ROUTES.items() for method in methods}
NOT_CALLS = {"raw"}


class Answer(dict[str, str]):
    """A response as RestClient gives it."""

    status = 200


class Auth:
    """Asks nobody for a token."""

    def auth_request(self, _method: str, url: str, headers: Any = None, body: Any = None, _filters: Any = None) -> Any:
        return url, headers, body


def _called(client_class: type[MemoryClient], name: str) -> tuple[str, str, dict[str, str]]:
    """Call a method with one letter for each name; return method, path and headers of its request."""
    sent: list[tuple[str, str, dict[str, str]]] = []

    class Recorder(client_class):  # type: ignore[valid-type,misc]
        def raw_request(self, url: str, method: str, headers: Any = None, body: Any = None, **_: Any) -> Any:
            sent.append((method, url, headers))
            if method in ("POST", "PUT"):
                json.loads(body)
            answer = Answer({"content-type": "application/json", "content-length": "2"})
            found, template = _route(method, url.partition("?")[0])
            answer.status = ROUTES[template][found].status
            if method == "DELETE":
                answer = Answer()
                answer.status = 204
                return answer, b""
            return answer, b"{}"

        def _log_request(self, *_: Any, **__: Any) -> None:
            """Nothing to log."""

    client = Recorder(Auth(), "memory", "RegionOne")
    client.microversion = "1.5"
    names = [
        parameter
        for parameter in inspect.signature(getattr(client_class, name)).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.name != "self"
    ]
    getattr(client, name)(*("x" for _ in names))
    (request,) = sent
    return request


def _calls() -> list[tuple[type[MemoryClient], str]]:
    return [
        (found, name)
        for found in (getattr(services, name) for name in services.__all__)
        for name in vars(found)
        if not name.startswith("_") and name not in NOT_CALLS
    ]


def _route(method: str, path: str) -> tuple[str, str]:
    """Return the route that a request goes to; one with fewer variables is the better match."""
    fits = [
        (found, template)
        for found, template in ALL
        if found == method and re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), path)
    ]
    assert fits, f"the API has no {method} {path}"
    return min(fits, key=lambda route: route[1].count("{"))


def test_the_clients_call_every_route_and_no_other() -> None:
    called = {_route(*_called(found, name)[:2]) for found, name in _calls()}
    assert called == ALL


@pytest.mark.parametrize(("client", "name"), _calls())
def test_each_call_names_its_microversion(client: type[MemoryClient], name: str) -> None:
    assert _called(client, name)[2][HEADER] == "memory 1.5"


def test_without_a_microversion_there_is_no_header() -> None:
    assert HEADER not in MemoryClient(Auth(), "memory", "RegionOne").get_headers()


def test_an_unexpected_status_is_an_error() -> None:
    class Created(MemoryClient):
        def get(self, *_: Any, **__: Any) -> Any:
            answer = Answer()
            answer.status = 201
            return answer, b"{}"

    with pytest.raises(exceptions.InvalidHttpSuccessCode):
        Created(Auth(), "memory", "RegionOne").read("/pools")


def test_every_route_is_tried_as_each_persona() -> None:
    assert {(route.method, route.path) for route in PERSONA_ROUTES} == ALL
