"""A whole rack in one process: real Nova, Placement, controller (SQLite) and agents over an emulated pool device.

Only the bus is oslo.messaging's in-memory one, and the hypervisor is Nova's fake.
"""

import threading
from pathlib import Path
from typing import Any

import fixtures
from oslo_config import cfg

from pondstack.conf import agent as agent_conf
from pondstack.controller import service as controller_service
from pondstack.controller.node.node import Node
from pondstack.db.connection import migration
from pondstack.db.connection.engine import Database
from pondstack.devices.emulated import create_device
from pondstack.rpc import transport as rpc
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.identity.identity import Role
from pondstack_agent.service import AgentService
from pondstack_rack.wait import Deadline
from tests.functional.base import CONF
from tests.functional.drivers import NovaWithFakes

CONTROLLER_CONF = """
[DEFAULT]
transport_url = fake:/
[database]
connection = sqlite:///{folder}/ledger.db
[controller]
name = controller
pool_devices = pool0=emulated:{folder}/pool0
free_buffer_slices = 1
agent_down_seconds = {agent_down_seconds}
device_failed_seconds = {device_failed_seconds}
reconcile_interval_seconds = 2
unclaimed_grace_seconds = {unclaimed_grace_seconds}
report_settle_seconds = 0.2
[ha]
lease_seconds = 10
[placement]
auth_type = admin_token
token = admin
endpoint = {placement}
endpoint_override = {placement}
[nova]
notifications = false
backfill = false
"""
AGENT_CONF = """
[DEFAULT]
transport_url = fake:/
host = {host}
[agent]
state_dir = {folder}/agent-{host}
heartbeat_seconds = 1
[emulated]
device_paths = {folder}/pool0
"""
SETTLE_SECONDS = 60.0


class NovaWithRack(NovaWithFakes):
    """Nova, and all of pondstack. `self.api_of_controller` calls the controller as an operator's tools do."""

    agent_down_seconds = 20
    device_failed_seconds = 30.0
    unclaimed_grace_seconds = 5

    def install_agents(self) -> None:
        """Leave the virt driver's calls as they are: the agents are real."""

    def start_controller(self) -> None:
        """Make device and ledger, start the controller, and the hosts' agents."""
        self.folder = Path(self.useFixture(fixtures.TempDir()).path)
        self._pause = threading.Event()
        create_device(self.folder / "pool0", slices=self.slices)
        self.controller_conf = self._conf(
            "controller",
            CONTROLLER_CONF.format(
                folder=self.folder,
                placement=self.placement.fixture.endpoint,
                agent_down_seconds=self.agent_down_seconds,
                device_failed_seconds=self.device_failed_seconds,
                unclaimed_grace_seconds=self.unclaimed_grace_seconds,
            ),
        )
        controller_service.register_opts(self.controller_conf)
        database = Database.from_conf(self.controller_conf)
        migration.sync(database)
        database.dispose()
        self.run_controller()
        self.addCleanup(self.stop_controller)
        self.api_of_controller = ControllerAPI(rpc.get_transport(CONF, Role.API))
        self.agents: dict[str, AgentService] = {}
        for host in self.hosts:
            self.start_agent(host)
            self.addCleanup(self.stop_agent, host)

    def run_controller(self) -> None:
        """Start a controller over the ledger and devices that are there."""
        self.real_controller: Any = Node(self.controller_conf)
        self.real_controller.start()
        assert self.real_controller.wait_until_leading(SETTLE_SECONDS)

    def stop_controller(self) -> None:
        """Stop the controller."""
        if self.real_controller is not None:
            controller, self.real_controller = self.real_controller, None
            controller.stop()

    def start_agent(self, host: str) -> None:
        """Start a host's agent over the state that it left."""
        conf = self._conf(f"agent-{host}", AGENT_CONF.format(folder=self.folder, host=host))
        agent_conf.register_opts(conf)
        self.agents[host] = AgentService(conf)
        self.agents[host].start()

    def stop_agent(self, host: str) -> None:
        """Stop a host's agent."""
        if host in self.agents:
            self.agents.pop(host).stop()

    def start_pool(self) -> str:
        """Wait until all hosts reach the pool, in the snapshot and in Placement; returns the pool's UUID."""

        def reached() -> None:
            view = self.api_of_controller.snapshot(timeout_seconds=30)
            assert set(view.usable_hosts) == set(self.hosts)
            assert set(view.pools[0].hosts) == set(self.hosts)
            aggregates = self._get_provider_aggregates(view.pools[0].uuid)
            assert aggregates
            for host in self.hosts:
                assert set(aggregates) <= set(self._get_provider_aggregates(self._get_provider_uuid_by_name(host)))
            # What splits are decided from comes by another way, and may be older.
            told = self.api_of_controller.split_view(epoch=0, version=0, now=True, timeout_seconds=30)
            assert any(room.claimable_mib for room in told.rooms)

        self.eventually(reached)
        # While a controller joins the hosts to the pool's aggregate, Placement refuses what their computes write at the
        # same moment (409, and 500 for traits). Nova writes it again at its next round, here as everywhere.
        self._run_periodics()
        return self.api_of_controller.snapshot(timeout_seconds=30).pools[0].uuid

    def ledger_of(self, server: dict[str, Any]) -> dict[str, int]:
        """Return what the ledger holds for a server: host to MiB."""
        records = self.real_controller.resources.reader.allocations(consumer_uuid=server["id"])
        return {record.host: record.pool_mib for record in records if record.state in ("online", "assigning")}

    def slices_by_state(self) -> dict[str, int]:
        """Return the pool's slice counts, states without slices left out."""
        return {
            state: count
            for state, count in self.real_controller.resources.reader.pool(self.pool).slices.items()
            if count
        }

    def settled(self) -> None:
        """Assert that ledger, Placement, agents and device agree, once what is under way has ended."""
        self.eventually(lambda: self._clean_audit())

    def eventually(self, check: Any) -> None:
        """Repeat a check until it holds."""
        deadline = Deadline(SETTLE_SECONDS)
        while True:
            try:
                return check()
            except (AssertionError, LookupError):
                if deadline.over:
                    raise
                deadline.pause()

    def _clean_audit(self) -> None:
        audit = self.api_of_controller.audit(repair=False)
        assert audit["clean"], audit["findings"]

    def _conf(self, name: str, text: str) -> cfg.ConfigOpts:
        path = self.folder / f"{name}.conf"
        path.write_text(text)
        conf = cfg.ConfigOpts()
        conf([], project="pondstack", default_config_files=[str(path)], default_config_dirs=[])
        return conf
