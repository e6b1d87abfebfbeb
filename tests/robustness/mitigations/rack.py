"""The rack that mitigations are killed on: the one-machine rack, whose fake computes' agents can copy (a stand-in)."""

import signal
from dataclasses import replace
from pathlib import Path

import psutil
from oslo_config import cfg

from pondstack.conf import database as database_conf
from pondstack.db.connection.engine import Database
from pondstack.db.read.reader import SqlReader
from pondstack.domain.errors import PondError
from pondstack.ledger.records import ControllerView
from pondstack_rack.daemon import DaemonFailed, signal_process
from pondstack_rack.layout import Layout, program
from pondstack_rack.processes import rpc
from pondstack_rack.rack import Rack, Service
from pondstack_rack.servers import MariaDBServer
from pondstack_rack.services import pondstack_services
from pondstack_rack.steps import Step
from pondstack_rack.wait import wait_until
from tests.robustness.mitigations.plan import Victim

ROOT = Path(__file__).parents[3]
HEALTHY_SECONDS = 120.0

LEDGER = "ledger"
"""The service of the ledger's own database server: Nova's is not killed, since Nova does not take that well."""

CONTROLLER = """
[database]
connection = {url}
[mitigation]
# Longer than a nova-compute that was killed takes to start again, and not the minutes that Nova is given otherwise.
retry_seconds = 20
[ha]
# Who leads changes by the plan's kills, and not because a busy machine stands still for a second.
lease_seconds = 5
"""
STAND_IN = """
[agent]
libvirt_uri = test:///default
"""


class KilledRack(Rack):
    """Two libvirt hosts with real guests, two fake computes with stand-in agents, two controllers."""

    def _make_services(self) -> dict[str, Service]:
        services: dict[str, Service] = {LEDGER: _ledger(self.layout)} | super()._make_services()
        for host in self.layout.fake_hosts:
            file = self.layout.etc / f"pondstack-agent-{host}.conf"
            module = ("-m", "tests.robustness.mitigations.stand_in_agent")
            argv = ["/usr/bin/env", f"PYTHONPATH={ROOT}", program("python"), *module, "--config-file", str(file)]
            services[f"pondstack-agent-{host}"] = rpc(
                self.layout, f"pondstack-agent-{host}", argv, f"pondstack-agent.{host}"
            )
        return services

    def _configure(self) -> None:
        super()._configure()
        self._append("pondstack", CONTROLLER.format(url=_ledger(self.layout).database_url("pondstack")))
        for host in self.layout.fake_hosts:
            self._append(f"pondstack-agent-{host}", STAND_IN)

    def _steps(self) -> list[Step]:
        steps = super()._steps()
        found = [replace(item, needs=(*item.needs, LEDGER)) if item.name == "configuration" else item for item in steps]
        return [self._start(LEDGER), *found]

    def _append(self, name: str, text: str) -> None:
        with (self.layout.etc / f"{name}.conf").open("a") as file:
            file.write(text)


def _ledger(layout: Layout) -> MariaDBServer:
    return MariaDBServer(layout.root / LEDGER)


class Processes:
    """The rack's processes as victims, and its ledger as its database has it."""

    def __init__(self, rack: Rack) -> None:
        self.rack = rack
        conf = cfg.ConfigOpts()
        database_conf.register_opts(conf)
        conf(["--config-file", str(rack.layout.etc / "pondstack.conf")], project="pondstack")
        self._database = Database.from_conf(conf)
        self.reader = SqlReader(self._database)

    def close(self) -> None:
        """Close the connections to the database."""
        self._database.dispose()

    def leader(self) -> tuple[str, int]:
        """Return the service of the controller that has the lease, and the process that works there."""
        name, pid, _ = self.reader.leader().holder.split(":")
        return pondstack_services.controller_service(name), int(pid)

    def wait_healthy(self) -> None:
        """Start what does not run, wait until one controller leads and the other one follows; raises DaemonFailed."""
        for service in self.rack.services.values():
            if not service.running:
                service.start()
        if not wait_until(self._healthy, HEALTHY_SECONDS):
            raise DaemonFailed(f"no leader and stand-by within {HEALTHY_SECONDS:.0f} s; logs: {self.rack.layout.log}")

    def _healthy(self) -> bool:
        try:
            live = [item for item in self.reader.controllers() if _lives(item)]
        except PondError:
            return False
        return sorted(item.role for item in live) == ["leader", "standby"]

    def service_of(self, victim: Victim, leader: str, source: str, destination: str) -> str:
        """Return the service that a victim is."""
        return {
            Victim.LEADER: leader,
            Victim.SOURCE_AGENT: f"pondstack-agent-{source}",
            Victim.DESTINATION_AGENT: f"pondstack-agent-{destination}",
            Victim.SOURCE_COMPUTE: f"nova-compute-{source}",
            Victim.DESTINATION_COMPUTE: f"nova-compute-{destination}",
            Victim.DATABASE: LEDGER,
        }[victim]

    def stop(self, service: str) -> list[psutil.Process]:
        """SIGSTOP a service; returns its processes, for go_on()."""
        process = getattr(self.rack.service(service), "process", None)
        members = [] if process is None else [process, *process.children(recursive=True)]
        for member in members:
            signal_process(member, signal.SIGSTOP)
        return members

    def kill(self, service: str) -> None:
        """SIGKILL a service, stopped or not."""
        self.rack.service(service).kill()

    def start(self, service: str) -> None:
        """Start a service that was killed, and wait until it serves."""
        self.rack.service(service).start()


def go_on(members: list[psutil.Process]) -> None:
    """SIGCONT processes; those that were killed meanwhile are no error."""
    for member in members:
        signal_process(member, signal.SIGCONT)


def _lives(item: ControllerView) -> bool:
    return psutil.pid_exists(int(item.holder.split(":")[1]))
