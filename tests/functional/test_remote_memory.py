"""The whole life of guests with remote memory in a real Nova and Placement; agents in memory stand for data planes."""

from typing import Any

import pytest
from lxml import etree
from nova.tests.functional.api import client as api_client
from oslo_limit import fixture

from pondstack.domain import errors
from pondstack.domain.lending import DEFAULT_BUFFER_MIB, REMOTE_CLASS
from pondstack.domain.remote_share import MIRROR_CLASS
from tests.functional.drivers import NovaWithAgents, NovaWithFakes, NovaWithLibvirt

MEMORY, POOL = "MEMORY_MB", "CUSTOM_POND_MEMORY_MB"
IMAGE = "a2459075-d96c-40d5-893e-577ff92e721c"
LENT_MIB = 4096
MIRROR_MIB = 16384


class NovaWithLentMemory(NovaWithAgents):
    """Hosts with data planes, and memory that other hosts lend."""

    def install_agents(self) -> None:
        """Have room for mirrors on all hosts."""
        super().install_agents()
        self.agents.mirror_mib = dict.fromkeys(self.hosts, MIRROR_MIB)

    def start_pool(self) -> str:
        """Make the lenders' provider, as the controller does, beside the pool."""
        pool = super().start_pool()
        unit = DEFAULT_BUFFER_MIB
        record = {"total": LENT_MIB, "reserved": 0, "min_unit": unit, "step_size": unit, "max_unit": LENT_MIB}
        self.lenders = self.make_shared(
            "pondstack-lenders", REMOTE_CLASS, {**record, "allocation_ratio": 1.0}, self.hosts
        )
        return pool

    def boot_remote(self, remote_mib: int = 1024, memory_mib: int = 4096, **kwargs: Any) -> dict[str, Any]:
        """Boot a guest with remote memory alone."""
        return self.boot(self.flavor(memory_mib, remote_mb=str(remote_mib)), **kwargs)

    def lent_used_mib(self) -> int:
        """Return what is claimed of lent memory in Placement."""
        return int(self._get_provider_usages(self.lenders)[REMOTE_CLASS])

    def same_everywhere(self, server: dict[str, Any], memory: int = 4096, pool: int = 0, remote: int = 1024) -> None:
        """The guest's host, and only it, has borrowed; Placement grants as much, and room for a mirror."""
        host = self.host_of(server)
        assert self.agents.borrowed == {(host, server["id"]): remote}
        assert self.held(server) == ({host: pool} if pool else {})
        own = {MEMORY: memory - pool - remote, MIRROR_CLASS: memory - pool}
        shared = {"pondstack-lenders": {REMOTE_CLASS: remote}} | ({"pool0": {POOL: pool}} if pool else {})
        assert self.claim(server["id"]) == {host: own} | shared

    def nothing_is_left(self) -> None:
        """Nobody holds or claims anything."""
        assert self.agents.borrowed == {}
        assert self.agents.held == {}
        assert (self.lent_used_mib(), self.pool_used_mib()) == (0, 0)

    def calls(self, verb: str) -> int:
        """Return how often agents were called so."""
        return sum(line.startswith(f"{verb} ") for line in self.agents.log)


class Life(NovaWithLentMemory):
    """What holds for either driver. Not collected itself."""

    __test__ = False

    def test_on_one_host(self) -> None:
        """It is borrowed once, whatever happens to the guest there, and delete gives it back."""
        server = self.boot_remote()
        self.same_everywhere(server)
        self._reboot_server(server, hard=True)
        self._stop_server(server)
        self._start_server(server)
        self._reboot_server(server)
        for action, state in (("pause", "PAUSED"), ("unpause", "ACTIVE")):
            self.api.post_server_action(server["id"], {action: None})
            self._wait_for_state_change(server, state)
        self._suspend_server(server)
        self._resume_server(server)
        self._rebuild_server(server, IMAGE)
        self.same_everywhere(server)
        assert self.calls("alloc_ext") == 1
        self._delete_server(server)
        self.nothing_is_left()

    def test_beside_a_pool_share(self) -> None:
        """Three shares; both kinds go back together."""
        flavor = self.flavor(4096, policy="fixed", pool_mb="1024", remote_mb="1024")
        server = self.boot(flavor)
        self.same_everywhere(server, pool=1024)
        server = self._migrate_server(server)
        self.same_everywhere(server, pool=1024)
        self._confirm_resize(server)
        self._reboot_server(server, hard=True)
        self.same_everywhere(server, pool=1024)
        self._delete_server(server)
        self.nothing_is_left()

    def test_beside_an_automatic_pool_share(self) -> None:
        """15 % of 7168 MiB are one slice."""
        server = self.boot(self.flavor(7168, policy="auto", remote_mb="2048"))
        self.same_everywhere(server, 7168, 1024, 2048)

    def test_cold_migration(self) -> None:
        """Confirmed, then another one reverted: it is borrowed where the guest is."""
        server = self._migrate_server(self.boot_remote())
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
        assert self.lent_used_mib() == 1024

    def test_resize(self) -> None:
        """More of it, back, to none, and from none to some."""
        server = self.boot_remote()
        bigger = self.flavor(8192, remote_mb="2048")
        server = self._resize_server(server, bigger)
        self.same_everywhere(server, 8192, remote=2048)
        self._revert_resize(server)
        self.same_everywhere(server)
        server = self._resize_server(server, self.flavor(2048))
        self._confirm_resize(server)
        self.nothing_is_left()
        server = self._resize_server(server, bigger)
        self._confirm_resize(server)
        self.same_everywhere(server, 8192, remote=2048)

    def test_shelve(self) -> None:
        """Offloaded: nothing borrowed; unshelved: borrowed where it is now."""
        server = self.boot_remote()
        self._shelve_server(server)
        self.nothing_is_left()
        self.same_everywhere(self._unshelve_server(server))

    def test_evacuation(self) -> None:
        """Borrowed anew where it is built; what the dead host has, comes back with it or with its fence."""
        server = self.boot_remote()
        source = self.host_of(server)
        self.computes[source].stop()
        self.api.put_service_force_down(self.computes[source].service_ref.uuid, True)
        server = self._evacuate_server(server)
        target = self.host_of(server)
        assert target != source
        assert self.agents.borrowed == {(source, server["id"]): 1024, (target, server["id"]): 1024}
        assert self.claim(server["id"])[target] == {MEMORY: 3072, MIRROR_CLASS: 4096}
        self._reboot_server(server, hard=True)
        assert self.calls("alloc_ext") == 2

    def test_a_live_migration(self) -> None:
        """Borrowed at the destination, handed over, and given back at the source."""
        server = self.boot_remote()
        host = self.host_of(server)
        server = self._live_migrate(server)
        assert self.host_of(server) != host
        assert self.calls("hand_over") == self.calls("receive_guest") == 1
        self.same_everywhere(server)

    def test_a_live_migration_that_cannot_be_handed_over(self) -> None:
        """The guest runs on where it is, and nothing is left at the destination."""
        server = self.boot_remote()
        host = self.host_of(server)
        self.agents.faults["hand_over"] = [errors.Conflict("started by a former release; hard reboot it")] * 10
        self.api.post_server_action(server["id"], {"os-migrateLive": {"host": None, "block_migration": "auto"}})
        self._wait_for_migration_status(server, ["error", "failed"])
        server = self._wait_for_state_change(server, "ACTIVE")
        assert self.host_of(server) == host
        self.same_everywhere(server)

    def test_a_guest_whose_memory_is_lost(self) -> None:
        """With the host that it came from: it ends in ERROR with the reason, and a hard reboot boots it."""
        server = self.boot_remote()
        self.agents.lost = {self.host_of(server): [server["id"]]}
        self._run_periodics()
        found = self._wait_for_state_change(server, "ERROR")
        assert "A part of the memory of the server is lost" in self.fault_of(found)
        self.same_everywhere(server)
        self.agents.lost = {}
        self._run_periodics()
        self._reboot_server(server, hard=True)
        self.same_everywhere(server)
        self._delete_server(server)
        self.nothing_is_left()

    def test_only_hosts_with_a_data_plane(self) -> None:
        """Without one there is no room for a mirror, and with too little of it neither."""
        self.agents.mirror_mib = {"host2": 4096}
        self._run_periodics()
        server = self.boot_remote()
        assert self.host_of(server) == "host2"
        self.boot_remote(expected_state="ERROR")
        self.boot(self.flavor(2048))
        self._delete_server(server)
        self.boot_remote()

    def test_a_shortage_of_lent_memory(self) -> None:
        """Placement admits what is lent; an agent that cannot borrow it after all loses the build to another host."""
        self.agents.faults["alloc_ext"] = [errors.BufferShortage("a lender is gone")]
        server = self.boot_remote(2048)
        self.same_everywhere(server, remote=2048)
        assert self.calls("alloc_ext") == 2
        self.boot_remote(2048)
        failed = self.boot_remote(64, expected_state="ERROR")
        assert "No valid host" in self.fault_of(failed)
        assert self.lent_used_mib() == LENT_MIB

    def test_quota(self) -> None:
        """By unified limits, and what is remote is no local memory."""
        self.flags(driver="nova.quota.UnifiedLimitsDriver", group="quota")
        limits = {"servers": 10, "class:VCPU": 10, "class:DISK_GB": 10, "class:MEMORY_MB": 6144, f"class:{POOL}": 0}
        self.useFixture(fixture.LimitFixture(limits | {f"class:{REMOTE_CLASS}": 1024, f"class:{MIRROR_CLASS}": -1}, {}))
        self.boot_remote()
        body = {"server": self._build_server(flavor_id=self.flavor(2048, remote_mb="64"), networks="none")}
        with pytest.raises(api_client.OpenStackApiException) as refusal:
            self.api.post_server(body)
        assert refusal.value.response.status_code == 403
        assert f"class:{REMOTE_CLASS} is over limit of 1024" in refusal.value.response.text


@pytest.mark.night
class TestFake(NovaWithFakes, Life):
    """PondFakeDriver: nothing is served, as there are no processes."""

    __test__ = True


class TestLibvirt(NovaWithLibvirt, Life):
    """PondLibvirtDriver."""

    __test__ = True

    def setUp(self) -> None:
        """Open disks without O_DIRECT."""
        self.flags(disk_cachemodes=["file=writeback", "block=writeback"], group="libvirt")
        super().setUp()

    def domain(self, server: dict[str, Any]) -> Any:
        """Return the XML that a guest's domain was made by."""
        return etree.fromstring(self.connection(self.host_of(server)).lookupByUUIDString(server["id"]).given_xml)

    def test_with_a_swap_disk(self) -> None:
        """Beside remote memory: over what makes the process anew, it stays where it is; it claims its mirror only."""
        server = self.boot(self.flavor(4096, remote_mb="1024", swap_mb="512"))
        host = self.host_of(server)
        assert self.claim(server["id"])[host] == {MEMORY: 3072, MIRROR_CLASS: 4096 + 512}
        for step in (
            lambda: None,
            lambda: self._reboot_server(server, hard=True),
            lambda: self._rescue_server(server),
            lambda: self._unrescue_server(server),
        ):
            step()
            assert self.agents.swap == {(host, server["id"]): 512}
            [disk] = self.domain(server).findall("devices/disk[@type='network']")
            assert disk.find("source/host").get("socket") == f"/plane/{host}/{server['id']}.sock"
        self._delete_server(server)
        assert self.agents.swap == {}
        self.nothing_is_left()

    def test_a_swap_disk_of_another_size(self) -> None:
        """It is made anew where the guest goes; live, the guest does not."""
        server = self.boot(self.flavor(4096, swap_mb="512"))
        host = self.host_of(server)
        assert self.claim(server["id"])[host] == {MEMORY: 4096, MIRROR_CLASS: 512}
        self.api.post_server_action(server["id"], {"os-migrateLive": {"host": None, "block_migration": "auto"}})
        self._wait_for_migration_status(server, ["error", "failed"])
        server = self._wait_for_state_change(server, "ACTIVE")
        assert "a server with a swap disk in remote memory cannot be migrated live" in self.log_text()
        server = self._resize_server(server, self.flavor(4096, swap_mb="1024"))
        self._confirm_resize(server)
        assert self.agents.swap == {(self.host_of(server), server["id"]): 1024}

    def test_each_start_has_it_served(self) -> None:
        """Whatever makes the process anew: before it runs, with the limit that Placement grants."""
        server = self.boot_remote()
        host = self.host_of(server)
        steps = [
            lambda: None,
            lambda: self._reboot_server(server, hard=True),
            lambda: self._reboot_server(server),
            lambda: (self._stop_server(server), self._start_server(server)),
            lambda: (self._suspend_server(server), self._resume_server(server)),
            lambda: self._rescue_server(server),
            lambda: self._unrescue_server(server),
            lambda: self._rebuild_server(server, IMAGE),
        ]
        for number, step in enumerate(steps, 1):
            step()
            assert self.calls("extend") == number
            assert self.agents.served[host, server["id"]] == (4096, 3072)
            domain = self.domain(server)
            assert domain.find("memoryBacking/source").get("type") == "memfd"
            assert [cell.get("memAccess") for cell in domain.findall("cpu/numa/cell")] == ["shared"]
            assert domain.findtext("devices/emulator") == "/usr/bin/pondstack-qemu"
            assert self.connection(host).lookupByUUIDString(server["id"]).isActive()

    def test_beside_a_pool_node(self) -> None:
        """The first node is served, the pool's is not."""
        server = self.boot(self.flavor(4096, policy="fixed", pool_mb="1024", remote_mb="1024"))
        assert self.agents.served[self.host_of(server), server["id"]] == (3072, 2048)
        cells = [cell.get("memory") for cell in self.domain(server).findall("cpu/numa/cell")]
        assert cells == [str(3072 * 1024), str(1024 * 1024)]

    def test_what_is_not_served_is_built_elsewhere(self) -> None:
        """Nothing of the first attempt is left."""
        self.agents.faults["extend"] = [errors.HostUnusable("the data plane does not start")]
        server = self.boot_remote()
        self.same_everywhere(server)
        assert self.calls("extend") == 2

    def test_a_host_that_restarts(self) -> None:
        """With resume_guests_state_on_host_boot the guest is served again."""
        self.flags(resume_guests_state_on_host_boot=True)
        server = self.boot_remote()
        host = self.host_of(server)
        self.computes[host].stop()
        self.connection(host).lookupByUUIDString(server["id"]).destroy()
        self.comes_back(host)
        assert self.connection(host).lookupByUUIDString(server["id"]).isActive()
        assert self.calls("extend") == 2
        self.same_everywhere(server)

    def test_hosts_whose_disks_are_opened_with_o_direct(self) -> None:
        """They are not chosen: each build would be refused."""
        for host in self.hosts:
            self.driver(host).disk_cachemodes = {"file": "none"}
        self._run_periodics()
        self.boot_remote(expected_state="ERROR")
        self.nothing_is_left()
