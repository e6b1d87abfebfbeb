"""What the tests of bad days do with the rack: boot on fake computes, break services, look whether anything leaked."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from keystoneauth1.exceptions import ClientException
from oslo_config import cfg

from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.units import GIB_MIB, RESOURCE_CLASS
from pondstack.rpc.transport import Bus
from pondstack_agent.drivers.emulated import EmulatedHostPool
from pondstack_agent.qemu.attachment_lock import FOLDER
from pondstack_rack import proof
from pondstack_rack.cloud_client import Cloud, gone
from pondstack_rack.daemon import Daemon
from pondstack_rack.processes import VHOST
from pondstack_rack.rack import Rack
from pondstack_rack.services import database, pondstack_services
from pondstack_rack.wait import wait_until
from tests.fixtures.identities import Identities
from tests.rack.device_hold import grants_held

SETTLE_SECONDS = 60.0
"""Within a minute ledger, Placement and agents agree again."""

BUILD_SECONDS = 180.0
"""A build of Nova's own gives up after its RPC time-outs; ours add at most attach_timeout_seconds for each try."""

SILENT_SECONDS = 90.0
"""A build on a host whose agent is silent ends within this time: [pondstack] agent_monitor_seconds, and Nova's own."""

LOST_SECONDS = 60.0
"""After this long a build that has not reached a host, or has just reached one, is lost: as Nova's RPC time-outs."""

TRAIT = "CUSTOM_POND_BAD_DAY"


class Days:
    """One bad day. All that it makes carries its own prefix and goes at its end."""

    def __init__(self, rack: Rack) -> None:
        self.rack = rack
        self.cloud = Cloud.of_rack(rack.layout.root)
        self.prefix = f"bad-{uuid4().hex[:6]}-"
        self.fakes = self.cloud.fake_hosts()
        self.image = self.cloud.image()
        self.before = proof.State({}, frozenset(), frozenset(), ())
        self.traits: list[tuple[str, str]] = []

    def __enter__(self) -> Self:
        state, unclean, _ = proof.settle(self.look, None, SETTLE_SECONDS)
        assert state, unclean
        assert not unclean, "the rack was not clean before the test"
        self.before = state
        self.until(self._at_rest, 2 * SETTLE_SECONDS, "slices of an earlier test are still on their way")
        self.before = self.look()
        for provider in self.fakes.values():
            self.cloud.set_trait(provider, TRAIT, present=True)
            self.traits.append((provider, TRAIT))
        return self

    def __exit__(self, *_: object) -> None:
        self.repair()
        for server in self.cloud.servers(self.prefix):
            self.cloud.delete_server(server["id"])
        self.until_gone()
        for flavor in self.cloud.flavors(self.prefix).values():
            gone(self.cloud.nova.delete, f"/flavors/{flavor}")
        for provider, trait in self.traits:
            self.cloud.set_trait(provider, trait, present=False)

    # The rack

    def daemon(self, name: str) -> Daemon:
        """Return a service as its process."""
        service = self.rack.service(name)
        assert isinstance(service, Daemon)
        return service

    def agent(self, host: str) -> Daemon:
        """Return the agent of a host."""
        return self.daemon(f"pondstack-agent-{host}")

    @property
    def controllers(self) -> list[Daemon]:
        """The controllers."""
        return [self.daemon(pondstack_services.controller_service(name)) for name in pondstack_services.CONTROLLERS]

    def kill_controllers(self) -> None:
        """Leave nobody who could take over."""
        for controller in self.controllers:
            controller.kill()

    def start_controllers(self) -> None:
        """Start those that were killed, and wait until one leads."""
        for controller in self.controllers:
            controller.start()
        self.until(self._somebody_leads, SETTLE_SECONDS, "no controller leads")

    def _somebody_leads(self) -> bool:
        return any(controller["role"] == "leader" for controller in self.cloud.memory_list("controllers"))

    @contextmanager
    def in_mid_attach(self, flavor: str, host: str) -> Iterator[str]:
        """Boot, and hold the build where the ledger has its slices and the device does not let the host in yet.

        Gives the server's UUID; the build goes on at the end.
        """
        with grants_held(self.rack.layout.pool_device):
            server = self.boot(flavor, host)
            self.until(lambda: self.allocations(server), 60.0, f"nothing was assigned to {server}")
            yield server

    def repair(self) -> None:
        """Start what the test stopped."""
        for service in self.rack.services.values():
            if not service.running:
                service.start()

    # Nova

    def flavor(self, pool_mib: int = GIB_MIB, memory_mib: int = 4 * GIB_MIB, only: tuple[str, ...] = ()) -> str:
        """Make a flavor with a fixed pool share that only fake computes take; `only` these of them."""
        trait = TRAIT
        if only:
            trait = f"{TRAIT}_{uuid4().hex[:6].upper()}"
            for host in only:
                self.cloud.set_trait(self.fakes[host], trait, present=True)
                self.traits.append((self.fakes[host], trait))
        specs = {"pond:policy": "fixed", "pond:pool_mb": str(pool_mib), f"trait:{trait}": "required"}
        return self.cloud.create_flavor(f"{self.prefix}{uuid4().hex[:6]}", 1, memory_mib, specs)

    def boot(self, flavor: str, host: str | None = None) -> str:
        """Ask for a server, on one host and no other when `host` is given."""
        body: dict[str, Any] = {
            "name": f"{self.prefix}{uuid4().hex[:6]}",
            "flavorRef": flavor,
            "imageRef": self.image,
            "networks": "none",
        }
        if host:
            body["hypervisor_hostname"] = host
        return str(self.cloud.nova.post("/servers", json={"server": body}).json()["server"]["id"])

    def server(self, server: str) -> dict[str, Any]:
        """Return a server as Nova shows it to the administrator."""
        return dict(self.cloud.nova.get(f"/servers/{server}").json()["server"])

    def until_built(self, server: str, seconds: float = BUILD_SECONDS) -> str:
        """Wait until a build has ended, well or not; returns its status."""
        self.until(lambda: self.server(server)["status"] in {"ACTIVE", "ERROR"}, seconds, f"{server} is still building")
        return str(self.server(server)["status"])

    def lost_builds(self, servers: list[str]) -> list[str]:
        """Return the builds that were lost; one that did not reach a host must have cost us nothing.

        nova-conductor writes a failed scheduling, and nova-compute a failed build, into the very database that is down:
        the server stays in BUILD, and whoever asked for it deletes it. On a host it may also just be slow.
        """

        def building(on_host: bool) -> list[str]:
            found = [item for server in servers if (item := self.server(server))["status"] == "BUILD"]
            return [str(item["id"]) for item in found if on_host or not item["OS-EXT-SRV-ATTR:host"]]

        wait_until(lambda: not building(on_host=False), LOST_SECONDS, poll_seconds=0.5)
        unplaced = building(on_host=False)
        for server in unplaced:
            assert self.allocations(server) == []
        wait_until(lambda: building(on_host=True) == unplaced, LOST_SECONDS, poll_seconds=0.5)
        return building(on_host=True)

    def until(self, condition: Any, seconds: float, otherwise: str) -> None:
        """Wait for a condition; a service that does not answer yet has not fulfilled it."""

        def holds() -> bool:
            try:
                return bool(condition())
            except ClientException:
                return False

        assert wait_until(holds, seconds, poll_seconds=0.2), otherwise

    def delete(self, *servers: str) -> None:
        """Delete servers and wait until Nova has done it."""
        for server in servers:
            self.cloud.delete_server(server)
        self.until_gone(*servers)

    def until_gone(self, *servers: str) -> None:
        """Wait until Nova has none of our servers, or none of these."""

        def none_left() -> bool:
            left = {server["id"] for server in self.cloud.servers(self.prefix)}
            return not (left & set(servers) if servers else left)

        self.until(none_left, BUILD_SECONDS, "servers are still there")

    def fault(self, server: str) -> str:
        """Return why a server is in ERROR; Nova writes it after the state."""

        def told() -> str:
            return str(self.server(server).get("fault", {}).get("message", ""))

        self.until(told, BUILD_SECONDS, f"no fault of server {server} is told")
        return told()

    def tried_hosts(self, server: str) -> list[str]:
        """Return the hosts on which a build was tried, in order."""
        actions = self.cloud.nova.get(f"/servers/{server}/os-instance-actions").json()["instanceActions"]
        create = next(action["request_id"] for action in actions if action["action"] == "create")
        found = self.cloud.nova.get(f"/servers/{server}/os-instance-actions/{create}").json()["instanceAction"]
        builds = [event for event in found["events"] if event["event"] == "compute__do_build_and_run_instance"]
        return [event["host"] for event in sorted(builds, key=lambda event: event["start_time"])]

    # pondstack

    def allocations(self, server: str) -> list[dict[str, Any]]:
        """Return what the ledger holds for a server."""
        return self.cloud.memory_list("allocations", consumer_uuid=server)

    def claimed_mib(self, server: str) -> int:
        """Return what Placement holds for a server."""
        return self.cloud.claimed_mib(server, RESOURCE_CLASS)

    def slices(self) -> list[dict[str, Any]]:
        """Return all slices of the one pool."""
        (pool,) = self.before.pools
        return self.cloud.memory_list(f"pools/{pool}/slices")

    def in_state(self, state: str) -> list[int]:
        """Return the indexes of the slices in a state."""
        return [item["index"] for item in self.slices() if item["state"] == state]

    @property
    def device(self) -> EmulatedDevice:
        """The pool device itself, behind everybody's back."""
        return EmulatedDevice(self.rack.layout.pool_device)

    def device_lets_in(self, allocation_uuid: str) -> bool:
        """Whether the device lets a host use the slices of an allocation."""
        return any(entry.tag == allocation_uuid for entry in self.device.permissions().values())

    def host_driver(self, host: str) -> EmulatedHostPool:
        """The host's side of the device, as its agent uses it; only while the agent is down."""
        state = self.rack.layout.host(host) / "agent"
        return EmulatedHostPool(host=host, state_dir=state, device_paths=[str(self.rack.layout.pool_device)])

    def record(self, host: str, allocation_uuid: str) -> Path:
        """The host's record of an attachment; a guest that runs holds its lock."""
        return self.rack.layout.host(host) / "agent" / FOLDER / f"{allocation_uuid}.json"

    def transport(self) -> Bus:
        """The bus of all parties of the rack, by the broker's user that may do all."""
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[str(self.rack.layout.etc / "pondstack.conf")])
        url = database.rabbitmq(self.rack.layout).transport_url(VHOST)
        return Identities(self.rack.layout.credentials).everybody(conf, url)

    def _at_rest(self) -> bool:
        return {item["state"] for item in self.slices()} <= {"free", "online"}

    def look(self) -> proof.State:
        """Return the present state of ledger, Placement and agents."""
        return proof.look(self.cloud, self.prefix)

    def assert_agreement(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until an audit is clean; the servers that live may hold what is theirs."""
        _, unclean, _ = proof.settle(self._look_at_faults, None, seconds)
        assert not unclean, unclean

    def _look_at_faults(self) -> proof.State:
        state = self.look()
        return proof.State(state.pools, state.allocations, state.claims, state.findings)

    def assert_nothing_leaked(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until the rack is what it was before the test."""
        _, leaked, _ = proof.settle(self.look, self.before, seconds)
        assert not leaked, leaked
