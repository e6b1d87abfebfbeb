"""`make bench-signatures`: what signed messages cost a guest's start and end, beside unsigned ones in the same run.

Two racks in this process, on one RabbitMQ and one MariaDB: a controller, an agent over an emulated pool, and what
nova-compute calls. In one all messages are signed and judged, in the other none. A cycle is what one guest costs on
the bus: attach and detach by the agent, with all calls between agent and controller that they bring about. Rounds of
the two alternate, and the ratio of each pair of rounds is one sample. Both ends of each call are in one process here
and take turns, so that a rack, where they do not, pays less. All else that a boot takes (scheduler, images, libvirt)
comes on top of both and is not measured: of a boot the share is less. `make bench-ledger` has no messages.
"""

import argparse
import logging
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from oslo_config import cfg  # noqa: E402 (threading first)

from bench.figures import spread  # noqa: E402
from bench.ledger import compare  # noqa: E402
from pondstack.conf import agent as agent_conf  # noqa: E402
from pondstack.controller import service as controller_service  # noqa: E402
from pondstack.controller.node.node import Node  # noqa: E402
from pondstack.db.connection import migration  # noqa: E402
from pondstack.db.connection.engine import Database  # noqa: E402
from pondstack.devices.emulated import create_device  # noqa: E402
from pondstack.devices.identity import pool_uuid  # noqa: E402
from pondstack.domain.requests import AssignRequest  # noqa: E402
from pondstack.rpc import transport as rpc  # noqa: E402
from pondstack.rpc.agent_api import AgentAPI  # noqa: E402
from pondstack.rpc.identity.identity import Identity, Role  # noqa: E402
from pondstack_agent.service import AgentService  # noqa: E402
from pondstack_rack.servers import MariaDBServer, RabbitMQServer  # noqa: E402
from pondstack_rack.wait import wait_until  # noqa: E402
from tests.fixtures.identities import Identities  # noqa: E402

TARGET = 1.05
"""Of the time of a cycle with signatures to that of one without, at most."""
SLICES, HOST, SECONDS = 512, "host1", 60.0
CONTROLLER = """
[DEFAULT]
transport_url = {bus}
[database]
connection = {database}
[controller]
name = controller
pool_devices = pool0=emulated:{folder}/pool0
free_buffer_slices = 0
[placement]
enabled = false
[nova]
notifications = false
[metrics]
port = 0
"""
AGENT = """
[DEFAULT]
transport_url = {bus}
host = {host}
[agent]
state_dir = {folder}/agent
[telemetry]
enabled = false
[emulated]
device_paths = {folder}/pool0
"""


class BenchRack:
    """A controller and an agent that serve, and a client of the agent."""

    def __init__(self, folder: Path, bus: str, database: str, signed: bool) -> None:
        folder.mkdir()
        self._stack = ExitStack()
        create_device(folder / "pool0", SLICES, slice_mib=1, serial="bench")
        self._pool = pool_uuid("bench")
        identities = Identities(folder / "credentials")
        section = identities.section("controller/controller", f"agent/{HOST}", f"compute/{HOST}")
        named = {"bus": bus, "database": database, "folder": folder, "host": HOST}
        with ExitStack() as only_while_made:
            if not signed:
                only_while_made.enter_context(mock.patch.object(rpc, "border_of", return_value=None))
            controller_conf = self._conf(folder / "controller.conf", CONTROLLER.format(**named) + section)
            controller_service.register_opts(controller_conf)
            made = Database.from_conf(controller_conf)
            migration.sync(made)
            made.dispose()
            self._node = Node(controller_conf)
            self._stack.callback(self._node.stop)
            self._node.start()
            if not self._node.wait_until_leading(SECONDS):
                raise RuntimeError("the controller does not lead")
            agent = self._conf(folder / "agent.conf", AGENT.format(**named) + section)
            agent_conf.register_opts(agent)
            service = AgentService(agent)
            self._stack.callback(service.stop)
            service.start()
            compute = rpc.get_transport(agent, Identity(Role.COMPUTE, HOST))
            self._stack.callback(compute.cleanup)
        if (compute.border is not None) is not signed:
            raise RuntimeError("the racks are not what they are to be")
        self._api = AgentAPI(compute, timeout_seconds=SECONDS)
        if not wait_until(lambda: self._reached(), SECONDS):
            raise RuntimeError("the host does not reach the pool")

    @staticmethod
    def _conf(path: Path, text: str) -> Any:
        path.write_text(text)
        conf = cfg.ConfigOpts()
        conf([], project="pondstack", default_config_files=[str(path)], default_config_dirs=[])
        return conf

    def _reached(self) -> bool:
        return self._pool in {pool for host in self._node.resources.reader.hosts() for pool in host.pools}

    def cycle(self, _thread: int) -> None:
        """Start a guest and end it."""
        consumer = str(uuid.uuid4())
        self._api.attach(str(uuid.uuid4()), AssignRequest(consumer, HOST, self._pool, pool_mib=2, guest_mib=8))
        self._api.detach(HOST, operation_id=str(uuid.uuid4()), consumer_uuid=consumer)

    def settle(self) -> None:
        """Wait until all slices are free again, so that no round pays for another one's."""
        free = lambda: self._node.resources.reader.pool(self._pool).slices.get("free") == SLICES  # noqa: E731
        if not wait_until(free, SECONDS):
            raise RuntimeError("slices of finished cycles did not come free")

    def close(self) -> None:
        """Stop it."""
        self._stack.close()


def settling(rack: BenchRack, cycles: int) -> Callable[[int], None]:
    """Return the rack's cycle; one in as many as a round has waits until all has come free, which counts."""
    done = 0

    def cycle(thread: int) -> None:
        nonlocal done
        rack.cycle(thread)
        done += 1
        if done % cycles == 0:
            rack.settle()

    return cycle


def report(signed: Sequence[float], unsigned: Sequence[float]) -> bool:
    """Print the rates, a value a round, and whether the target holds."""
    costs = [other / mine for mine, other in zip(signed, unsigned, strict=True)]
    more = [1e3 / mine - 1e3 / other for mine, other in zip(signed, unsigned, strict=True)]
    print(f"guests/s       signed {spread(signed, 1)}   unsigned {spread(unsigned, 1)}")
    print(f"ms more        {spread(more, 2)} a guest")
    cost = statistics.median(costs)
    print(f"{'OK' if cost <= TARGET else 'FAILED'}: cost {spread(costs, 3)}, target <= {TARGET:.2f}")
    return cost <= TARGET


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when the median ratio holds the target."""
    parser = argparse.ArgumentParser(prog="make bench-signatures", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="pairs of rounds (ROUNDS)")
    parser.add_argument("--cycles", type=int, default=100, help="guests in a round (CYCLES)")
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp") as name, ExitStack() as stack:
        folder = Path(name)
        broker, database = RabbitMQServer(folder / "rabbitmq"), MariaDBServer(folder / "mariadb")
        print("starting RabbitMQ and MariaDB", flush=True)
        for server in (broker, database):
            server.start()
            stack.callback(server.stop)
        cycles = []
        for kind, signs in (("signed", True), ("unsigned", False)):
            rack = BenchRack(folder / kind, broker.transport_url(kind), database.database_url(kind), signs)
            stack.callback(rack.close)
            cycles.append(settling(rack, options.cycles))
        began = time.monotonic()
        signed, unsigned = compare(cycles[0], cycles[1], 1, options.cycles, options.rounds)
        seconds = time.monotonic() - began
    print(f"\n{__doc__.split(chr(10) * 2)[1]}\n")
    print(f"n = {options.rounds} pairs of rounds of {options.cycles} guests, {seconds:.0f} s; median (least - most)")
    return 0 if report(signed, unsigned) else 1


if __name__ == "__main__":
    sys.exit(main())
