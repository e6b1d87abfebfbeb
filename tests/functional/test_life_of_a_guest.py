"""The whole life of guests with pool memory in a real Nova: what the agents hold and what Placement grants agree."""

from typing import Any

import pytest
from lxml import etree
from nova.compute import power_state
from nova.tests.fixtures import libvirt as fakelibvirt

from pondstack.domain import errors
from tests.fixtures.fake_agents import devdax_backing, node_backing
from tests.functional.drivers import NovaWithAgents, NovaWithFakes, NovaWithLibvirt

POOL = "CUSTOM_POND_MEMORY_MB"


class LifeCycle(NovaWithAgents):
    """What holds for either driver, and for each flavor whose servers have pool memory; each starts without servers."""

    __test__ = False
    remembers: bool

    def same_everywhere(self, server: dict[str, Any], pool_mib: int = 1024) -> None:
        """The guest's host, and only it, has the slices; Placement grants as much."""
        host = self.host_of(server)
        assert self.held(server) == {host: pool_mib}
        claim = self.claim(server["id"])
        assert claim["pool0"] == {POOL: pool_mib}
        assert set(claim) == {"pool0", host}

    def on_one_host(self) -> None:
        """Boot, reboot, stop, start, pause, suspend, rebuild: the same slices all the time; delete frees them."""
        server = self.boot_pond()
        self.same_everywhere(server)
        slices = self.agents.held.copy()
        self._reboot_server(server, hard=True)
        self._stop_server(server)
        self._start_server(server)
        self._reboot_server(server)
        for action, state in (("pause", "PAUSED"), ("unpause", "ACTIVE")):
            self.api.post_server_action(server["id"], {action: None})
            self._wait_for_state_change(server, state)
        self._suspend_server(server)
        self._resume_server(server)
        self._rebuild_server(server, "a2459075-d96c-40d5-893e-577ff92e721c")
        assert self.agents.held == slices
        assert len(self.agents.attaches) == 1
        self._delete_server(server)
        assert self.agents.held == {}
        assert self.pool_used_mib() == 0

    def cold_migration(self) -> None:
        """Confirmed, then another one reverted: the slices are where the guest is."""
        server = self._migrate_server(self.boot_pond())
        self.same_everywhere(server)
        self._confirm_resize(server)
        self.same_everywhere(server)
        home = self.host_of(server)
        server = self._migrate_server(server)
        assert self.host_of(server) != home
        self.same_everywhere(server)
        self._revert_resize(server)
        assert self.host_of(server) == home
        self.same_everywhere(server)
        assert self.pool_used_mib() == 1024

    def resize(self) -> None:
        """More pool memory, then back, then to a flavor without any."""
        server = self.boot_pond()
        bigger = self.pond_flavor(2048, 8192)
        server = self._resize_server(server, bigger)
        self.same_everywhere(server, 2048)
        self._revert_resize(server)
        self.same_everywhere(server)
        server = self._resize_server(server, self.flavor(2048))
        self._confirm_resize(server)
        assert self.held(server) == {}
        assert self.pool_used_mib() == 0

    def shelve(self) -> None:
        """Offloaded: nothing held; unshelved: attached where it is now."""
        server = self.boot_pond()
        self._shelve_server(server)
        assert self.agents.held == {}
        assert self.pool_used_mib() == 0
        server = self._unshelve_server(server)
        self.same_everywhere(server)

    def live_migration(self) -> None:
        """As many slices per node as at the source; the source's are released."""
        self.agents.shape = (2, 1)
        server = self.boot_pond(3072)
        source = self.host_of(server)
        self.agents.shape = None
        server = self._live_migrate(server)
        assert self.host_of(server) != source
        self.same_everywhere(server, 3072)
        assert self.agents.attaches[-1]["shape"] == (2, 1)

    def evacuation(self) -> None:
        """The new host attaches; the old one releases when it is back."""
        server = self.boot_pond()
        source = self.host_of(server)
        self.computes[source].stop()
        self.api.put_service_force_down(self.computes[source].service_ref.uuid, True)
        server = self._evacuate_server(server)
        target = self.host_of(server)
        assert target != source
        assert self.held(server) == {source: 1024, target: 1024}
        self.comes_back(source)
        if self.remembers:
            self.same_everywhere(server)

    def comes_back(self, host: str) -> None:
        """Start a stopped compute again."""
        raise NotImplementedError


class Life(LifeCycle):
    """What holds for either driver; of flavors with a fixed share. Not collected itself."""

    def test_on_one_host(self) -> None:
        """Boot, reboot, stop, start, pause, suspend, rebuild: the same slices all the time; delete frees them."""
        self.on_one_host()

    def test_cold_migration(self) -> None:
        """Confirmed, then another one reverted: the slices are where the guest is."""
        self.cold_migration()

    def test_resize(self) -> None:
        """More pool memory, then back, then to a flavor without any."""
        self.resize()

    def test_shelve(self) -> None:
        """Offloaded: nothing held; unshelved: attached where it is now."""
        self.shelve()

    def test_live_migration(self) -> None:
        """As many slices per node as at the source; the source's are released."""
        self.live_migration()

    def test_evacuation(self) -> None:
        """The new host attaches; the old one releases when it is back."""
        self.evacuation()

    def test_live_migration_without_slices_at_the_destination(self) -> None:
        """The guest stays where it is, running, with its slices; the destination keeps nothing."""
        server = self.boot_pond()
        source = self.host_of(server)
        self.agents.faults["attach"] = [errors.PoolFragmented("no such shape")]
        self.api.post_server_action(server["id"], {"os-migrateLive": {"host": None, "block_migration": "auto"}})
        self._wait_for_migration_status(server, ["error", "failed"])
        server = self._wait_for_state_change(server, "ACTIVE")
        assert self.host_of(server) == source
        self.same_everywhere(server)

    def test_live_migration_keeps_the_split(self) -> None:
        """It takes what the guest runs with, not what the service would say now: no answer is no obstacle."""
        server = self.boot_pond()
        source = self.host_of(server)
        self.lose_the_view()
        server = self._live_migrate(server)
        assert self.host_of(server) != source
        self.same_everywhere(server)

    def test_live_migration_of_a_guest_that_fell_back(self) -> None:
        """All local for want of an answer: it stays all local while it runs, though the flavor says otherwise."""
        self.lose_the_view()
        server = self.boot_pond()
        source = self.host_of(server)
        assert self.claim(server["id"]) == {source: {"MEMORY_MB": 4096}}
        self.regain_the_view()
        server = self._live_migrate(server)
        assert self.host_of(server) != source
        assert self.claim(server["id"]) == {self.host_of(server): {"MEMORY_MB": 4096}}

    def test_cold_migration_of_a_guest_that_fell_back(self) -> None:
        """It starts anew, so it gets the share of its flavor."""
        self.lose_the_view()
        server = self.boot_pond()
        assert self.held(server) == {}
        self.regain_the_view()
        server = self._migrate_server(server)
        self.same_everywhere(server)

    def test_no_slices(self) -> None:
        """An attach that fails moves the build to another host, and leaves nothing behind."""
        self.agents.faults["attach"] = [errors.PoolShortage("pool0 has no free slice")]
        server = self.boot_pond()
        self.same_everywhere(server)
        first, second = [line for line in self.agents.log if line.startswith("attach")]
        assert first != second
        assert "pool0 has no free slice" in self.log_text()

    def test_dead_agent(self) -> None:
        """A host whose agent is silent loses the build to another one; deleting does not wait for a dead agent."""
        self.agents.down = {"host1", "host2"}
        server = self.boot_pond()
        assert self.host_of(server) == "host3"
        self.same_everywhere(server)
        self.agents.down = set(self.hosts)
        self._delete_server(server)
        assert self.pool_used_mib() == 0

    def test_no_agent_at_all(self) -> None:
        """Everybody silent: an error, nothing claimed; guests without pool memory do not care."""
        self.agents.down = set(self.hosts)
        server = self.boot_pond(expected_state="ERROR")
        assert self.held(server) == {}
        assert self.pool_used_mib() == 0
        self.boot(self.flavor(2048))


@pytest.mark.night
class TestFake(NovaWithFakes, Life):
    """PondFakeDriver. It recalls the guests that Nova has there, so that an evacuated host has none to destroy."""

    __test__ = True
    remembers = False

    def comes_back(self, host: str) -> None:
        """Start the compute on an empty hypervisor."""
        self.restart_compute_service(self.computes[host])


class TestLibvirt(NovaWithLibvirt, Life):
    """PondLibvirtDriver."""

    __test__ = True
    remembers = True

    def domain(self, server: dict[str, Any]) -> Any:
        """Return the XML that a guest's domain was made by."""
        return etree.fromstring(self.connection(self.host_of(server)).lookupByUUIDString(server["id"]).given_xml)

    def test_the_guest_has_its_node(self) -> None:
        """The domain has the node, run by the head, before and after a hard reboot, rescued or not."""
        self.agents.shape = (2, 1)
        server = self.boot_pond(3072)

        def has_its_nodes() -> None:
            domain = self.domain(server)
            assert self.cells(server, self.host_of(server)) == (2048, 1024)
            assert domain.findtext("devices/emulator") == "/usr/bin/pondstack-qemu"
            assert domain.findtext("memory") == str(4096 * 1024)
            assert domain.findtext("seclabel[@model='dac'][@type='static']/label") == "+0:+0"
            assert domain.find("seclabel[@model='apparmor'][@type='none']") is not None

        has_its_nodes()
        self._reboot_server(server, hard=True)
        has_its_nodes()
        self._rescue_server(server)
        has_its_nodes()
        self._unrescue_server(server)
        has_its_nodes()
        assert len(self.agents.attaches) == 1

    def test_a_plain_guest_is_as_nova_makes_it(self) -> None:
        """No NUMA node, no head, no question to an agent."""
        server = self.boot(self.flavor(2048))
        assert self.domain(server).find("cpu/numa") is None
        assert self.domain(server).find("devices/emulator") is None
        assert self.domain(server).find("seclabel") is None
        assert self.agents.log == []

    def test_host_restart(self) -> None:
        """With resume_guests_state_on_host_boot the guest comes back on the slices that it had."""
        self.flags(resume_guests_state_on_host_boot=True)
        server = self.boot_pond()
        host, slices = self.host_of(server), self.agents.held.copy()
        self.computes[host].stop()
        self.connection(host).lookupByUUIDString(server["id"]).destroy()
        self.comes_back(host)
        domain = self.connection(host).lookupByUUIDString(server["id"])
        assert domain.isActive()
        assert self.cells(server, host) == (1024,)
        assert self.agents.held == slices

    def test_moved_guests_are_bound_to_the_destinations_nodes(self) -> None:
        """CXL: each host has its own number for the node of a slice."""
        self.agents.backing = node_backing({"host1": 5, "host2": 6, "host3": 7})
        server = self._live_migrate(self.boot_pond())
        (node,) = self.domain(server).xpath("numatune/memnode[@cellid='1']")
        assert node.get("nodeset") == {"host1": "5", "host2": "6", "host3": "7"}[self.host_of(server)]
        self.same_everywhere(server)

    def test_slices_that_guests_map_are_handed_over_and_taken_up(self) -> None:
        """CXL: the guest arrives paused, and runs once its former host has let go, with its caches written back."""
        self.agents.backing = devdax_backing
        server = self.boot_pond()
        (source, before) = self.host_of(server), self.agents.held[self.host_of(server), server["id"]].extents
        server = self._live_migrate(server)
        host = self.host_of(server)
        assert self.agents.held[host, server["id"]].extents == before
        assert self.agents.log.index(f"detach {source}") < self.agents.log.index(f"take_up {host}")
        assert self.connection(host).lookupByUUIDString(server["id"]).isActive()
        assert server["OS-EXT-STS:power_state"] == power_state.RUNNING
        assert [cell.get("memAccess") for cell in self.domain(server).findall("cpu/numa/cell")] == [None, "shared"]
        self.same_everywhere(server)

    def test_a_guest_that_may_not_run_at_its_destination_stays_paused(self) -> None:
        """Its former host does not answer: it may have bytes of the guest in its caches."""
        self.agents.backing = devdax_backing
        server = self.boot_pond()
        self.agents.faults["take_up"] = [errors.DeviceFailed("CPU caches are not written back")]
        source = self.host_of(server)
        self._live_migrate(server, "error", server_expected_state="ERROR")
        host = self.host_of(server)
        server = self.api.get_server(server["id"])
        assert host != source
        assert server["OS-EXT-STS:power_state"] == power_state.PAUSED
        assert self.connection(host).lookupByUUIDString(server["id"]).info()[0] == fakelibvirt.VIR_DOMAIN_PAUSED
        assert self.held(server) == {host: 1024}

    def test_slices_that_guests_map_are_copied_where_they_cannot_be_handed_over(self) -> None:
        """Of another device, or by a host of a former release: nobody waits for them."""
        self.agents.backing, self.agents.hands_over = devdax_backing, False
        server = self.boot_pond()
        before = self.agents.held[self.host_of(server), server["id"]].extents
        server = self._live_migrate(server)
        assert self.agents.held[self.host_of(server), server["id"]].extents != before
        assert not any(entry.startswith("take_up") for entry in self.agents.log)
        assert server["OS-EXT-STS:power_state"] == power_state.RUNNING
        self.same_everywhere(server)

    def test_no_guest_moves_between_kinds_of_backing(self) -> None:
        """A node at one side and devices at the other: refused before anything is copied."""
        self.agents.backing = devdax_backing
        server = self.boot_pond()
        source = self.host_of(server)
        self.agents.backing, self.agents.hands_over = node_backing({"host1": 5, "host2": 6, "host3": 7}), False
        self.api.post_server_action(server["id"], {"os-migrateLive": {"host": None, "block_migration": "auto"}})
        self._wait_for_migration_status(server, ["error", "failed"])
        server = self._wait_for_state_change(server, "ACTIVE")
        assert self.host_of(server) == source
        self.same_everywhere(server)

    def test_failed_live_migration(self) -> None:
        """The destination gives its slices back, on shared storage too, where Nova has nothing else to clean up."""
        server = self.boot_pond()
        source = self.host_of(server)
        self.fail_migration = True
        self._live_migrate(server, "failed")
        assert self.host_of(server) == source
        self._wait_for_assert(lambda: self.same_everywhere(server))
        assert len(self.agents.attaches) == 2

    def test_a_guest_that_is_not_what_the_agent_holds_does_not_move(self) -> None:
        """Its pages would go to memory that is not there."""
        server = self.boot_pond()
        self.agents.lose(self.host_of(server))
        self.api.post_server_action(server["id"], {"os-migrateLive": {"host": None, "block_migration": "auto"}})
        self._wait_for_migration_status(server, ["error"])
        assert "the running guest has CPU-less nodes of [1024] MiB" in self.log_text()

    def test_a_failed_boot_gives_the_slices_back(self) -> None:
        """libvirt refuses to start the guest everywhere: an error, nothing held, nothing claimed."""
        self._patch("nova.virt.libvirt.LibvirtDriver._create_guest", side_effect=RuntimeError("QEMU does not start"))
        server = self.boot_pond(expected_state="ERROR")
        assert len(self.agents.attaches) >= 1
        assert self.held(server) == {}
        assert self.pool_used_mib() == 0
