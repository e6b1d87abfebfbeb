"""The system under test as real processes: broker, database, controllers, agents, one emulated pool device."""

import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
from oslo_config import cfg

from pondstack.cmd import manage
from pondstack.conf import database as database_conf
from pondstack.conf import rpc as rpc_conf
from pondstack.db.connection.engine import Database
from pondstack.db.read.reader import SqlReader
from pondstack.devices.emulated import create_device
from pondstack.devices.identity import pool_uuid
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.lending.program import LENDER
from pondstack_rack.daemon import Daemon, DaemonFailed, recorded, signal_process
from pondstack_rack.servers import LOOPBACK
from pondstack_rack.wait import wait_until
from tests.fixtures.identities import Identities
from tests.robustness.brokers import Broker
from tests.robustness.databases import Store
from tests.robustness.disk import Disk
from tests.robustness.network import Network

SLICES = 96
CONTROLLERS = ("ctl-a", "ctl-b")
AGENTS = ("host-a", "host-b")
LENT_BUFFERS, BUFFER_MIB = 6, 1
"""What each agent's host lends."""
HEALTHY_SECONDS = 90.0
PROGRAMS = Path(sys.executable).parent

RABBIT = """
[oslo_messaging_rabbit]
rabbit_quorum_queue = true
rabbit_transient_quorum_queue = true
"""
CONTROLLER = """
[DEFAULT]
transport_url = {bus}
[database]
connection = {url}
{hosts}
[placement]
enabled = false
[controller]
name = {name}
pool_devices = pool0=emulated:{device}
"""
AGENT = """
[DEFAULT]
transport_url = {bus}
host = {name}
[agent]
user =
state_dir = {state}
drivers = emulated
[emulated]
device_paths = {device}
[lending]
transport = shm
shm_folder = {shm}
buffer_mib = {buffer_mib}
reserve_mib = 0
pressure_mib = 0
"""


class Rack:
    """Two controllers with default options, in `networks` of their own if those are given, and two agents."""

    def __init__(
        self,
        folder: Path,
        broker: Broker,
        store: Store,
        networks: Mapping[str, Network] | None = None,
        disk: Disk | None = None,
        slices: int = SLICES,
        rpc: str = "",
        agents: Mapping[str, str] | None = None,
    ) -> None:
        """`agents`: the hosts, each with what its agent's file has besides."""
        self.folder = folder
        self.broker = broker
        self.store = store
        self.networks = networks or {}
        self.disk = disk
        self.device = create_device(folder / "pool0", slices)
        self.pool = pool_uuid(self.device.info().serial)
        self.slices = slices
        self._rpc = f"[rpc]\ntransport = {rpc}\nshm_folder = {folder / 'rpc'}\n" if rpc else ""
        # Short: the address of a Unix socket has 107 bytes.
        self.shm = Path(tempfile.mkdtemp(prefix="ps-rob-shm-"))
        self._bus_url = broker.transport_url(f"rack-{uuid4().hex[:8]}")
        self._url = store.url()
        self._identities = Identities(folder / "credentials")
        self.controllers = {name: self._daemon("controller", name, CONTROLLER) for name in CONTROLLERS}
        more = dict.fromkeys(AGENTS, "") if agents is None else agents
        self.agents = {name: self._daemon("agent", name, AGENT, more[name]) for name in more}
        own = self._write(
            "own", f"[DEFAULT]\ntransport_url = {self._bus_url}\n[database]\n{self._database()}\n{RABBIT}{self._rpc}"
        )
        self._conf = cfg.ConfigOpts()
        database_conf.register_opts(self._conf)
        rpc_conf.register_opts(self._conf)
        self._conf(["--config-file", str(own)], project="pondstack")
        self.bus = self._identities.everybody(self._conf)
        self.database = Database.from_conf(self._conf)
        self.reader = SqlReader(self.database)

    def _database(self) -> str:
        return f"connection = {self._url}\n{self._hosts()}"

    def _hosts(self) -> str:
        return f"hosts = {','.join(self.store.hosts)}" if self.store.hosts else ""

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / f"{name}.conf"
        path.write_text(text)
        return path

    def _daemon(self, program: str, name: str, template: str, more: str = "") -> Daemon:
        values = {"bus": self._bus_url, "url": self._url, "hosts": self._hosts(), "name": name}
        values |= {"device": str(self.device.path), "state": str(self.folder / f"state-{name}")}
        values |= {"shm": str(self.shm), "buffer_mib": str(BUFFER_MIB)}
        text, launcher = template.format(**values) + RABBIT + self._rpc + more, []
        text += self._identities.section(f"{program}/{name}")
        if name in self.networks:
            text = text.replace(LOOPBACK, self.networks[name].server)
            launcher = self.networks[name].launcher()
        argv = [str(PROGRAMS / f"pondstack-{program}"), "--config-file", str(self._write(name, text))]
        return Daemon(name, [*launcher, *argv], self.folder)

    def client(self) -> ControllerAPI:
        """Return a client of the controllers, as agents have it."""
        return ControllerAPI(self.bus)

    def agent_client(self) -> AgentAPI:
        """Return a client of the agents, as Nova has it."""
        return AgentAPI(self.bus)

    def start(self) -> None:
        """Make the schema, start everything and wait until a controller leads and the other one follows."""
        if manage.run(["--config-file", str(self.folder / "own.conf"), "db", "sync"]):
            raise RuntimeError("pondstack-manage db sync failed")
        for process in (*self.controllers.values(), *self.agents.values()):
            process.launch()
        self.wait_healthy()
        if not wait_until(lambda: {host.name for host in self.reader.hosts()} >= set(self.agents), HEALTHY_SECONDS):
            raise DaemonFailed("the agents do not report; see their logs")

    def stop(self) -> None:
        """Stop all processes of the rack, not the servers."""
        for process in (*self.agents.values(), *self.controllers.values()):
            if process.process is not None:
                resume(process.process)
            process.stop()
        for name in self.agents:
            _end_lender(self.folder / f"state-{name}" / "lender")
        shutil.rmtree(self.shm, ignore_errors=True)
        self.database.dispose()
        self.bus.cleanup()

    def leader(self) -> str:
        """Return the name of the controller that has the lease."""
        return self.reader.leader().holder.partition(":")[0]

    def wait_healthy(self) -> None:
        """Wait until one controller leads and every other one follows, all in their present lives; or DaemonFailed."""
        if not wait_until(self._healthy, HEALTHY_SECONDS):
            seen = [(view.name, view.role, view.seen_seconds) for view in self.reader.controllers()]
            raise DaemonFailed(f"no leader with a stand-by within {HEALTHY_SECONDS:.0f} s: {seen}; logs: {self.folder}")

    def _healthy(self) -> bool:
        lives = {name: [member.pid for member in family_of(process)] for name, process in self.controllers.items()}
        views = [view for view in self.reader.controllers() if _life(view.holder) in lives.get(view.name, ())]
        roles = {view.name: view.role for view in views}
        standby = ["standby"] * (len(lives) - 1)
        return sorted(roles.values()) == ["leader", *standby] and roles.get(self.leader()) == "leader"

    def relaunch(self, name: str) -> None:
        """Start a controller or an agent that ended; it comes back on its own time."""
        {**self.controllers, **self.agents}[name].launch()


def _end_lender(folder: Path) -> None:
    """End a lender's process that outlived its agent and has not given everything back."""
    if LENDER.runs(folder):
        signal_process(psutil.Process(LENDER.pid(folder)), signal.SIGTERM)


def _life(holder: str) -> int:
    """Return the pid in a holder, which is name:pid:random."""
    return int(holder.split(":")[1])


def family(process: psutil.Process) -> list[psutil.Process]:
    """Return a process and all that it started, the parent first."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def family_of(process: Daemon) -> list[psutil.Process]:
    """Return the live processes of a daemon; none when it has ended."""
    found = process.process
    return [] if found is None else family(found)


def pause(process: psutil.Process) -> None:
    """SIGSTOP a process and all that it started."""
    for member in family(process):
        signal_process(member, signal.SIGSTOP)


def resume(process: psutil.Process) -> None:
    """SIGCONT a process and all that it started."""
    for member in family(process):
        signal_process(member, signal.SIGCONT)


def alive(process: Daemon) -> psutil.Process:
    """Return the live process of a daemon; raises DaemonFailed when it ended by itself."""
    found: Any = recorded(process.pid_file)
    if found is None:
        raise DaemonFailed(f"{process.name} ended by itself; log: {process.log_file}")
    return found
