"""Mitigations with real Nova, Placement, controller and ledger: what is claimed at each step, and in the end."""

from typing import Any
from uuid import uuid4

import pytest

from pondstack.domain import errors
from tests.functional.mitigations import MEMORY_MIB, POOL_MIB, NovaWithMitigations, PlayedCopies

pytestmark = pytest.mark.timeout(1200)
IMAGE = "a2459075-d96c-40d5-893e-577ff92e721c"


class TestMitigations(NovaWithMitigations):
    """By copy and by live migration."""

    def is_asked(self) -> None:
        """The host was told to copy."""
        assert "mitigate" in PlayedCopies.seen

    def fill(self, host: str) -> str:
        """Claim what leaves a host a MiB less than a mitigation needs; returns the consumer."""
        provider, consumer = self._get_provider_uuid_by_name(host), str(uuid4())
        memory = self._get_provider_inventory(provider)["MEMORY_MB"]
        capacity = int((memory["total"] - memory["reserved"]) * memory["allocation_ratio"])
        free = capacity - self._get_provider_usages(provider)["MEMORY_MB"]
        body = {
            "allocations": {provider: {"resources": {"MEMORY_MB": free - POOL_MIB + 1}}},
            "project_id": "others",
            "user_id": "others",
            "consumer_generation": None,
        }
        self._call("put", f"/allocations/{consumer}", body, "1.36")
        return consumer

    def test_by_copy(self) -> None:
        """Claim, copy, domain, slices, claim; nothing does it twice; then Nova's moves keep it local."""
        server = self.boot_split()
        host = self.host_of(server)
        self.mitigate(server, method="copy")
        assert self.ended(server, "done").left_mib == 0
        self.is_local(server)
        assert self.corrected(server)
        both = {host: {"MEMORY_MB": MEMORY_MIB}} | self.pool_share()
        assert PlayedCopies.seen == dict.fromkeys(("mitigate", "rewrite_domain", "release_mitigated"), both)
        with pytest.raises(errors.PondError):
            self.mitigate(server)
        self.stays_local(server)
        told = self.told_prometheus()
        assert told["pondstack_mitigation_changes_total", "done", "copy"] == 1.0
        assert told["pondstack_mitigation_seconds_count", "done", "copy"] == 1.0
        assert told["pondstack_slices", "pool0", "free"] == self.slices

    def stays_local(self, server: dict[str, Any]) -> None:
        """Whatever Nova does with it, also with flavors that fix pool memory: scheduler, Placement and audit agree."""
        self._reboot_server(server, hard=True)
        self.is_local(server)
        self._rebuild_server(server, IMAGE)
        self.is_local(server)
        server = self._live_migrate(server)
        self.is_local(server)
        server = self._migrate_server(server)
        self._revert_resize(server)
        self.is_local(server)
        server = self._migrate_server(server)
        self._confirm_resize(server)
        self.is_local(server)
        server = self._resize_server(server, self.flavor(2 * MEMORY_MIB, policy="fixed", pool_mb=str(POOL_MIB)))
        self._confirm_resize(server)
        self.is_local(server, 2 * MEMORY_MIB)
        server = self._resize_server(server, self.flavor(2 * MEMORY_MIB, policy="auto"))
        self._confirm_resize(server)
        self.is_local(server, 2 * MEMORY_MIB)
        self._shelve_server(server)
        server = self._unshelve_server(server)
        self.is_local(server, 2 * MEMORY_MIB)
        self.stays_local_without_its_host(server)
        assert self.corrected(server)

    def stays_local_without_its_host(self, server: dict[str, Any]) -> None:
        """Its host's nova-compute restarts; it stops and starts; its host dies, and comes back."""
        source = self.host_of(server)
        self.computes[source] = self.restart_compute_service(self.computes[source], keep_hypervisor_state=False)
        assert self.driver(source).list_instance_uuids() == [server["id"]]
        self._stop_server(server)
        self._start_server(server)
        self.is_local(server, 2 * MEMORY_MIB)
        self.computes[source].stop()
        self.api.put_service_force_down(self.computes[source].service_ref.uuid, True)
        server = self._evacuate_server(server)
        assert self.host_of(server) != source
        self.restart_compute_service(self.computes[source])
        self.is_local(server, 2 * MEMORY_MIB)

    def told_prometheus(self) -> dict[tuple[str, ...], float]:
        """Return what the controller answers to a scrape, by name and labels."""
        samples = [sample for family in self.real_controller.metrics.scrape.collect() for sample in family.samples]
        return {(sample.name, *sample.labels.values()): sample.value for sample in samples}

    def test_no_room_an_abort_and_a_migration(self) -> None:
        """The host is full: nothing has changed. With room it begins, and is aborted: all is as before.

        Then Nova moves it to a host where all of it is local; a resize keeps it so.
        """
        server = self.boot_split()
        filler = self.fill(self.host_of(server))
        self.mitigate(server, method="copy")
        assert "no local memory" in self.ended(server, "failed").reason
        self.is_split(server)
        self.placement.delete(f"/allocations/{filler}", version="1.36")
        PlayedCopies.waits = True
        self.mitigate(server, method="copy")
        self.eventually(self.is_asked)
        assert self.record(server).state == "moving"
        self.settled()
        self.api_of_controller.abort_mitigation(consumer_uuid=server["id"])
        self.ended(server, "aborted")
        self.is_split(server)
        assert not self.corrected(server)

        PlayedCopies.waits, PlayedCopies.seen = False, {}
        source = self.host_of(server)
        self.mitigate(server, method="migrate")
        self.ended(server, "done")
        assert self.host_of(server) != source
        self.is_local(server)
        assert self.corrected(server)
        assert PlayedCopies.seen == {}
        server = self._resize_server(server, self.flavor(MEMORY_MIB, policy="fixed", pool_mb="1024"))
        self._confirm_resize(server)
        self.is_local(server)
