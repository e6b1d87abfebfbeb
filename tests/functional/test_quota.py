"""A project's quota of pool memory by unified limits, in a real Nova and Placement."""

import pytest
from nova.tests.functional.api import client as api_client
from oslo_limit import fixture

from pondstack_nova.counters import SPLIT_FALLBACKS
from tests.functional.base import NovaWithPondstack

POOL = "CUSTOM_POND_MEMORY_MB"
LIMITS = {"servers": 10, "class:VCPU": 10, "class:DISK_GB": 10, "class:MEMORY_MB": 32768, f"class:{POOL}": 1024}


class TestQuota(NovaWithPondstack):
    """Every project may have one slice."""

    def limit(self, **limits: int) -> None:
        """Count by unified limits: LIMITS, and what is given of classes."""
        self.flags(driver="nova.quota.UnifiedLimitsDriver", group="quota")
        given = {f"class:{name}": value for name, value in limits.items()}
        self.useFixture(fixture.LimitFixture(LIMITS | given, {}))

    def test_a_fixed_share(self) -> None:
        """The second slice is a 403 that names the class; a slice that came back may be taken."""
        self.limit()
        flavor = self.flavor(4096, policy="fixed", pool_mb="1024")
        server = self.boot(flavor)
        body = {"server": self._build_server(flavor_id=flavor, networks="none")}
        with pytest.raises(api_client.OpenStackApiException) as refusal:
            self.api.post_server(body)
        assert refusal.value.response.status_code == 403
        assert f"class:{POOL} is over limit of 1024 due to current usage 1024" in refusal.value.response.text
        assert [one["id"] for one in self.api.get_servers()] == [server["id"]]
        self._delete_server(server)
        self.boot(flavor)

    def test_a_resize_to_a_fixed_share(self) -> None:
        """It is asked for, too."""
        self.limit()
        self.boot(self.flavor(4096, policy="fixed", pool_mb="1024"))
        server = self.boot(self.flavor(2048))
        resize = {"resize": {"flavorRef": self.flavor(4096, policy="fixed", pool_mb="1024")}}
        with pytest.raises(api_client.OpenStackApiException) as refusal:
            self.api.post_server_action(server["id"], resize)
        assert refusal.value.response.status_code == 403

    def test_a_fixed_share_is_no_local_memory(self) -> None:
        """Two servers of 4096 MiB have 6144 MiB on their hosts, and that is what their project needs."""
        self.limit(MEMORY_MB=6144, **{POOL: 2048})
        flavor = self.flavor(4096, policy="fixed", pool_mb="1024")
        for _ in range(2):
            self.boot(flavor)
        assert self.pool_used_mib() == 2048

    def test_an_automatic_share(self) -> None:
        """One server has its slice; the next one boots all local, and so do two whose shares together are too much."""
        self.limit()
        flavor = self.flavor(7168, policy="auto", max_pool_percent="50")
        body = self._build_server(flavor_id=flavor, networks="none")
        self.api.post_server({"server": body | {"min_count": 2, "max_count": 2}})
        both = [self._wait_for_state_change(server, "ACTIVE") for server in self.api.get_servers()]
        assert (len(both), self.pool_used_mib()) == (2, 0)
        for server in both:
            self._delete_server(server)
        self.boot(flavor)
        assert self.pool_used_mib() == 1024
        before = SPLIT_FALLBACKS.counts()["over_quota"]
        server = self.boot(flavor)
        assert self.claim(server["id"]) == {server["OS-EXT-SRV-ATTR:host"]: {"MEMORY_MB": 7168}}
        assert SPLIT_FALLBACKS.counts()["over_quota"] == before + 1

    def test_without_a_registered_limit(self) -> None:
        """Nova's default strategy counts only what it is told to require."""
        self.flags(driver="nova.quota.UnifiedLimitsDriver", group="quota")
        registered = {name: value for name, value in LIMITS.items() if POOL not in name}
        self.useFixture(fixture.LimitFixture(registered, {}))
        self.stub_out("nova.limit.utils._identity_client", lambda: Registered(registered))
        self.boot(self.flavor(4096, policy="fixed", pool_mb="1024"))
        assert self.pool_used_mib() == 1024


class Registered:
    """Keystone's registered limits by name, as Nova looks them up."""

    def __init__(self, names: dict[str, int]) -> None:
        self._names = names

    def registered_limits(self) -> list["Limit"]:
        """Return them."""
        return [Limit(name) for name in self._names]


class Limit:
    """A registered limit."""

    def __init__(self, name: str) -> None:
        self.resource_name = name
