"""A real controller and broker on this machine, a real agent in each emulated host, one CXL device between them."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from oslo_config import cfg

from pondstack.conf import database as database_conf
from pondstack.db.connection import migration
from pondstack.db.connection.engine import Database
from pondstack.db.read.reader import SqlReader
from pondstack.devices import pool_uuid
from pondstack.devices.emulated import create_device
from pondstack.domain.requests import AssignRequest
from pondstack.domain.units import MIB
from pondstack.domain.zeroing import DeviceMemory
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.wire import Attachment
from pondstack_rack.daemon import Daemon
from pondstack_rack.servers import LOOPBACK, RabbitMQServer
from pondstack_rack.wait import wait_until
from tests.fixtures.identities import Identities

from . import heads
from .channel import Started
from .host import EmulatedHost
from .machine import OUTSIDE
from .qemu import ROOT

TABLE = "/mnt/device"
SERIAL = "handed"
STATE = "/var/lib/pondstack/agent"
PYTHON = "/opt/pondstack/bin/python"
CALL_SECONDS = 120.0
"""For an answer, and for a sign of life: a host of two emulated processors on a busy machine is silent for long."""

SETTLE_SECONDS = 240.0
AGENT_DOWN_SECONDS = 20
T = TypeVar("T")

CONTROLLER = """
[DEFAULT]
transport_url = {bus}
[database]
connection = {ledger}
[placement]
enabled = false
[controller]
name = controller
pool_devices = pool0={driver}:{device}
agent_down_seconds = {down}
reconcile_interval_seconds = 1
report_settle_seconds = 0.2
"""
AGENT = """
[DEFAULT]
transport_url = {bus}
host = {host}
[agent]
user =
state_dir = {state}
drivers = cxl
heartbeat_seconds = 3
[cxl]
pools = 1:{serial}
permission_table = {table}
"""


class ControlledRack:
    """The controller's side, which runs before there is a host; `join` adds those."""

    def __init__(self, folder: Path, slices: int, slice_mib: int) -> None:
        self.folder, self.slices, self.slice_mib = folder, slices, slice_mib
        self.device = create_device(
            folder / "device", slices, slice_mib=slice_mib, serial=SERIAL, memory=DeviceMemory.CXL
        )
        self.pool = pool_uuid(SERIAL)
        self.hosts: dict[str, EmulatedHost] = {}
        self.agents: dict[str, Started] = {}
        self.rabbit = RabbitMQServer(folder / "rabbit")
        self.identities = Identities(folder / "credentials")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have broker and controller run, and clients of them."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.rabbit.stop)
            self.rabbit.start()
            conf = self._conf()
            self.database = Database.from_conf(conf)
            stack.callback(self.database.dispose)
            migration.sync(self.database)
            self.reader = SqlReader(self.database, agent_down_seconds=AGENT_DOWN_SECONDS)
            self.bus = self.identities.everybody(conf)
            stack.callback(self.bus.cleanup)
            self.agent = AgentAPI(self.bus, timeout_seconds=CALL_SECONDS, monitor_seconds=int(CALL_SECONDS))
            self.controller = ControllerAPI(self.bus, timeout_seconds=CALL_SECONDS)
            controller = self._controller()
            stack.callback(controller.stop)
            controller.start()
            yield

    def _conf(self) -> cfg.ConfigOpts:
        values = {"ledger": f"sqlite:///{self.folder}/ledger.db", "driver": heads.DRIVER, "device": self.device.path}
        text = CONTROLLER.format(bus=self.rabbit.transport_url(), down=AGENT_DOWN_SECONDS, **values)
        path = self.folder / "controller.conf"
        path.write_text(text + self.identities.section("controller/controller"))
        conf = cfg.ConfigOpts()
        database_conf.register_opts(conf)
        conf(["--config-file", str(path)], project="pondstack")
        return conf

    def _controller(self) -> Daemon:
        found = heads.entry_point(self.folder / "installed")
        paths = [str(found), str(ROOT), os.environ.get("PYTHONPATH", "")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        program = Path(sys.executable).parent / "pondstack-controller"
        argv = [str(program), "--config-file", str(self.folder / "controller.conf")]
        return Daemon("controller", argv, self.folder, env=env, ready=lambda: bool(self.reader.leader().epoch))

    # Hosts

    def join(self, hosts: Sequence[EmulatedHost]) -> None:
        """Start the hosts' agents, and wait until the controller has them."""
        self.hosts |= {host.machine.name: host for host in hosts}
        for host in hosts:
            self.start_agent(host.machine.name)
        for host in hosts:
            self.wait_usable(host.machine.name)

    def start_agent(self, name: str) -> None:
        """Start a host's agent over the state that it left."""
        host, bus = self.hosts[name], self.rabbit.transport_url().replace(LOOPBACK, OUTSIDE)
        path = "/etc/pondstack-agent.conf"
        host.put(path, AGENT.format(bus=bus, host=name, state=STATE, serial=SERIAL, table=TABLE), mode=0o600)
        self.identities.install(host.put, f"agent/{name}")
        self.agents[name] = host.start(["pondstack-agent", "--config-file", path])

    def wait_usable(self, name: str) -> None:
        """Wait until the controller gives a host memory of the pool."""

        def usable() -> bool:
            view = self.controller.snapshot(timeout_seconds=CALL_SECONDS)
            return name in view.usable_hosts and name in view.pools[0].hosts

        self.eventually(usable, lambda: f"host {name} is not usable: {self.agents[name].output()[-3000:]}")

    def kill_agent_at(self, name: str, path: str, text: str) -> Started:
        """Have a host kill its own agent, and all that it started, once a file of the host has `text`."""
        agent = self.agents[name]
        # The shell alone: in the time of a `grep` the moment would be over.
        look = f'line=; until case "$line" in *{text}*) ;; *) false ;; esac; do read -r line <"{path}"; done'
        return self.hosts[name].start(["sh", "-c", f"{look}; exec /bin/kill -9 -- -{agent.pid}"])

    # Memory

    def attach(self, name: str) -> Attachment:
        """Have all of the pool attached to a host, for a new consumer."""
        size = self.slices * self.slice_mib
        request = AssignRequest(str(uuid4()), name, self.pool, pool_mib=size, guest_mib=2 * size)
        return self.agent.attach(str(uuid4()), request)

    def detach(self, name: str, held: Attachment, operation_id: str | None = None) -> bool:
        """Give an attachment back."""
        return self.agent.detach(name, operation_id=operation_id or str(uuid4()), consumer_uuid=held.consumer_uuid)

    @contextmanager
    def guest(self, name: str, held: Attachment, size_mib: int, text: str) -> Iterator[None]:
        """Have a process of the consumer, bound to the pool's node, write `text` to each page of its memory."""
        words = ["-uuid", held.consumer_uuid, str(held.backings[0].host_node), str(size_mib), text]
        command = [PYTHON, "-m", "tests.hardware.guest.filler", *words]
        started = self.hosts[name].start(command, env={"PYTHONPATH": "/opt/code"})
        try:
            started.wait_for("filled")
            yield
        finally:
            started.write(close=True)
            started.wait()

    def pages_with(self, text: str) -> int:
        """Count how often `text` is in the memory of the device, looked at from outside all hosts."""
        found, wanted = 0, text.encode()
        with (self.device.path / "memory").open("rb") as memory:
            while chunk := memory.read(64 * MIB):
                found += chunk.count(wanted)
        return found

    def states(self) -> list[str]:
        """Return the slices' states in the ledger."""
        return [item.state for item in self.reader.slices(self.pool)]

    def wait_free(self) -> None:
        """Wait until the whole pool is free."""
        self.eventually(lambda: set(self.states()) == {"free"}, lambda: "the pool is not free")

    def eventually(self, condition: Callable[[], bool], otherwise: Callable[[], str]) -> None:
        """Wait for a condition; fails with what was found."""
        if not wait_until(condition, SETTLE_SECONDS):
            slices = [(item.index, item.state, item.host, item.reason) for item in self.reader.slices(self.pool)]
            raise AssertionError(f"{otherwise()}\nslices: {slices}\nlogs: {self.folder}")


def timed(work: Callable[..., T], *arguments: Any) -> tuple[T, float]:
    """Return what a call answers, and its seconds."""
    before = time.monotonic()
    answer = work(*arguments)
    return answer, time.monotonic() - before
