"""A host lends memory and takes it back. Needs [pondstack] remote_memory and lending_host."""

from typing import Any
from uuid import uuid4

from tempest import config
from tempest.lib import decorators, exceptions

from pondstack_tempest import waiters
from pondstack_tempest.scenario.base import ScenarioTest

CONF = config.CONF


@decorators.serial
class LendingTest(ScenarioTest):
    """The host of [pondstack] lending_host."""

    min_microversion = "1.5"

    @classmethod
    def skip_checks(cls) -> None:
        """Skip where no host may be asked to lend."""
        super().skip_checks()
        if not CONF.pondstack.remote_memory:
            raise cls.skipException("[pondstack] remote_memory is false")
        if not CONF.pondstack.lending_host:
            raise cls.skipException("[pondstack] lending_host is empty")

    @decorators.idempotent_id("4e4e5b2f-4f1e-4b7a-8e3d-6a1e8d0f8f20")
    def test_a_host_lends_and_takes_back(self) -> None:
        """All that was asked for is lent, in free buffers of its own; a repeated request is carried out once."""
        asked = {"mib": CONF.pondstack.lend_mib, "operation_id": str(uuid4())}
        self._lend(**asked)
        again = self.memory("Hosts").delegate_host(self.host, **asked)
        self.assertEqual(asked["operation_id"], again["operation_id"])
        lender = self.memory("Lenders").show_lender(self.host)
        self.assertGreaterEqual(lender["lent_mib"], CONF.pondstack.lend_mib)
        self.assertIn(self.host, [one["host"] for one in self.memory("Lenders").list_lenders()["lenders"]])
        client = self.memory("Buffers")
        buffers = client.list_buffers(self.host, state="free", limit=1000)["buffers"]
        self.assertEqual(lender["lent_mib"], sum(one["size_mib"] for one in buffers))
        self.assertEqual(buffers[0]["offset_mib"], client.show_buffer(self.host, buffers[0]["index"])["offset_mib"])
        first = client.list_buffers(self.host, limit=1)
        self.assertEqual([buffers[0]["index"]], [one["index"] for one in first["buffers"]])
        self.assertRaises(exceptions.NotFound, client.show_buffer, self.host, 10**6)
        self._take_back()

    @decorators.idempotent_id("b1f7ad37-3c96-4d8f-a3b5-7a8e8c5d8f21")
    def test_a_host_is_drained_lends_and_comes_back(self) -> None:
        """Its server moves away with its pool memory, its memory is lent and taken back, it gets servers again."""
        self._drain()
        self._lend(mib=CONF.pondstack.lend_mib, kind="active")
        self.assertEqual("active", self.memory("Lenders").show_lender(self.host)["kind"])
        self._take_back()
        self._serve("enabled")
        self.boot_fixed(host=self.host)

    @decorators.idempotent_id("a6d0c3f4-2b7e-4c1d-9e58-1f6b0d7a8f25")
    def test_an_emptied_host_lends_as_a_zombie(self) -> None:
        """Each buffer is promised to one other host, which keeps its key while the lender sleeps; all is taken back."""
        if not CONF.pondstack.zombie:
            raise self.skipException("[pondstack] zombie is false")
        self._drain()
        self._lend(mib=CONF.pondstack.lend_mib, kind="zombie")
        self.assertEqual("zombie", self.memory("Lenders").show_lender(self.host)["kind"])
        self.until(lambda: self._promised() - {self.host, None}, f"what {self.host} lends is promised to nobody")
        self.until(
            lambda: not self._promised() & {self.host, None}, f"{self.host} lends buffers that nobody could open"
        )
        self._take_back()

    @property
    def host(self) -> str:
        """The host that lends."""
        return str(CONF.pondstack.lending_host)

    def _drain(self) -> None:
        """Empty the host: it gets no servers, and the one that it has moves away with its pool memory."""
        if not CONF.compute_feature_enabled.live_migration or CONF.compute.min_compute_nodes < 2:
            raise self.skipException("no live migration, or [compute] min_compute_nodes < 2")
        server = self.boot_fixed(host=self.host)
        self.addCleanup(self._serve, "enabled")
        self._serve("disabled")
        self.admin_servers.live_migrate_server(server, host=None, block_migration="auto")
        self.until(lambda: self.host_of(server) != self.host, f"{server} does not leave {self.host}")
        waiters.for_server(self.admin_servers, server, ["ACTIVE"])
        self.assert_holds(server, self.slice_mib())
        self.until(lambda: self._pool_mib() == 0, f"{self.host} keeps pool memory")

    def _promised(self) -> set[str | None]:
        """Return the hosts that the free buffers are promised to; None: to none."""
        free = self.memory("Buffers").list_buffers(self.host, state="free", limit=1000)["buffers"]
        return {one["promised_to"] for one in free}

    def _lend(self, **body: Any) -> None:
        """Have the host lend, and wait until it may be borrowed; a repeated request answers the progress."""
        asked = {"operation_id": str(uuid4()), **body}
        self.addCleanup(self._take_back)
        self.memory("Hosts").delegate_host(self.host, **asked)
        self.until(
            lambda: self.memory("Hosts").delegate_host(self.host, **asked)["state"] == "done",
            f"{self.host} does not lend {body['mib']} MiB",
        )
        self.assertGreaterEqual(self._lent_mib(), body["mib"])

    def _take_back(self) -> None:
        if lent := self._lent_mib():
            self.memory("Hosts").reclaim_host(self.host, mib=lent, seconds=0)
        self.until(lambda: not self._lent_mib(), f"{self.host} does not take its memory back")

    def _lent_mib(self) -> int:
        try:
            return int(self.memory("Lenders").show_lender(self.host)["lent_mib"])
        except exceptions.NotFound:
            return 0

    def _pool_mib(self) -> int:
        return int(self.memory("Hosts").show_host(self.host)["pool_mib"])

    def _serve(self, status: str) -> None:
        client = self.os_admin.services_client
        (service,) = client.list_services(host=self.host, binary="nova-compute")["services"]
        client.update_service(service["id"], status=status)
