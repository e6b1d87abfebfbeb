"""`pondstack-waker`: puts its host to sleep, stays awake itself where it can, and is called to wake the host.

The agent starts it at the first order, or systemd does (--foreground). All of its memory is locked, so that it works
while everything else stands still. It connects to the bus as the host, before anything is frozen.
"""

import signal
import sys
from pathlib import Path

from pondstack import native_threads

native_threads.use()

from oslo_config import cfg  # noqa: E402 (threading first)
from oslo_log import log  # noqa: E402

from pondstack import logs  # noqa: E402
from pondstack.conf import agent as agent_conf  # noqa: E402
from pondstack.rpc import targets  # noqa: E402
from pondstack.rpc.broker_permissions import PROCESSES  # noqa: E402
from pondstack.rpc.identity.identity import Identity, Role  # noqa: E402
from pondstack.rpc.transport import get_transport  # noqa: E402
from pondstack_agent.helper.process import Ready, parser_of, run_helper  # noqa: E402
from pondstack_agent.power.doorbell import Doorbell  # noqa: E402
from pondstack_agent.power.drivers import load_power_drivers  # noqa: E402
from pondstack_agent.power.program import WAKER  # noqa: E402
from pondstack_agent.power.service import WakerEndpoint, WakerService  # noqa: E402
from pondstack_agent.power.transition import PowerTransitions  # noqa: E402
from pondstack_rdma.base import Transport  # noqa: E402
from pondstack_rdma.transports import load_transport, options_of  # noqa: E402


def main() -> int:
    """Become the waker of a host."""
    parser = parser_of(WAKER, __doc__ or "")
    parser.add_argument("--config-file", action="append", default=[], metavar="FILE", help="of the host's agent")
    arguments = parser.parse_args()
    return run_helper(WAKER, arguments, lambda ready: serve(arguments.folder, arguments.config_file, ready))


def serve(folder: Path, files: list[str], ready: Ready) -> None:
    """Answer until told to end."""
    conf = configure(files)
    pause = conf.power.doorbell_pause_seconds
    doorbell = Doorbell(transport(conf), f"{conf.host}-doorbell", lambda operation: transitions.rung(operation), pause)
    drivers = load_power_drivers(conf, folder)
    transitions = PowerTransitions(drivers, conf.power.linger_seconds, ended=doorbell.disarm)
    transitions.restore()
    bus = get_transport(conf, Identity(Role.AGENT, conf.host))
    server = bus.server(targets.waker_target(conf.host), [WakerEndpoint(transitions)])
    server.start(override_pool_size=1)
    service = WakerService(folder, transitions, doorbell)
    signal.signal(signal.SIGTERM, lambda _number, _frame: service.stop())
    ready.serves()
    service.serve()
    transitions.wake()
    server.stop()
    server.wait()
    doorbell.close()
    bus.cleanup()


def transport(conf: cfg.ConfigOpts) -> Transport | None:
    """Return what the doorbell is lent by, None: there is none."""
    group = conf.lending
    return load_transport(group.transport, options_of(group)) if conf.power.doorbell and group.transport else None


def configure(files: list[str]) -> cfg.ConfigOpts:
    """Read the configuration of the host's agent."""
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    agent_conf.register_opts(conf)
    arguments = [word for file in files for word in ("--config-file", file)]
    # The broker lets the host's processes have queues of the agent's name only.
    conf(arguments, project="pondstack", prog=PROCESSES[Role.AGENT])
    logs.setup(conf, WAKER.name)
    return conf


if __name__ == "__main__":
    sys.exit(main())
