"""A guest that suffers from pool memory is moved out of it. Needs [pondstack] mitigation, which no cloud has yet.

An agent moves a guest when it is told to, on real CXL memory (doc/source/admin/agent.md; tests/hardware shows it). Who
decides on it is not there yet, and a rack's emulated device has a file instead of a node.
"""

from tempest import config
from tempest.lib import decorators

from pondstack_tempest.scenario.test_guest import GuestBase

CONF = config.CONF


class MitigationTest(GuestBase):
    """A guest that uses more of its pool memory than was predicted."""

    @classmethod
    def skip_checks(cls) -> None:
        """Skip where nobody mitigates."""
        super().skip_checks()
        if not CONF.pondstack.mitigation:
            raise cls.skipException("[pondstack] mitigation is false")

    @decorators.attr(type="slow")
    @decorators.idempotent_id("8b8f4b3e-0b1c-4b0e-8f6e-9a1f2c4d8f22")
    def test_a_guest_that_uses_its_pool_memory_is_moved_out_of_it(self) -> None:
        """Its pool memory becomes less without a disturbance, and the slices go back."""
        slice_mib = self.slice_mib()
        specs = {"pond:policy": "auto", "pond:max_pool_percent": "50"}
        server = self.boot_guest(self.flavor(CONF.pondstack.local_mib + 4 * slice_mib, specs))
        given = self.claimed_mib(server)
        if not given:
            raise self.skipException("the prediction gave this guest no pool memory")
        with self.undisturbed(server):
            self.until(lambda: self.claimed_mib(server) < given, f"{server} keeps all of its {given} MiB")
        self.assert_holds(server, self.claimed_mib(server))
