"""`pondstack-agent --config-file FILE`: the agent of one host."""

import sys
from pathlib import Path

from pondstack import native_threads

native_threads.use()

from oslo_config import cfg  # noqa: E402 (threading first)
from oslo_log import log  # noqa: E402
from oslo_service import service  # noqa: E402

from pondstack import core_dumps, logs  # noqa: E402
from pondstack.conf import agent as agent_conf  # noqa: E402
from pondstack.domain.errors import BadRequest, DeviceFailed  # noqa: E402
from pondstack.rpc.identity.identity import Identity, Role  # noqa: E402
from pondstack.rpc.transport import border_of  # noqa: E402
from pondstack_agent import readiness  # noqa: E402
from pondstack_agent.separation import separate  # noqa: E402
from pondstack_agent.service import AgentService  # noqa: E402
from pondstack_agent.state_check import check_state  # noqa: E402

QUIET = [
    "oslo.messaging=INFO",
    "oslo_messaging=INFO",
    "oslo_privsep=INFO",  # else it writes down what it answers
    "amqp=WARNING",
    "futurist=WARNING",
    "oslo_service=WARNING",
]


def configure(arguments: list[str]) -> cfg.ConfigOpts:
    """Read the configuration and set up logging; exits with a usage error when it is wrong."""
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    log.set_defaults(default_log_levels=log.get_default_log_levels() + QUIET)
    agent_conf.register_opts(conf)
    conf(arguments, project="pondstack", prog="pondstack-agent")
    logs.setup(conf, "pondstack-agent")
    return conf


def main() -> int:
    """Run until SIGTERM, which lets requests under way end first."""
    core_dumps.forbid()
    conf = configure(sys.argv[1:])
    # The contexts of oslo.privsep read theirs of the global configuration.
    cfg.CONF(
        [],
        project="pondstack",
        prog="pondstack-agent",
        default_config_files=list(conf.config_file),
        default_config_dirs=list(conf.config_dir),
    )
    try:
        # Here: a worker that fails is forked for ever. As root, whose the key of the agent's credential may stay.
        border = border_of(conf, Identity(Role.AGENT, conf.host))
        check_state(Path(conf.agent.state_dir))
        separation = separate(conf)
    except (BadRequest, DeviceFailed) as error:
        sys.exit(f"pondstack-agent: {error.message}")
    # Where there may be a second worker, each reads it anew: what the first one has heard is no news to the second.
    agent = AgentService(conf, readiness.withheld(), border if separation else None, separation)
    return int(service.launch(conf, agent).wait() or 0)
