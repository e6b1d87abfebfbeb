"""`pondstack-controller --config-file FILE`: the rack's memory controller. Run two, under two names, for fail-over."""

import sys
from collections.abc import Sequence

from pondstack import native_threads

native_threads.use()

from oslo_config import cfg  # noqa: E402 (threading first)
from oslo_log import log  # noqa: E402
from oslo_service import service  # noqa: E402

from pondstack import core_dumps, logs  # noqa: E402
from pondstack.controller.service import ControllerService, register_opts  # noqa: E402
from pondstack.domain.errors import BadRequest  # noqa: E402
from pondstack.rpc.identity.identity import Identity, Role  # noqa: E402
from pondstack.rpc.transport import border_of  # noqa: E402

QUIET = ["oslo.messaging=INFO", "oslo_messaging=INFO", "amqp=WARNING", "futurist=WARNING", "oslo_service=WARNING"]


def configure(arguments: Sequence[str], program: str = "pondstack-controller") -> cfg.ConfigOpts:
    """Read the configuration and set up logging; exits with a usage error when it is wrong."""
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    log.set_defaults(default_log_levels=[*log.get_default_log_levels(), *QUIET])
    register_opts(conf)
    conf(list(arguments), project="pondstack", prog=program)
    logs.setup(conf, program)
    return conf


def main() -> int:
    """Run until SIGTERM, which hands the lead over and lets requests under way end first."""
    core_dumps.forbid()
    conf = configure(sys.argv[1:])
    try:
        border_of(conf, Identity(Role.CONTROLLER, conf.controller.name))
    except BadRequest as error:
        sys.exit(f"pondstack-controller: {error.message}")  # here: a worker that fails is forked for ever
    launched = service.launch(conf, ControllerService(conf), restart_method="mutate")
    return int(launched.wait() or 0)
