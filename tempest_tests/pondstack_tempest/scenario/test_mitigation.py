"""A guest is taken out of its pool memory for good, by the API. Needs [pondstack] mitigation.

Where pools are files, as on the rack, it is moved to another host that has local memory; on CXL it is copied.
"""

from typing import Any

from tempest import config
from tempest.lib import decorators

from pondstack_tempest import waiters
from pondstack_tempest.scenario.test_guest import GuestBase

CONF = config.CONF


class MitigationTest(GuestBase):
    """A guest that uses more of its pool memory than was predicted."""

    min_microversion = "1.16"

    @classmethod
    def skip_checks(cls) -> None:
        """Skip where nobody mitigates."""
        super().skip_checks()
        if not CONF.pondstack.mitigation:
            raise cls.skipException("[pondstack] mitigation is false")

    @decorators.attr(type="slow")
    @decorators.idempotent_id("8b8f4b3e-0b1c-4b0e-8f6e-9a1f2c4d8f22")
    def test_a_guest_is_taken_out_of_its_pool_memory_and_stays_so(self) -> None:
        """It goes on undisturbed, the slices go back, Placement holds local memory only, also after a new start."""
        server = self.boot_fixed(guest=True)
        with self.undisturbed(server):
            self.memory("Mitigations").mitigate(server)
            self.until(lambda: self.ended(server), f"the mitigation of {server} does not end")
        self.assertEqual("done", self.mitigation(server)["state"], self.mitigation(server)["reason"])
        self.assert_holds(server, 0)
        self.assert_returned(server)
        self.assertTrue(self.memory("Qos").show_qos(server)["corrected"])
        self.servers.stop_server(server)
        waiters.for_server(self.admin_servers, server, ["SHUTOFF"])
        self.servers.start_server(server)
        waiters.for_server(self.admin_servers, server, ["ACTIVE"])
        self.assert_holds(server, 0)

    def mitigation(self, server: str) -> dict[str, Any]:
        """Return the newest mitigation of a server."""
        found = self.memory("Mitigations").list_mitigations(consumer_uuid=server, limit=1)["mitigations"]
        return dict(found[0])

    def ended(self, server: str) -> bool:
        """Say whether it has ended."""
        return self.mitigation(server)["ended_at"] is not None
