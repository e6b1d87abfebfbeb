"""Boot with each policy, and what Placement, the API and the databases hold afterwards."""

from dataclasses import replace

from nova import context, objects

from pondstack.domain import errors
from pondstack_nova.counters import SPLIT_FALLBACKS
from pondstack_nova.scheduler import snapshot
from tests.functional.base import NovaWithPondstack

POOL = "CUSTOM_POND_MEMORY_MB"


class TestBoot(NovaWithPondstack):
    """One boot for each kind of flavor."""

    def test_fixed(self) -> None:
        """A fixed share is claimed from the pool, the rest from the host; the edit of the flavor is nowhere stored."""
        server = self.boot(self.flavor(4096, policy="fixed", pool_mb="1024"))
        host = server["OS-EXT-SRV-ATTR:host"]
        assert self.claim(server["id"]) == {host: {"MEMORY_MB": 3072}, "pool0": {POOL: 1024}}
        pond_only = {"pond:policy": "fixed", "pond:pool_mb": "1024"}
        assert server["flavor"]["extra_specs"] == pond_only
        stored = objects.RequestSpec.get_by_instance_uuid(context.get_admin_context(), server["id"])
        assert stored.flavor.extra_specs == pond_only
        self._delete_server(server)
        assert self.pool_used_mib() == 0

    def test_auto(self) -> None:
        """The static auto policy takes 15 % in whole slices."""
        server = self.boot(self.flavor(7168, policy="auto", max_pool_percent="50"))
        host = server["OS-EXT-SRV-ATTR:host"]
        assert self.claim(server["id"]) == {host: {"MEMORY_MB": 6144}, "pool0": {POOL: 1024}}
        (features,) = self.controller.splits
        assert features["instance_uuid"] == server["id"]
        assert features["memory_mib"] == 7168
        assert features["specs"]["max_pool_percent"] == 50

    def test_auto_of_a_small_flavor_is_all_local(self) -> None:
        """A share of less than one slice asks for no pool memory at all."""
        server = self.boot(self.flavor(2048, policy="auto"))
        assert self.claim(server["id"]) == {server["OS-EXT-SRV-ATTR:host"]: {"MEMORY_MB": 2048}}

    def test_local_and_plain_flavors_ask_nobody(self) -> None:
        """policy=local and flavors without pond: specs are placed as by stock Nova: no split is asked for."""
        for flavor in (self.flavor(2048, policy="local"), self.flavor(2048)):
            server = self.boot(flavor)
            assert self.claim(server["id"]) == {server["OS-EXT-SRV-ATTR:host"]: {"MEMORY_MB": 2048}}
        assert self.controller.splits == []

    def test_forced_host(self) -> None:
        """A host that the administrator names gets local and pool memory too."""
        server = self.boot(self.flavor(4096, policy="fixed", pool_mb="1024"), host="host2")
        assert self.claim(server["id"]) == {"host2": {"MEMORY_MB": 3072}, "pool0": {POOL: 1024}}

    def test_two_at_once(self) -> None:
        """A multi-create takes the share for each of its instances."""
        body = self._build_server(flavor_id=self.flavor(4096, policy="fixed", pool_mb="2048"), networks="none")
        self.api.post_server({"server": body | {"min_count": 2, "max_count": 2}})
        for server in self.api.get_servers():
            self._wait_for_state_change(server, "ACTIVE")
        assert self.pool_used_mib() == 2 * 2048


class TestShortage(NovaWithPondstack):
    """More pool memory than there is."""

    def test_over_ask_names_pool_and_shortage(self) -> None:
        """The fault that the tenant sees names the pool and what is short; nothing stays claimed."""
        server = self.boot(self.flavor(16384, policy="fixed", pool_mb="8192"), "ERROR")
        assert server["fault"]["message"] == (
            "No valid host was found. 8192 MiB of pool memory are wanted, "
            "pool pool0 has 7168 MiB free of 8192 MiB (1024 MiB short)"
        )
        assert self.pool_used_mib() == 0

    def test_the_controllers_refusal_is_shown(self) -> None:
        """A split that the service refuses ends in its words."""
        self.controller.fault = errors.PoolShortage("pool pool0 is being drained")
        server = self.boot(self.flavor(4096, policy="fixed", pool_mb="1024"), "ERROR")
        assert server["fault"]["message"] == "No valid host was found. pool pool0 is being drained"

    def test_a_pool_that_freed_up_is_seen_before_refusing(self) -> None:
        """An old snapshot alone rejects nobody: PondFilter waits for a newer one."""
        self.flags(snapshot_interval_seconds=60.0, group="pondstack")
        free = self.controller.pools[0]
        self.controller.pools[0] = replace(free, free_slices=0)
        assert snapshot.cache().newer(10) is not None
        self.controller.pools[0] = free
        self.boot(self.flavor(4096, policy="fixed", pool_mb="1024"))

    def test_host_without_pool_is_never_chosen(self) -> None:
        """Two hosts, one reaches the pool: all go there, and a second pool-less host stays empty."""
        self.start_service("compute", host="host3")
        for _ in range(3):
            server = self.boot(self.flavor(2048, policy="fixed", pool_mb="1024"))
            assert server["OS-EXT-SRV-ATTR:host"] in self.hosts


class TestServiceDown(NovaWithPondstack):
    """No controller: VMs start all local, within the budget, logged and counted."""

    def test_all_local_within_the_budget(self) -> None:
        """A boot without controller takes the budget and no more."""
        self.flags(split_timeout_ms=300, group="pondstack")
        self.stop_controller()
        before = SPLIT_FALLBACKS.counts().get("timeout", 0)
        server = self.boot(self.flavor(4096, policy="fixed", pool_mb="1024"))
        assert self.claim(server["id"]) == {server["OS-EXT-SRV-ATTR:host"]: {"MEMORY_MB": 4096}}
        assert SPLIT_FALLBACKS.counts()["timeout"] == before + 1
        assert f"Instance {server['id']} is placed all local" in self.log_text()

    def test_slow_controller(self) -> None:
        """An answer that comes after the budget is not waited for."""
        self.flags(split_timeout_ms=200, group="pondstack")
        self.controller.hold.clear()
        server = self.boot(self.flavor(4096, policy="fixed", pool_mb="1024"))
        assert self.claim(server["id"]) == {server["OS-EXT-SRV-ATTR:host"]: {"MEMORY_MB": 4096}}
