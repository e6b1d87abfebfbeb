"""Who asks: Keystone's token check, except on the public paths; and the context that the handlers get."""

from typing import Any

import webob
import webob.dec
from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_middleware import request_id
from oslo_policy import policy as oslo_policy

from pondstack_api.context import RequestContext
from pondstack_api.errors import Unauthorized

CONTEXT = "pondstack.context"

_IDENTITY_HEADERS = (
    "x-user",
    "x-project",
    "x-role",
    "x-tenant",
    "x-domain",
    "x-service-",
    "x-is-admin-",
    "openstack-system-",
)
"""What the headers begin with by which a token check tells who is asking (oslo.context reads them)."""


class TokenCheck:
    """keystonemiddleware's auth_token on every path but the public ones."""

    def __init__(self, application: Any, conf: cfg.ConfigOpts, public_paths: frozenset[str]) -> None:
        self._application = application
        self._checked = auth_token.AuthProtocol(application, {"oslo_config_config": conf})
        self._public = public_paths

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> Any:
        """Serve one request."""
        if _is_public(req, self._public):
            # Nobody checked them here, so nobody may believe them.
            for name in [name for name in req.headers if name.lower().startswith(_IDENTITY_HEADERS)]:
                req.headers.pop(name, None)
            return self._application
        return self._checked


class NoAuth:
    """For tests: the token is `user:project`, the roles are in X-Roles (user admin: admin); system scope as sent."""

    def __init__(self, application: Any, public_paths: frozenset[str]) -> None:
        self._application = application
        self._public = public_paths

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> Any:
        """Serve one request."""
        token = req.headers.get("X-Auth-Token")
        if not token:
            return self._application if _is_public(req, self._public) else webob.exc.HTTPUnauthorized()
        user, _, project = token.partition(":")
        req.headers["X-User-Id"] = user
        if not req.headers.get("OpenStack-System-Scope"):
            req.headers["X-Project-Id"] = project or user
        if "X-Roles" not in req.headers:
            req.headers["X-Roles"] = "admin,manager,member,reader" if user == "admin" else "member,reader"
        return self._application


class Context:
    """Makes the request's context from the headers of the token check."""

    def __init__(self, application: Any, enforcer: oslo_policy.Enforcer, public_paths: frozenset[str]) -> None:
        self._application = application
        self._enforcer = enforcer
        self._public = public_paths

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> Any:
        """Serve one request."""
        context = RequestContext.from_environ(req.environ, request_id=req.environ.get(request_id.ENV_REQUEST_ID))
        if context.user_id is None and not _is_public(req, self._public):
            raise Unauthorized("the token names no user; get a new one from Keystone")
        context.enforcer = self._enforcer
        req.environ[CONTEXT] = context
        return self._application


def _is_public(req: webob.Request, public: frozenset[str]) -> bool:
    return (req.path_info or "/") in public
