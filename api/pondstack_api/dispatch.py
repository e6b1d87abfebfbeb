"""The application itself: find the route, ask the policy, validate, call the handler, render its reply."""

import json
from collections.abc import Mapping
from typing import Any

import microversion_parse
import routes as router
import webob
import webob.dec

from pondstack.domain.errors import BadRequest
from pondstack_api import errors, openapi, validation
from pondstack_api.context import RequestContext
from pondstack_api.microversion import SERVICE_TYPE
from pondstack_api.request import Reply, Request
from pondstack_api.route import Route
from pondstack_api.routes import ROUTES
from pondstack_api.schemas.base import PATH
from pondstack_api.services import Services


class Dispatcher:
    """WSGI application; all its errors are exceptions that pondstack_api.middleware.faults renders."""

    def __init__(self, services: Services, table: Mapping[str, Mapping[str, Route]] = ROUTES) -> None:
        self._services = services
        self._table = table
        self._mapper = router.Mapper()
        for path in table:
            self._mapper.connect(path, action=path)

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        """Serve one request."""
        route, args = self._match(req)
        version = _version(req)
        _require_version(req, route, version)
        url = self._services.conf.api.public_url or req.application_url
        context: RequestContext = req.environ["pondstack.context"]
        if route.policy is not None:
            context.require(route.policy)
        validation.path(args, PATH)
        request = Request(
            context=context,
            services=self._services,
            args=args,
            query=validation.query(_params(req), route.query),
            body=validation.body(req.body, req.content_type, route.body) if route.body is not None else None,
            url=url,
            version=version,
            document=lambda: openapi.build(self._table, url),
        )
        return _render(route.handler(request), route.status)

    def _match(self, req: webob.Request) -> tuple[Route, dict[str, str]]:
        found = self._mapper.match(req.path_info or "/")
        if found is None:
            raise errors.RouteNotFound(f"no such path: {req.path_info}; GET /openapi.json lists all")
        methods = self._table[found.pop("action")]
        if req.method not in methods:
            allowed = ", ".join(sorted(methods))
            req.environ["pondstack.allow"] = allowed
            raise errors.MethodNotAllowed(f"{req.method} is not possible on {req.path_info}; possible: {allowed}")
        return methods[req.method], {key: value for key, value in found.items() if key != "controller"}


def _params(req: webob.Request) -> Any:
    try:
        return req.GET
    except UnicodeDecodeError:
        raise BadRequest("the query string is not UTF-8") from None


def _version(req: webob.Request) -> tuple[int, int]:
    version: microversion_parse.Version = req.environ[f"{SERVICE_TYPE}.microversion"]
    return version.major, version.minor


def _require_version(req: webob.Request, route: Route, version: tuple[int, int]) -> None:
    if version < route.since:
        asked, since = (".".join(map(str, pair)) for pair in (version, route.since))
        raise errors.RouteNotFound(
            f"{req.method} {req.path_info} came with memory {since}, the request is of memory {asked}; "
            f"send the header OpenStack-API-Version: {SERVICE_TYPE} {since}"
        )


def _render(reply: Reply, status: int) -> webob.Response:
    response = webob.Response(status=status)
    if reply.body is not None:
        response = webob.Response(status=status, content_type="application/json", charset=None)
        response.body = json.dumps(reply.body).encode()
    response.headers.update(reply.headers)
    response.cache_control.no_cache = True
    return response
