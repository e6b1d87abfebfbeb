"""Hosts and pools go, and come back: real Nova, Placement, controller and agents; what is left of them is nothing."""

from typing import Any

import pytest

from pondstack.domain.errors import NotEmpty
from pondstack.domain.units import SHARING_TRAIT
from tests.functional.rack import NovaWithRack


class TestRemoval(NovaWithRack):
    """Two hosts, one pool."""

    agent_down_seconds = 3

    def test_a_host_goes_and_comes_back_clean(self) -> None:
        """Refused while a guest is there; its aggregates are left, its provider is Nova's. Another never comes back."""
        server = self.boot_pond(2048)
        name = self.host_of(server)
        with pytest.raises(NotEmpty, match=r"2 slices \(2 online\).*its agent"):
            self.api_of_controller.remove_host(name=name)
        self._delete_server(server)
        self.eventually(lambda: self._free())
        self.stop_agent(name)
        self.eventually(lambda: self._removed(name))
        provider = self._get_provider_uuid_by_name(name)
        assert self._get_provider_aggregates(provider) == []
        assert self._get_provider_inventory(provider)["MEMORY_MB"]
        self.settled()
        self.start_agent(name)
        self.eventually(lambda: self._usable(name))
        again = self.boot_pond(2048, host=name)
        assert self.ledger_of(again) == {name: 2048}
        self.settled()
        self._delete_the_compute_service_of(next(host for host in self.hosts if host != name))

    def test_a_pool_goes_and_comes_back(self) -> None:
        """Refused while a guest has of it, and while its device is configured; nothing of it stays in Placement."""
        server = self.boot_pond(2048)
        with pytest.raises(NotEmpty, match=r"pool pool0 .* 2 slices \(2 online\)"):
            self.api_of_controller.remove_pool(uuid=self.pool)
        self._delete_server(server)
        self.eventually(lambda: self._free())
        with pytest.raises(NotEmpty, match="pool_devices"):
            self.api_of_controller.remove_pool(uuid=self.pool)
        devices = self.controller_conf.controller.pool_devices
        self.restart_with([])
        self.api_of_controller.remove_pool(uuid=self.pool)
        providers = self.placement.get(f"/resource_providers?required={SHARING_TRAIT}", version="1.36")
        assert providers.body["resource_providers"] == []
        for host in self.hosts:
            assert self._get_provider_aggregates(self._get_provider_uuid_by_name(host)) == []
        self.settled()
        self.restart_with(devices)
        self.eventually(lambda: self._has_provider())
        assert self.start_pool() == self.pool
        self.boot_pond(2048)
        self.settled()

    def _delete_the_compute_service_of(self, name: str) -> None:
        """Nova deletes its provider; an audit finds the host, and a repair forgets it."""
        self.stop_agent(name)
        service = self.computes[name]
        service.stop()
        self.api.put_service_force_down(service.service_ref.uuid, True)
        self.api.api_delete(f"/os-services/{service.service_ref.uuid}")
        self.eventually(lambda: self._found("host_left_behind"))
        self.api_of_controller.audit(repair=True)
        self.settled()
        known = {host.name for host in self.real_controller.resources.reader.hosts()}
        assert known == set(self.hosts) - {name}

    def restart_with(self, devices: list[Any]) -> None:
        """Start the controller anew with these pool devices."""
        self.stop_controller()
        self.controller_conf.set_override("pool_devices", devices, group="controller")
        self.run_controller()

    def _has_provider(self) -> None:
        assert self.placement.get(f"/resource_providers/{self.pool}").status == 200

    def _free(self) -> None:
        assert self.slices_by_state() == {"free": self.slices}

    def _removed(self, name: str) -> None:
        try:
            self.api_of_controller.remove_host(name=name)
        except NotEmpty as error:
            raise AssertionError(error.message) from error

    def _found(self, code: str) -> None:
        assert code in {item["code"] for item in self.api_of_controller.audit(repair=False)["findings"]}

    def _usable(self, host: str) -> None:
        assert host in self.api_of_controller.snapshot(timeout_seconds=30).usable_hosts
        assert self._get_provider_aggregates(self._get_provider_uuid_by_name(host)) != []
