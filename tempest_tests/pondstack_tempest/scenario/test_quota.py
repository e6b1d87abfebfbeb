"""A project's quota of pool memory. Needs unified limits in Nova and a registered limit of the class in Keystone."""

from typing import Any, ClassVar

from tempest import config
from tempest.lib import decorators, exceptions

from pondstack_tempest import waiters
from pondstack_tempest.base import ADMIN
from pondstack_tempest.scenario.base import RESOURCE_CLASS, ScenarioTest

CONF = config.CONF
LIMIT = f"class:{RESOURCE_CLASS}"
WHOLE_SLICES = 8
"""An automatic share is whole slices: of a flavor of about so many, one is an eighth."""


class QuotaTest(ScenarioTest):
    """A project with a limit of its own."""

    credentials: ClassVar[list[Any]] = [ADMIN, "primary", "system_admin"]
    force_tenant_isolation = True

    @classmethod
    def skip_checks(cls) -> None:
        """Skip where Nova does not count by unified limits."""
        super().skip_checks()
        if not CONF.compute_feature_enabled.unified_limits:
            raise cls.skipException("[compute-feature-enabled] unified_limits is false")

    @decorators.attr(type="negative")
    @decorators.idempotent_id("1f4d2c5b-7a0e-4d57-9d5e-2b8c6f1e8f23")
    def test_a_fixed_share_over_quota_is_refused(self) -> None:
        """403, and nothing is left behind; what is deleted may be taken again."""
        self._limit(self.slice_mib())
        server, flavor = self.boot_fixed(), self.fixed()
        refusal = self.assertRaises(exceptions.Forbidden, self.boot, flavor)
        self.assertIn(LIMIT, str(refusal))
        self.assertEqual([server], [one["id"] for one in self.servers.list_servers()["servers"]])
        self.delete(server)
        self.until(lambda: not self.claimed_mib(server), f"{server}, which is gone, holds pool memory in Placement")
        self.boot_fixed()

    @decorators.idempotent_id("8c3b7e60-9d21-4a7c-8f4e-5d0a1c9b8f24")
    def test_an_automatic_share_over_quota_is_local(self) -> None:
        """The server boots without pool memory; one that is within the limit has its share."""
        flavor = self.flavor(
            CONF.pondstack.local_mib + WHOLE_SLICES * self.slice_mib(),
            {"pond:policy": "auto", "pond:max_pool_percent": "50"},
        )
        server = self._boot_auto(flavor)
        given = self.claimed_mib(server)
        if not given:
            raise self.skipException("the prediction gave this server no pool memory")
        self._limit(given)
        self.assert_holds(self._boot_auto(flavor), 0)
        self.assert_holds(server, given)

    def _limit(self, mib: int) -> None:
        """Limit the tenant's project; skip where the operator registered no limit of the class."""
        client = self.os_system_admin.identity_limits_client
        registered = [
            one for one in client.get_registered_limits()["registered_limits"] if one["resource_name"] == LIMIT
        ]
        if not registered:
            raise self.skipException(f"Keystone has no registered limit of {LIMIT}")
        project = self.os_primary.credentials.project_id
        made = client.create_limit(registered[0]["region_id"], registered[0]["service_id"], project, LIMIT, mib)
        self.addCleanup(client.delete, f"limits/{made['limits'][0]['id']}")

    def _boot_auto(self, flavor: str) -> str:
        """Boot a server; skip where no host has room for so large a one."""
        server = self.boot(flavor, until="")
        shown = waiters.for_server(self.admin_servers, server, ["ACTIVE", "ERROR"])
        if shown["status"] == "ERROR":
            raise self.skipException(f"no host has room for the flavor: {shown['fault']['message']}")
        return server
