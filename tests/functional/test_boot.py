"""Boot with each policy, and what Placement, the API and the databases hold afterwards."""

import threading
import uuid
from dataclasses import replace
from typing import Any

from nova import context, objects

from pondstack_nova.counters import SPLIT_FALLBACKS, STALE_SPLITS
from pondstack_nova.scheduler import snapshot, split_view, used_splits
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
        used = self.told_of(server)
        assert (used.local_mib, used.pool_mib, used.source) == (6144, 1024, "static")
        assert (used.features["memory_mib"], used.features["specs"]["max_pool_percent"]) == (7168, 50)

    def test_auto_of_a_small_flavor_is_all_local(self) -> None:
        """A share of less than one slice asks for no pool memory at all."""
        server = self.boot(self.flavor(2048, policy="auto"))
        assert self.claim(server["id"]) == {server["OS-EXT-SRV-ATTR:host"]: {"MEMORY_MB": 2048}}

    def test_local_and_plain_flavors_ask_nobody(self) -> None:
        """policy=local and flavors without pond: specs are placed as by stock Nova: nothing is decided."""
        for flavor in (self.flavor(2048, policy="local"), self.flavor(2048)):
            server = self.boot(flavor)
            assert self.claim(server["id"]) == {server["OS-EXT-SRV-ATTR:host"]: {"MEMORY_MB": 2048}}
            assert used_splits.used_splits().noted(server["id"]) is None

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
        assert self.fault_of(server) == (
            "No valid host was found. 8192 MiB of pool memory are wanted, "
            "pool pool0 has 7168 MiB free of 8192 MiB (1024 MiB short)"
        )
        assert self.pool_used_mib() == 0

    def test_auto_without_room_in_placement_is_all_local(self) -> None:
        """By the view there is room; another scheduler's server has taken it meanwhile. Both start."""
        taken = {self.pool: {"resources": {POOL: (self.slices - self.buffer_slices) * 1024}}}
        body = {"allocations": taken, "project_id": "p", "user_id": "u", "consumer_generation": None}
        self._call("put", f"/allocations/{uuid.uuid4()}", body, "1.28")
        server = self.boot(self.flavor(7168, policy="auto"))
        assert self.claim(server["id"]) == {server["OS-EXT-SRV-ATTR:host"]: {"MEMORY_MB": 7168}}
        self.told_of(server, "no_room")

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
    """No controller: the scheduler decides from what it knew; one that never knew anything starts VMs all local."""

    def all_local(self, server: dict[str, Any], memory_mib: int = 4096) -> None:
        """Assert that Placement has no pool memory for a server."""
        assert self.claim(server["id"]) == {server["OS-EXT-SRV-ATTR:host"]: {"MEMORY_MB": memory_mib}}

    def is_stale(self) -> None:
        """Assert that the scheduler's view is."""
        assert split_view.cache().stale(split_view.cache().latest()[1])

    def test_splits_go_on(self) -> None:
        """Also when the view is stale; it is counted, and the record says so once the controller is back."""
        self.flags(snapshot_max_age_seconds=1.0, split_timeout_ms=300, group="pondstack")
        flavor = self.flavor(7168, policy="auto")
        self.boot(flavor)
        self.stop_controller()
        before, fallbacks = STALE_SPLITS.counts().get("static", 0), SPLIT_FALLBACKS.counts()
        self._wait_for_assert(self.is_stale)
        server = self.boot(flavor)
        host = server["OS-EXT-SRV-ATTR:host"]
        assert self.claim(server["id"]) == {host: {"MEMORY_MB": 6144}, "pool0": {POOL: 1024}}
        fixed = self.boot(self.flavor(2048, policy="fixed", pool_mb="1024"))
        assert self.claim(fixed["id"])["pool0"] == {POOL: 1024}
        assert STALE_SPLITS.counts()["static"] == before + 1
        assert SPLIT_FALLBACKS.counts() == fallbacks

    def test_a_paused_controller_holds_no_boot(self) -> None:
        """Its answers hang; the boot has its split at once."""
        flavor = self.flavor(7168, policy="auto")
        self.boot(flavor)
        self.controller.hold.clear()
        before = SPLIT_FALLBACKS.counts()
        server = self.boot(flavor)
        assert self.claim(server["id"])["pool0"] == {POOL: 1024}
        assert SPLIT_FALLBACKS.counts() == before

    def test_a_move_without_the_controller(self) -> None:
        """The split that a server has is kept, though neither view nor process know it: Placement does."""
        flavor = self.flavor(7168, policy="auto")
        server = self.boot(flavor)
        self.stop_controller()
        self.flags(split_timeout_ms=300, group="pondstack")
        used_splits.used_splits()._noted.clear()
        split_view.cache().latest()[0].predictor._percent = 50
        server = self._migrate_server(server)
        assert self.claim(server["id"])["pool0"] == {POOL: 1024}

    def test_a_scheduler_that_never_had_a_view(self) -> None:
        """It waits for the first one, once; then VMs start all local, which is counted."""
        self.lose_the_view()
        before = SPLIT_FALLBACKS.counts().get("no_view", 0)
        server = self.boot(self.flavor(4096, policy="fixed", pool_mb="1024"))
        self.all_local(server)
        assert SPLIT_FALLBACKS.counts()["no_view"] == before + 1
        assert f"Instance {server['id']} is placed all local" in self.log_text()

    def test_a_first_view_that_comes_late(self) -> None:
        """A scheduler that has just started waits for it rather than to place VMs all local."""
        self.controller.hold.clear()
        split_view.reset()
        waiter = threading.Timer(1.0, self.controller.hold.set)
        waiter.start()
        self.addCleanup(waiter.join)
        server = self.boot(self.flavor(4096, policy="fixed", pool_mb="1024"))
        assert self.claim(server["id"])["pool0"] == {POOL: 1024}
