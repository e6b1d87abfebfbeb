"""The middleware pipeline, outermost first, and why it has this order."""

from collections.abc import Callable
from typing import Any

import oslo_middleware
from microversion_parse import middleware as microversion_middleware
from oslo_config import cfg
from oslo_log import log
from oslo_middleware import sizelimit

from pondstack_api import microversion
from pondstack_api.dispatch import Dispatcher
from pondstack_api.health import Health
from pondstack_api.middleware import faults
from pondstack_api.middleware.auth import Context, NoAuth, TokenCheck
from pondstack_api.middleware.edge import BodyReader, Edge, LastResort
from pondstack_api.middleware.request_log import RequestLog
from pondstack_api.routes import PUBLIC_PATHS
from pondstack_api.services import Services

LOG = log.getLogger(__name__)

Application = Callable[..., Any]


def deploy(conf: cfg.ConfigOpts, services: Services | None = None) -> Application:
    """Return the WSGI application for a parsed configuration."""
    services = services or Services(conf)
    retry_after = conf.api.retry_after_seconds

    # A request goes through them from the top down, its answer from the bottom up:
    # - a last resort outermost: nobody is hung up on, whatever fails;
    # - the proxy's headers first, so that log lines and links show the client's view of the address;
    # - then the request id and the log line, so that everything below has an id and every answer is logged;
    # - the reader of bodies above all that refuses: it knows their limit, since the layers below are made first;
    # - the edge, below which paths are text and HEAD does not exist;
    # - the health check above the token check: a load balancer has no token;
    # - CORS above the token check: a browser's preflight has no token either;
    # - JsonErrors above all that answer errors in their own form (token check, body size, microversion), and Faults for
    #   what they raise;
    # - the token check, then the context that is made of its headers;
    # - the body's size before anybody reads the body;
    # - the microversion, which marks error answers too, so that the faults are once more below it.
    pipeline: tuple[Callable[[Application], Application], ...] = (
        LastResort,
        lambda app: oslo_middleware.HTTPProxyToWSGI(app, conf),
        lambda app: RequestLog(app, conf),
        lambda app: BodyReader(app, conf.oslo_middleware.max_request_body_size),
        Edge,
        lambda app: Health(app, conf, services),
        lambda app: oslo_middleware.CORS(app, conf) if conf.cors.allowed_origin else app,
        lambda app: faults.JsonErrors(app, retry_after),
        lambda app: faults.Faults(app, retry_after),
        lambda app: _token_check(app, conf),
        lambda app: Context(app, services.enforcer, PUBLIC_PATHS),
        lambda app: sizelimit.RequestBodySizeLimiter(app, conf),
        _microversions,
        lambda app: faults.Faults(app, retry_after),
    )
    application: Application = Dispatcher(services)
    for wrap in reversed(pipeline):
        application = wrap(application)
    return application


def _token_check(application: Application, conf: cfg.ConfigOpts) -> Application:
    if conf.api.auth_strategy == "noauth2":
        LOG.warning(
            "[api] auth_strategy = noauth2: whoever reaches this API is the administrator if they say so. "
            "For tests only; set it to keystone"
        )
        return NoAuth(application, PUBLIC_PATHS)
    return TokenCheck(application, conf, PUBLIC_PATHS)


def _microversions(application: Application) -> Application:
    return microversion_middleware.MicroversionMiddleware(
        application, microversion.SERVICE_TYPE, list(microversion.VERSIONS)
    )
