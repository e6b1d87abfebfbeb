"""GET /healthcheck: 200 while database, broker and leader are well, else 503 with the reasons; without a token."""

from collections.abc import Iterable
from importlib import metadata
from typing import Any

import webob
import webob.dec
from oslo_config import cfg
from oslo_middleware import healthcheck
from oslo_middleware.healthcheck import opts

from pondstack_api.services import Services

PATH = "/healthcheck"
PLUGINS = ["pondstack_database", "pondstack_broker", "pondstack_leader"]


class Health:
    """Answers /healthcheck with oslo.middleware's application; anything else goes on.

    Its checks are plugins (entry points oslo.middleware.healthcheck); [healthcheck] backends may name others.
    """

    def __init__(self, application: Any, conf: cfg.ConfigOpts, services: Services) -> None:
        conf.register_opts(opts.HEALTHCHECK_OPTS, group="healthcheck")
        conf.set_default("backends", PLUGINS, group="healthcheck")
        self._application = application
        _require_plugins(conf.healthcheck.backends)
        self._health = healthcheck.Healthcheck(None, conf)
        # The plugins hold this same dictionary.
        self._health.conf["services"] = services

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> Any:
        """Serve one request."""
        return self._health if req.path_info == PATH else self._application


def _require_plugins(names: Iterable[str]) -> None:
    """Load every plugin; oslo.middleware leaves a broken one out without a word, which would look like health."""
    installed = metadata.entry_points(group=healthcheck.Healthcheck.NAMESPACE)
    for name in names:
        found = installed.select(name=name)
        if not found:
            raise cfg.ConfigFileValueError(f"[healthcheck] backends: no plugin {name} is installed")
        for entry_point in found:
            entry_point.load()
