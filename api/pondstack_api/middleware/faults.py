"""Every error answer of the API is one JSON document with a stable code, whoever raised it."""

import webob
import webob.dec
import webob.exc
from oslo_log import log

from pondstack.domain.errors import BadRequest, PondError
from pondstack_api import errors, microversion

LOG = log.getLogger(__name__)


class Faults:
    """Renders what the layers below raise. Innermost but for the microversions, so that a fault has a version too."""

    def __init__(self, application: object, retry_after_seconds: int) -> None:
        self._application = application
        self._retry_after = retry_after_seconds

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        """Serve one request."""
        try:
            return req.get_response(self._application)
        except Exception as error:
            known = errors.translate(error)
            if known is None:
                LOG.exception("Unexpected fault in %s %s", req.method, req.path_info)
                return errors.response(500, PondError.code, errors.FAULT_DETAIL, errors.request_id_of(req))
            return self._answer(req, known)

    def _answer(self, req: webob.Request, error: PondError) -> webob.Response:
        response = errors.response(error.status, error.code, error.message, errors.request_id_of(req))
        if error.status == 503:
            LOG.warning("Answered %s %s with 503: %s", req.method, req.path_info, error.message)
            response.headers["Retry-After"] = str(self._retry_after)
        if error.status == 405:
            response.headers["Allow"] = req.environ["pondstack.allow"]
        return response


class JsonErrors:
    """Gives the error answers of other people's middleware (token check, body size, microversion) our form."""

    def __init__(self, application: object, retry_after_seconds: int) -> None:
        self._application = application
        self._retry_after = retry_after_seconds

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        """Serve one request."""
        # They choose between HTML, text and JSON by this header; the program itself speaks JSON only.
        req.headers["Accept"] = "application/json"
        response = req.get_response(self._application)
        if response.status_int < 400 or _is_ours(response):
            return response
        status = response.status_int
        known = errors.BY_STATUS.get(status, PondError if status >= 500 else BadRequest)
        detail = _DETAILS.get(status) or _text_of(response)
        extra = {"min_version": microversion.MINIMUM, "max_version": microversion.MAXIMUM} if status == 406 else None
        mapped = errors.response(status, known.code, detail, errors.request_id_of(req), extra)
        for name in ("WWW-Authenticate", "OpenStack-API-Version", "Vary"):
            if name in response.headers:
                mapped.headers[name] = response.headers[name]
        if status == 503:
            mapped.headers["Retry-After"] = str(self._retry_after)
        return mapped


def _is_ours(response: webob.Response) -> bool:
    return response.content_type == "application/json" and "errors" in response.json


def _text_of(response: webob.Response) -> str:
    """Return the last paragraph of a webob exception: what is special about it."""
    text = response.json["message"] if response.content_type == "application/json" else response.text
    return " ".join(webob.exc.strip_tags(text.strip().split("<br />")[-1]).split())


_DETAILS = {
    401: "the request has no valid token; get one from Keystone and send it in the header X-Auth-Token",
    406: (
        f"this API speaks OpenStack-API-Version: {microversion.SERVICE_TYPE} {microversion.MINIMUM}"
        f" to {microversion.SERVICE_TYPE} {microversion.MAXIMUM}"
    ),
    413: "the body is larger than [oslo_middleware] max_request_body_size",
    503: "the identity service does not answer, so no token can be checked; try again later",
}
