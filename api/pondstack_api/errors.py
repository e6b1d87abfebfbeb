"""Errors that only HTTP knows, beside pondstack.domain.errors, and how any of them becomes the JSON error document."""

import json
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import oslo_messaging
import webob
from kombu.exceptions import OperationalError
from oslo_db import exception as db_exception
from oslo_log import log
from oslo_middleware import request_id as request_ids

from pondstack.domain.errors import BadRequest, NotFound, PondError, Unavailable
from pondstack_api.controller import SILENT

LOG = log.getLogger(__name__)


class Unauthorized(PondError):
    """The request has no valid token."""

    code = "pondstack.unauthorized"
    status = 401


class Forbidden(PondError):
    """The token's roles do not allow the request."""

    code = "pondstack.forbidden"
    status = 403


class RouteNotFound(NotFound):
    """The API has no such path."""

    code = "pondstack.route_not_found"


class MethodNotAllowed(PondError):
    """The path exists, but not with this method."""

    code = "pondstack.method_not_allowed"
    status = 405


class VersionNotSupported(PondError):
    """The API does not speak the microversion that was asked for."""

    code = "pondstack.version_not_supported"
    status = 406


class BodyTooLarge(PondError):
    """The request's body is larger than the API accepts."""

    code = "pondstack.body_too_large"
    status = 413


class UnsupportedMediaType(PondError):
    """The request's body is not declared as JSON."""

    code = "pondstack.unsupported_media_type"
    status = 415


BY_STATUS: dict[int, type[PondError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: VersionNotSupported,
    413: BodyTooLarge,
    415: UnsupportedMediaType,
    503: Unavailable,
}
"""The code of an answer that a middleware of somebody else made."""

FAULT_DETAIL = "an unexpected fault of the service; its log has the details under this request id"

CONTROLLER_SILENT = (oslo_messaging.MessagingTimeout, oslo_messaging.MessageDeliveryFailure, OperationalError)


def translate(error: Exception) -> PondError | None:
    """Return the error of ours that `error` means, None when it is a fault of the program."""
    if isinstance(error, PondError):
        return error
    if isinstance(error, CONTROLLER_SILENT):
        return Unavailable(SILENT)
    if isinstance(error, db_exception.DBError):
        LOG.error("The database refused a query", exc_info=error)
        return Unavailable("the database refused a query; was `pondstack-manage db sync` run? The log has the details")
    return None


def request_id_of(req: webob.Request) -> str:
    """Return the id of a request, or a new one of a request that has none yet."""
    return str(req.environ.get(request_ids.ENV_REQUEST_ID) or f"req-{uuid.uuid4()}")


def document(
    status: int, code: str, detail: str, request_id: str, extra: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the body of an error answer (API-SIG's errors guideline)."""
    title = HTTPStatus(status).phrase
    return {
        "errors": [
            {
                "status": status,
                "code": code,
                "title": title,
                "detail": detail,
                "request_id": request_id,
                **(extra or {}),
            }
        ]
    }


def response(
    status: int, code: str, detail: str, request_id: str, extra: Mapping[str, Any] | None = None
) -> webob.Response:
    """Return an error answer."""
    body = json.dumps(document(status, code, detail, request_id, extra)).encode()
    return webob.Response(status=status, body=body, content_type="application/json", charset=None)
