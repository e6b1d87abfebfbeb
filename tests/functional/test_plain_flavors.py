"""Flavors without pond: specs under a default policy: servers live as those with pool memory by their flavor."""

from typing import Any

from lxml import etree

from pondstack.domain.project_settings import DefaultPolicy, ProjectSettings
from pondstack_nova.scheduler import split_view
from tests.functional.drivers import NovaWithAgents, NovaWithFakes, NovaWithLibvirt
from tests.functional.test_life_of_a_guest import LifeCycle

POOL = "CUSTOM_POND_MEMORY_MB"


class PlainFlavors(NovaWithAgents):
    """Plain flavors are treated as pond:policy=auto. Not collected itself."""

    __test__ = False

    def setUp(self) -> None:
        """Set the option before the first request."""
        super().setUp()
        self.flags(default_policy="auto", group="pondstack")

    def pond_flavor(self, pool_mib: int, memory_mib: int) -> str:
        """Make a plain flavor, and have the controller say which share is decided."""
        self.decide(100 * pool_mib // memory_mib)
        return self.flavor(memory_mib)

    def decide(self, percent: int, **projects: ProjectSettings) -> None:
        """Have the controller tell of this share, and of these settings, from the next request on."""
        self.controller.percent = percent
        self.controller.projects = projects
        split_view.reset()


class TestLifeCycle(PlainFlavors, NovaWithLibvirt, LifeCycle):
    """Each step of a guest's life, as tests of flavors with a fixed share have them."""

    __test__ = True
    remembers = True

    def comes_back(self, host: str) -> None:
        """Start the compute with the connection that it had."""
        libvirt = self.connection(host)
        self.computes.pop(host)
        self.compute_rp_uuids.pop(host)
        self.start_compute(host, connection=libvirt)

    def test_between_plain_and_pond_flavors(self) -> None:
        """Resizes of the same RAM: plain, fixed, local, plain. The domain is what Placement grants, each time."""
        server = self.boot_pond(2048)
        for flavor, pool_mib in (
            (self.flavor(4096, policy="fixed", pool_mb="1024"), 1024),
            (self.flavor(4096, policy="local"), 0),
            (self.flavor(4096), 2048),
        ):
            server = self._resize_server(server, flavor)
            self._confirm_resize(server)
            host = self.host_of(server)
            assert self.cells(server, host) == ((pool_mib,) if pool_mib else ())
            assert self.held(server) == ({host: pool_mib} if pool_mib else {})
            assert self.claim(server["id"])[host] == {"MEMORY_MB": 4096 - pool_mib}

    def test_each_step(self) -> None:
        """As for servers of flavors with a fixed share."""
        steps = (self.on_one_host, self.cold_migration, self.resize, self.shelve, self.live_migration, self.evacuation)
        for step in steps:
            step()
            for server in self.api.get_servers():
                self._delete_server(server)
            assert self.pool_used_mib() == 0
            self.agents.attaches.clear()

    def test_while_the_policy_changes(self) -> None:
        """A guest keeps its node through reboots, a rescue and a live migration; a cold one gives it back."""
        server, other = self.boot_pond(), self.boot_pond()
        self.flags(default_policy="none", group="pondstack")
        self._reboot_server(server, hard=True)
        self._rescue_server(server)
        assert self.cells(server, self.host_of(server)) == (1024,)
        self._unrescue_server(server)
        server = self._live_migrate(server)
        self.same_everywhere(server)
        assert self.cells(server, self.host_of(server)) == (1024,)
        other = self._migrate_server(other)
        self._confirm_resize(other)
        host = self.host_of(other)
        assert (self.held(other), self.cells(other, host)) == ({}, ())
        assert self.claim(other["id"]) == {host: {"MEMORY_MB": 4096}}

    def test_one_that_is_all_local(self) -> None:
        """Of a pond: flavor or not, what is claimed decides: no node, no question of an agent to start it."""
        server = self.boot(self.flavor(2048))
        domain = self.connection(self.host_of(server)).lookupByUUIDString(server["id"]).given_xml
        assert etree.fromstring(domain).find("cpu/numa") is None
        assert self.agents.log == []
        self.agents.down = set(self.hosts)
        self._reboot_server(server, hard=True)
        server = self._live_migrate(server)
        self._delete_server(server)
        assert self.agents.attaches == []


class TestWhoDecides(PlainFlavors, NovaWithFakes):
    """Projects, aggregates and the option, in Nova's own scheduler."""

    __test__ = True

    def split_of(self, server: dict[str, Any]) -> tuple[int, str, str]:
        """Return the pool memory that Placement has for a server, and source and reason as the controller was told."""
        told = self.told_of(server)
        pool_mib = sum(held.get(POOL, 0) for held in self.claim(server["id"]).values())
        assert told.pool_mib == pool_mib
        return pool_mib, told.source, told.reason

    def zone(self, name: str, host: str, **metadata: str) -> None:
        """Make an aggregate that is an availability zone of one host."""
        body = {"aggregate": {"name": name, "availability_zone": name}}
        aggregate = self.api.post_aggregate(body)
        self.api.add_host_to_aggregate(aggregate["id"], host)
        if metadata:
            values = {f"pond:{key}": value for key, value in metadata.items()}
            self.api.post_aggregate_action(aggregate["id"], {"set_metadata": {"metadata": values}})

    def test_what_is_nearer_decides(self) -> None:
        """A zone with none beside two hosts without a word; then the project's word, and its cap."""
        self.decide(25)
        self.zone("plain", "host1", default_policy="none")
        flavor = self.flavor(4096)
        servers = [self.boot(flavor) for _ in range(3)]
        assert {self.split_of(server)[:2] for server in servers} == {(1024, "static")}
        assert {self.host_of(server) for server in servers} <= {"host2", "host3"}
        zoned = self.boot(flavor, az="plain")
        assert self.claim(zoned["id"]) == {"host1": {"MEMORY_MB": 4096}}
        own = self.boot(self.flavor(4096, policy="fixed", pool_mb="1024"), az="plain")
        assert self.split_of(own)[:2] == (1024, "fixed")
        project = zoned["tenant_id"]
        self.decide(50, **{project: ProjectSettings(DefaultPolicy.AUTO, 25)})
        self.flags(default_policy="none", group="pondstack")
        pool_mib, _, reason = self.split_of(self.boot(flavor, az="plain"))
        assert pool_mib == 1024
        assert reason.endswith("the project says auto")

    def test_several_at_once_and_one_that_cannot(self) -> None:
        """Each of a request is told of; one whose flavor sets its memory is all local, and says why."""
        self.decide(25)
        body = self._build_server(flavor_id=self.flavor(4096), networks="none")
        self.api.post_server({"server": body | {"min_count": 2, "max_count": 2}})
        for server in [self._wait_for_state_change(server, "ACTIVE") for server in self.api.get_servers()]:
            assert self.split_of(server)[:2] == (1024, "static")
        extra = {"resources:MEMORY_MB": "4096"}
        flavor = self._create_flavor(memory_mb=4096, vcpu=1, disk=1, ephemeral=0, extra_spec=extra)
        assert self.split_of(self.boot(str(flavor)))[:2] == (0, "unfit")
        assert self.pool_used_mib() == 2048
