"""One line per request, with its id; the same id goes into the answer and into every other line."""

import logging as levels
import time
from collections.abc import Iterable
from typing import Any

import webob
import webob.dec
from oslo_context import context
from oslo_log import log
from oslo_middleware import request_id

from pondstack_api.middleware.edge import target

LOG = log.getLogger(__name__)

QUIET_PATHS = frozenset({"/healthcheck"})


class RequestLog(request_id.RequestId):
    """oslo.middleware's request id, with the log line. Requests that change something are INFO, reads are DEBUG."""

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        """Serve one request."""
        self.set_global_req_id(req)
        # An oslo context must exist before the first log line, or the line has no request id.
        # Its headers say nothing yet: only after the token check may a line name a user (middleware.auth.Context).
        identity = context.RequestContext(global_request_id=req.environ.get(request_id.GLOBAL_REQ_ID))
        req.environ[request_id.ENV_REQUEST_ID] = identity.request_id
        started = time.monotonic()
        response = req.get_response(self.application)
        response.headers[request_id.HTTP_RESP_HEADER_REQUEST_ID] = identity.request_id
        self._log(req, response, time.monotonic() - started)
        return response

    @staticmethod
    def _log(req: webob.Request, response: webob.Response, seconds: float) -> None:
        routine = req.method in {"GET", "HEAD"} and response.status_int < 500
        level = levels.DEBUG if routine or req.environ.get("PATH_INFO") in QUIET_PATHS else levels.INFO
        arguments: Iterable[Any] = (
            req.remote_addr or "-",
            req.method,
            target(req.environ),
            response.status_int,
            response.content_length or 0,
            seconds,
        )
        LOG.log(level, '%s "%s %s" status: %d len: %d seconds: %.3f', *arguments)
