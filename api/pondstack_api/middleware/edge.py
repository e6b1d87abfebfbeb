"""What every layer below may rely on: an answer comes back, a path is text, and HEAD is a GET without a body."""

from typing import Any
from urllib.parse import quote

import webob
import webob.dec
from oslo_log import log
from oslo_middleware import request_id

from pondstack.domain.errors import BadRequest, PondError
from pondstack_api import errors

LOG = log.getLogger(__name__)


def target(environ: dict[str, Any]) -> str:
    """Return what a request asked for as its client wrote it: in ASCII, whatever bytes the path has."""
    raw = (environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")).encode("latin-1")
    query = environ.get("QUERY_STRING", "")
    return quote(raw) + (f"?{quote(query.encode('latin-1'), safe=_QUERY)}" if query else "")


_QUERY = "!$&'()*+,;=:@/?%-._~"
"""What stays as it is in the query of an address (RFC 3986)."""


class LastResort:
    """The outermost layer: answers what even the layers that render errors raise, instead of hanging up."""

    def __init__(self, application: Any) -> None:
        self._application = application

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        """Serve one request."""
        try:
            return req.get_response(self._application)
        except Exception:
            LOG.exception("Unexpected fault in %s %s", req.method, target(req.environ))
            return errors.response(500, PondError.code, errors.FAULT_DETAIL, errors.request_id_of(req))


class BodyReader:
    """Reads a request's body before anybody answers: whoever is refused has sent it by then.

    A proxy that still sends it (Apache's mod_proxy_uwsgi) takes the closed connection for a broken server, and answers
    503 in place of the refusal. `most_bytes`: what is longer is left to the limit of bodies, to be refused.
    """

    def __init__(self, application: Any, most_bytes: int) -> None:
        self._application, self._most_bytes = application, most_bytes

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> Any:
        """Serve one request."""
        if 0 < (req.content_length or 0) <= self._most_bytes:
            try:
                req.make_body_seekable()
            except webob.request.DisconnectionError:
                detail = "the body ended before its Content-Length; send all of it"
                return errors.response(400, BadRequest.code, detail, errors.request_id_of(req))
        return self._application


class Edge:
    """Refuses a path that is not UTF-8, which webob raises for wherever it is read; serves HEAD as GET."""

    def __init__(self, application: Any) -> None:
        self._application = application

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        """Serve one request."""
        try:
            _ = req.path_info, req.script_name
        except UnicodeDecodeError:
            detail = "the path is not UTF-8; GET /openapi.json lists all paths"
            return errors.response(400, BadRequest.code, detail, errors.request_id_of(req))
        if req.method != "HEAD":
            return req.get_response(self._application)
        below = req.copy_get()
        response = below.get_response(self._application)
        # What the layers above read of the request.
        req.environ[request_id.ENV_REQUEST_ID] = below.environ.get(request_id.ENV_REQUEST_ID)
        return response  # webob sends no body to the server when the request is HEAD
