"""Reads the API's configuration: one file, named by PONDSTACK_CONF_FILE."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from oslo_config import cfg
from oslo_log import log
from oslo_middleware import cors

from pondstack.conf import api

LOG = log.getLogger(__name__)

VARIABLE = "PONDSTACK_CONF_FILE"
DEFAULT_FILE = "/etc/pondstack/pondstack.conf"


def register(conf: cfg.ConfigOpts) -> None:
    """Register all options that the API reads by itself."""
    log.register_options(conf)
    api.register_opts(conf)
    conf.register_opts(cors.CORS_OPTS, group="cors")


def load(environ: Mapping[str, str] = os.environ, argv: Sequence[str] = ()) -> cfg.ConfigOpts:
    """Return the parsed configuration; raises ConfigFilesNotFoundError when the file that was named is not there.

    Without any file the options have their defaults: every request is then a 503 that says what to set.
    """
    files = [environ.get(VARIABLE) or DEFAULT_FILE]
    if VARIABLE not in environ and not Path(DEFAULT_FILE).is_file():
        LOG.warning("No configuration file %s, and none named by %s: using defaults", DEFAULT_FILE, VARIABLE)
        files = []
    conf = cfg.ConfigOpts()
    register(conf)
    conf(list(argv), project="pondstack", default_config_files=files, default_config_dirs=[])
    for option in api.OPTIONS:
        # oslo.config looks at a value when somebody reads it: a wrong one must stop the server, not a request.
        conf.api[option.dest]
    return conf
