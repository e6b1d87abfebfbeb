"""What scenarios share: flavors and servers that clean up after themselves, what the service says of them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from oslo_log import log
from tempest import config
from tempest.lib import exceptions
from tempest.lib.common import api_microversion_fixture
from tempest.lib.common.utils import data_utils, test_utils

from pondstack_tempest import hooks, waiters
from pondstack_tempest.base import ADMIN, MemoryTest

CONF = config.CONF

COMPUTE_MICROVERSION = "2.74"
"""The first that boots on a host by name; servers without a network are older."""

PLACEMENT_MICROVERSION = "1.12"
RESOURCE_CLASS = "CUSTOM_POND_MEMORY_MB"


SPLIT_ATTEMPTS = 4
LOG = log.getLogger(__name__)


class ScenarioTest(MemoryTest):
    """A test with servers."""

    credentials: ClassVar[list[Any]] = [ADMIN, "primary"]

    def setUp(self) -> None:
        """Have Nova and Placement answer in the microversions that the tests were written for."""
        super().setUp()
        self.useFixture(
            api_microversion_fixture.APIMicroversionFixture(
                compute_microversion=COMPUTE_MICROVERSION, placement_microversion=PLACEMENT_MICROVERSION
            )
        )

    @property
    def servers(self) -> Any:
        """Nova's servers, as the tenant."""
        return self.os_primary.servers_client

    @property
    def admin_servers(self) -> Any:
        """Nova's servers, as the operator."""
        return self.os_admin.servers_client

    @property
    def services(self) -> hooks.Services:
        """The services of the cloud; skip where tests may not touch them."""
        if not CONF.pondstack.service_command:
            raise self.skipException("[pondstack] service_command is empty: tests may not kill services")
        return hooks.Services(CONF.pondstack.service_command, CONF.pondstack.service_command_timeout)

    # What a test needs

    def slice_mib(self) -> int:
        """Return the size of a slice; skip where no pool is up."""
        return int(self.the_pool()["slice_mib"])

    def flavor(self, local_mib: int, specs: dict[str, str], pool_mib: int = 0) -> str:
        """Make a flavor with so much memory in all; it goes with the test."""
        client = self.os_admin.flavors_client
        name = data_utils.rand_name("pond", prefix=CONF.resource_name_prefix)
        made = client.create_flavor(name=name, ram=local_mib + pool_mib, vcpus=1, disk=1)["flavor"]
        self.addCleanup(test_utils.call_and_ignore_notfound_exc, client.delete_flavor, made["id"])
        if specs:
            client.set_flavor_extra_spec(made["id"], **specs)
        return str(made["id"])

    def fixed(self, slices: int = 1) -> str:
        """Make a flavor with a fixed pool share of so many slices."""
        pool_mib = slices * self.slice_mib()
        specs = {"pond:policy": "fixed", "pond:pool_mb": str(pool_mib)}
        return self.flavor(CONF.pondstack.local_mib, specs, pool_mib)

    def boot(
        self, flavor: str, *, image: str = "", host: str = "", until: str = "ACTIVE", client: Any = None, **more: Any
    ) -> str:
        """Boot a server and wait for its status; `host`: on this one, as the operator. It goes with the test."""
        if host:
            client, more = self.admin_servers, {**more, "hypervisor_hostname": host}
        client = client or self.servers
        name = data_utils.rand_name("pond", prefix=CONF.resource_name_prefix)
        made = client.create_server(
            name=name, flavorRef=flavor, imageRef=image or CONF.compute.image_ref, networks="none", **more
        )["server"]
        self.addCleanup(self.delete, made["id"])
        if until:
            waiters.for_server(self.admin_servers, made["id"], [until])
        return str(made["id"])

    def boot_guest(self, flavor: str, **more: Any) -> str:
        """Boot a guest whose console can be read."""
        return self.boot(flavor, image=CONF.pondstack.guest_image_ref or CONF.compute.image_ref, **more)

    def boot_fixed(self, slices: int = 1, *, guest: bool = False, **more: Any) -> str:
        """Boot a server with so many slices, and wait until ledger and Placement agree on them.

        Where the split is not told to Nova's scheduler in time a server is all local, which is a warning in its log
        and no error. Such a server is deleted and another one booted, a few times.
        """
        boot, flavor = (self.boot_guest if guest else self.boot), self.fixed(slices)
        server = boot(flavor, **more)
        for _ in range(SPLIT_ATTEMPTS - 1):
            if self.claimed_mib(server):
                break
            LOG.warning("server %s is all local: the split came too late; booting another one", server)
            self.delete(server)
            server = boot(flavor, **more)
        self.assert_holds(server, slices * self.slice_mib())
        return server

    def delete(self, server: str) -> None:
        """Delete a server, and wait until it is gone; one that is gone already is all right."""
        test_utils.call_and_ignore_notfound_exc(self.admin_servers.delete_server, server)
        waiters.for_no_server(self.admin_servers, server)

    # What the cloud says

    def shown(self, server: str) -> dict[str, Any]:
        """Return a server as Nova shows it to the operator."""
        return dict(self.admin_servers.show_server(server)["server"])

    def host_of(self, server: str) -> str:
        """Return the host that a server is on."""
        return str(self.shown(server)["OS-EXT-SRV-ATTR:hypervisor_hostname"])

    def allocations(self, server: str) -> list[dict[str, Any]]:
        """Return the pool memory that the ledger holds for a server."""
        return list(self.memory("Allocations").list_allocations(consumer_uuid=server)["allocations"])

    def claimed_mib(self, server: str) -> int:
        """Return the pool memory that Placement holds for a server."""
        client = self.os_admin.placement.PlacementClient()
        claims = client.list_allocations(server)["allocations"].values()
        return sum(claim["resources"].get(RESOURCE_CLASS, 0) for claim in claims)

    def console(self, server: str) -> str:
        """Return what a server printed."""
        return str(self.admin_servers.get_console_output(server)["output"] or "")

    def nodes(self, server: str) -> dict[int, dict[str, str | None]]:
        """Return the guest's NUMA nodes as its console tells them, by number; waits for more than none."""
        pattern = re.compile(CONF.pondstack.console_node_regex)
        found: dict[int, dict[str, str | None]] = {}

        def told() -> bool:
            found.update({int(match["node"]): match.groupdict() for match in pattern.finditer(self.console(server))})
            return len(found) > 0

        self.until(told, f"the console of {server} tells no NUMA node as console_node_regex describes it")
        return found

    def allocation_of_guest(self, server: str) -> dict[str, Any]:
        """Return the one allocation that a server has; fails when it has none or several."""
        (held,) = self.allocations(server)
        return dict(held)

    def beat(self, server: str) -> tuple[int, int]:
        """Return how far a guest is, and how many errors it counted; waits for its first word."""
        found: list[re.Match[str]] = []

        def told() -> bool:
            found[:] = list(re.finditer(CONF.pondstack.alive_regex, self.console(server)))
            return bool(found)

        self.until(told, f"the console of {server} tells nothing as alive_regex describes it")
        return int(found[-1]["count"]), int(found[-1].groupdict().get("errors") or 0)

    # What has to hold

    @contextmanager
    def undisturbed(self, server: str, beats: int = 3) -> Iterator[None]:
        """Assert that a guest goes on during and after what is done within, without an error of its memory."""
        if not CONF.pondstack.alive_regex:
            yield
            return
        before = self.beat(server)[0]
        yield
        now = self.beat(server)[0]
        self.until(lambda: self.beat(server)[0] >= max(now, before) + beats, f"{server} does not go on after {now}")
        self.assertEqual(0, self.beat(server)[1], "the guest read something else than it had written")

    def assert_holds(self, server: str, pool_mib: int) -> dict[str, Any]:
        """Wait until ledger and Placement agree that a server has so much pool memory, on its own host.

        Returns the allocation, {} where there is none.
        """
        seen: list[Any] = []

        def agree() -> bool:
            held, claimed, host = self.allocations(server), self.claimed_mib(server), self.host_of(server)
            seen[:] = [held, claimed, host]
            right = [one for one in held if one["host"] == host and one["state"] == "online"]
            return sum(one["pool_mib"] for one in held) == claimed == pool_mib and len(right) == len(held) <= 1

        try:
            self.until(agree, "")
        except exceptions.TimeoutException:
            held, claimed, host = seen
            self.fail(f"{server} on {host} should hold {pool_mib} MiB; ledger: {held}, Placement: {claimed} MiB")
        return dict(seen[0][0]) if seen[0] else {}

    def assert_returned(self, server: str) -> None:
        """Wait until nothing of the pool is a server's any more, its slices included."""
        pool = self.the_pool()["uuid"]

        def returned() -> bool:
            slices = self.memory("Slices").list_slices(pool, limit=1000)["slices"]
            return not self.allocations(server) and all(one["consumer_uuid"] != server for one in slices)

        self.until(returned, f"pool memory of {server}, which is gone, is not back")
