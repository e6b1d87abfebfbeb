"""A pool device fails, a host dies: real Nova, Placement, controller and agents; who is told, who gets the memory."""

import queue
from typing import Any

import oslo_messaging
import pytest

from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.errors import Conflict
from pondstack.domain.units import RESOURCE_CLASS
from tests.functional.rack import NovaWithRack


class Recovery:
    """What a recovery service listens with."""

    filter_rule = oslo_messaging.NotificationFilter(event_type=r"^pondstack\.guest\.memory_failed$")

    def __init__(self) -> None:
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()

    def error(self, _context: Any, _publisher: str, _type: str, payload: dict[str, Any], _meta: Any) -> None:
        """Take a notification."""
        self.events.put(payload["pondstack_object.data"])


class TestDeviceFailure(NovaWithRack):
    """The device of the only pool does not answer for a while."""

    device_failed_seconds = 0.5

    def listen(self) -> Recovery:
        """Listen as a recovery service does."""
        transport = oslo_messaging.get_notification_transport(self.controller_conf)
        target = oslo_messaging.Target(topic="pondstack_versioned_notifications", exchange="pondstack")
        recovery = Recovery()
        listener = oslo_messaging.get_notification_listener(transport, [target], [recovery], executor="threading")
        listener.start()
        self.addCleanup(listener.wait)
        self.addCleanup(listener.stop)
        return recovery

    def reserved_mib(self) -> int:
        """Return what Placement has reserved of the pool."""
        inventories = self._get_provider_inventory(self.pool)
        return int(inventories[RESOURCE_CLASS]["reserved"])

    def test_its_guests_are_told_of_and_its_slices_wait_for_an_audit(self) -> None:
        """One event per guest on it, none for the others; nothing of it is used before an audit."""
        recovery = self.listen()
        hit, local = self.boot_pond(2048), self.boot(self.flavor(2048))
        self.settled()
        description = self.folder / "pool0" / "device.json"
        description.rename(description.with_name("gone"))
        event = recovery.events.get(timeout=60)
        assert (event["instance_uuid"], event["host"]) == (hit["id"], self.host_of(hit))
        assert (event["pool_name"], event["pool_mib"], event["project_id"]) == ("pool0", 2048, hit["tenant_id"])

        def set_aside() -> None:
            assert self.slices_by_state() == {"quarantined": self.slices}
            assert self.reserved_mib() == self.slices * 1024

        self.eventually(set_aside)
        audit = self.api_of_controller.audit(repair=False)
        named = [item["detail"] for item in audit["findings"] if item["code"] == "memory_failed"]
        assert len(named) == 1
        assert hit["id"] in named[0]
        assert self.api.get_server(local["id"])["status"] == "ACTIVE"

        self.stop_controller()
        self.run_controller()  # another leader finds the same, and tells nobody again
        description.with_name("gone").rename(description)
        self.eventually(lambda: self._is_up())
        assert self.slices_by_state() == {"quarantined": self.slices}
        self._delete_server(hit)

        def repaired() -> None:
            self.api_of_controller.audit(repair=True)
            assert self.slices_by_state() == {"free": self.slices}

        self.eventually(repaired)
        self.settled()
        assert recovery.events.empty()

    def _is_up(self) -> None:
        assert self.real_controller.resources.reader.pool(self.pool).state == "up"


class TestDeadHost(NovaWithRack):
    """A host dies with a guest on it, and comes back."""

    def _has_room(self, mib: int) -> None:
        """Placement has heard that the slices are free, too."""
        inventory = self._get_provider_inventory(self.pool)[RESOURCE_CLASS]
        assert inventory["total"] - inventory["reserved"] - self.pool_used_mib() >= mib

    def test_fenced_evacuated_and_back(self) -> None:
        """Its memory is others' once the device keeps it out, while it is still silent; it comes back empty."""
        server = self.boot_pond(3072)
        source = self.host_of(server)
        held = {index for index, entry in self.permissions().items() if entry.host == source}
        assert len(held) == 3
        with pytest.raises(Conflict, match="not dead"):
            self.api_of_controller.fence_host(name=source, reason="a guess", force=False, generation=None)
        assert self.ledger_of(server) == {source: 3072}
        self.computes[source].stop()
        self.api.put_service_force_down(self.computes[source].service_ref.uuid, True)
        self.stop_agent(source)
        now = self.real_controller.resources.reader.host(source).generation
        answer = self.api_of_controller.fence_host(name=source, reason="power supply", force=True, generation=now)
        assert answer == {"name": source, "fenced": True, "pool_mib": 0}
        assert source not in {entry.host for entry in self.permissions().values()}
        self.eventually(lambda: self._states({"free": self.slices}))
        self.eventually(lambda: self._has_room(3072))
        server = self._evacuate_server(server)
        target = self.host_of(server)
        assert target != source
        self.eventually(lambda: self._holds(server, target))
        self.eventually(lambda: self._states({"online": 3, "free": self.slices - 3}))

        # A heartbeat of the agent's last moments may have come in after the fence; it tells of the guest.
        with pytest.raises(Conflict, match=r"not reported since|still holds"):
            self.api_of_controller.unfence_host(name=source)
        self.start_agent(source)
        self.restart_compute_service(self.computes[source])

        def unfenced() -> None:
            try:
                self.api_of_controller.unfence_host(name=source)
            except Conflict as error:
                raise AssertionError(error.message) from error

        self.eventually(unfenced)
        self.eventually(lambda: self._usable(source))
        self._holds(server, target)
        self.settled()

    def permissions(self) -> dict[int, Any]:
        """Return the device's table."""
        return dict(EmulatedDevice(self.folder / "pool0").permissions())

    def _states(self, expected: dict[str, int]) -> None:
        assert self.slices_by_state() == expected

    def _holds(self, server: dict[str, Any], host: str) -> None:
        assert self.ledger_of(server) == {host: 3072}

    def _usable(self, host: str) -> None:
        assert host in self.api_of_controller.snapshot(timeout_seconds=30).usable_hosts
