"""Members of an anti-affinity group have their pool memory of different pool devices."""

from typing import Any

from nova.scheduler import utils

from tests.functional.base import NovaWithPondstack

POOL = "CUSTOM_POND_MEMORY_MB"
SOFT_WEIGHERS = [
    "nova.scheduler.weights.affinity.ServerGroupSoftAffinityWeigher",
    "nova.scheduler.weights.affinity.ServerGroupSoftAntiAffinityWeigher",
]


class TestGroups(NovaWithPondstack):
    """Three hosts, each of which reaches two pools."""

    hosts = ("host1", "host2", "host3")

    def setUp(self) -> None:
        """Let Nova know of groups, and make the second pool."""
        self.stub_out("nova.scheduler.utils._SUPPORTS_ANTI_AFFINITY", None)
        self.stub_out("nova.scheduler.utils._SUPPORTS_SOFT_ANTI_AFFINITY", None)
        assert utils._SUPPORTS_ANTI_AFFINITY is None
        super().setUp()
        self.make_pool("pool1", self.slices, self.hosts)

    def configure_scheduler(self) -> None:
        """Enable what groups need."""
        super().configure_scheduler()
        filters = ["ComputeFilter", "PondFilter", "ServerGroupAntiAffinityFilter"]
        weighers = ["pondstack_nova.weigher.all_weighers", *SOFT_WEIGHERS]
        self.flags(enabled_filters=filters, weight_classes=weighers, group="filter_scheduler")

    def group(self, policy: str) -> str:
        """Make a server group."""
        return str(self.api.post_server_groups({"name": policy, "policy": policy})["id"])

    def boot_member(self, group: str, flavor: str, state: str = "ACTIVE") -> dict[str, Any]:
        """Boot a member of a group."""
        body = self._build_server(flavor_id=flavor, networks="none")
        server = self.api.post_server({"server": body, "os:scheduler_hints": {"group": group}})
        found: dict[str, Any] = self._wait_for_state_change(server, state)
        return found

    def pool_of(self, server: dict[str, Any]) -> str | None:
        """Return the pool that a server claims memory of."""
        return next((name for name, amounts in self.claim(server["id"]).items() if POOL in amounts), None)

    def test_hard(self) -> None:
        """A third member is refused for its pool memory, or has none where the flavor leaves that open."""
        group, flavor = self.group("anti-affinity"), self.flavor(4096, policy="fixed", pool_mb="1024")
        members = [self.boot_member(group, flavor) for _ in range(2)]
        assert {self.pool_of(server) for server in members} == {"pool0", "pool1"}
        third = self.boot_member(group, flavor, "ERROR")
        assert "memory of another member of the anti-affinity group" in self.fault_of(third)
        self._delete_server(third)
        auto = self.boot_member(group, self.flavor(7168, policy="auto"))
        assert self.pool_of(auto) is None
        self.told_of(auto, "anti_affinity")
        free = self.pool_of(members[0])
        self._delete_server(members[0])
        self._delete_server(auto)
        assert self.pool_of(self.boot_member(group, flavor)) == free

    def test_soft(self) -> None:
        """Members go to the pool with fewest of them, and are never refused."""
        group, flavor = self.group("soft-anti-affinity"), self.flavor(4096, policy="fixed", pool_mb="1024")
        members = [self.boot_member(group, flavor) for _ in range(4)]
        pools = [self.pool_of(server) for server in members]
        assert set(pools[:2]) == set(pools[2:]) == {"pool0", "pool1"}

    def test_several_at_once(self) -> None:
        """Each sees what the one before it has claimed."""
        group = self.group("anti-affinity")
        body = self._build_server(flavor_id=self.flavor(4096, policy="fixed", pool_mb="1024"), networks="none")
        request = {"server": body | {"min_count": 2, "max_count": 2}, "os:scheduler_hints": {"group": group}}
        self.api.post_server(request)
        servers = [self._wait_for_state_change(server, "ACTIVE") for server in self.api.get_servers()]
        assert {self.pool_of(server) for server in servers} == {"pool0", "pool1"}

    def test_preferred(self) -> None:
        """[pondstack] pool_anti_affinity = prefer: a third member shares a device, not a host."""
        self.flags(pool_anti_affinity="prefer", group="pondstack")
        group, flavor = self.group("anti-affinity"), self.flavor(4096, policy="fixed", pool_mb="1024")
        members = [self.boot_member(group, flavor) for _ in range(3)]
        assert {self.pool_of(server) for server in members[:2]} == {"pool0", "pool1"}
        assert len({server["OS-EXT-SRV-ATTR:host"] for server in members}) == 3
