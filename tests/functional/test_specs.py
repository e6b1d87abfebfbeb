"""Wrong `pond:` specs are 400 with the legal form, before anything is scheduled."""

from typing import Any

import pytest
from nova import context, objects
from nova.tests.functional.api import client as api_client
from nova.virt import hardware

from tests.functional.base import NovaWithPondstack

OLD = "2.1"  # before 2.86, Nova itself validates no extra spec; openstackclient still speaks such versions


class TestSpecs(NovaWithPondstack):
    """The flavor's and the server's API refuse what cannot work."""

    hosts = ("host1",)

    def refused(self, call: Any, *args: Any) -> str:
        """Return the text of the 400 that a call ends in."""
        with pytest.raises(api_client.OpenStackApiException) as refusal:
            call(*args)
        assert refusal.value.response.status_code == 400, refusal.value
        return str(refusal.value.response.text)

    def set_specs(self, flavor: str, **specs: str) -> None:
        """Set extra specs of a flavor; keys are written with __ for a colon."""
        self.admin_api.post_extra_spec(
            flavor, {"extra_specs": {key.replace("__", ":"): value for key, value in specs.items()}}
        )

    def slip_in(self, flavor: str, specs: dict[str, str]) -> None:
        """Put specs straight into the database, as an older release may have left them there."""
        stored = objects.Flavor.get_by_flavor_id(context.get_admin_context(), flavor)
        stored._flavor_extra_specs_add(stored._context, stored.id, specs)

    def server_body(self, flavor: str) -> dict[str, Any]:
        """Return a request that boots the flavor."""
        return {"server": self._build_server(flavor_id=flavor, networks="none")}

    def test_single_keys(self) -> None:
        """Values, unknown keys and reserved names, with old and new microversions."""
        flavor = self.flavor(4096)
        cases = [
            ({"pond__policy": "most"}, "one of auto, fixed, local"),
            ({"pond__policy": "fixed", "pond__pool_mb": "1000"}, "a positive multiple of 1024"),
            ({"pond__policy": "fixed", "pond__pool_mb": "1g"}, "a positive multiple of 1024"),
            ({"pond__policy": "auto", "pond__max_pool_percent": "101"}, "an integer from 0 to 100"),
            ({"pond__policy": "auto", "pond__pdm": "0"}, "an integer from 1 to 100"),
            ({"pond__policy": "auto", "pond__pool": "1"}, "pond:pool is unknown; legal: pond:policy"),
            ({"pond__remote_mb": "1000"}, "a positive multiple of 64 (MiB), at most [pondstack] max_remote_percent"),
            ({"pond__swap_mib": "1024"}, "pond:swap_mib is unknown"),
        ]
        for version in (self.microversion, OLD):
            self.admin_api.microversion = version
            for specs, legal in cases:
                assert legal in self.refused(lambda specs=specs: self.set_specs(flavor, **specs))
        assert self.admin_api.get_extra_specs(flavor) == {}

    def test_contradictions_between_keys(self) -> None:
        """What no single-key validator can see."""
        flavor = self.flavor(4096)
        cases = [
            ({"pond__policy": "fixed"}, "needs pond:pool_mb"),
            ({"pond__pool_mb": "1024"}, "pond:policy is missing"),
            ({"pond__policy": "auto", "pond__pool_mb": "1024"}, "contradicts pond:policy=auto"),
            ({"pond__policy": "fixed", "pond__pool_mb": "4096"}, "leaves no local memory"),
            ({"pond__policy": "auto", "hw__numa_nodes": "2"}, "hw:numa_nodes=2 contradicts"),
            ({"pond__policy": "auto", "hw__cpu_policy": "dedicated"}, "hw:cpu_policy=dedicated contradicts"),
            ({"pond__policy": "auto", "hw__mem_page_size": "large"}, "hw:mem_page_size=large contradicts"),
            ({"pond__policy": "auto", "resources__MEMORY_MB": "0"}, "resources:MEMORY_MB=0 contradicts"),
        ]
        for specs, legal in cases:
            assert legal in self.refused(lambda specs=specs: self.set_specs(flavor, **specs))
        assert self.admin_api.get_extra_specs(flavor) == {}

    def test_contradiction_with_a_spec_that_is_there(self) -> None:
        """Each request is right alone; the flavor would not be. Taking a key away is the way out."""
        flavor = self.flavor(4096, policy="fixed", pool_mb="1024")
        assert "contradicts" in self.refused(lambda: self.set_specs(flavor, hw__numa_nodes="1"))
        assert "contradicts" in self.refused(lambda: self.set_specs(flavor, pond__policy="auto"))
        self.admin_api.api_delete(f"/flavors/{flavor}/os-extra_specs/pond:pool_mb")
        self.set_specs(flavor, pond__policy="auto")
        assert self.admin_api.get_extra_specs(flavor) == {"pond:policy": "auto"}

    def test_local_goes_with_numa(self) -> None:
        """policy=local promises no pool memory, so Nova may lay out NUMA nodes."""
        flavor = self.flavor(4096, policy="local")
        self.set_specs(flavor, hw__numa_nodes="1")

    def test_slipped_in_specs_are_refused_at_boot(self) -> None:
        """A server with a contradictory flavor of the database is 400, not an error of the scheduler."""
        for specs, legal in (
            ({"pond:policy": "fixed"}, "needs pond:pool_mb"),
            ({"pond:policy": "auto", "hw:numa_nodes": "1"}, "hw:numa_nodes=1 contradicts"),
            ({"pond:policy": "fixed", "pond:pool_mb": "4096"}, "leaves no local memory"),
        ):
            flavor = self.flavor(4096)
            self.slip_in(flavor, specs)
            assert legal in self.refused(self.api.post_server, self.server_body(flavor))
        assert self.api.get_servers() == []

    def test_numa_of_the_image(self) -> None:
        """An image may ask for NUMA nodes too."""
        image = self._create_image({"hw_numa_nodes": "1"})
        body = self._build_server(flavor_id=self.flavor(4096, policy="auto"), image_uuid=image["id"], networks="none")
        assert "flavor or image asks for a NUMA topology" in self.refused(self.api.post_server, {"server": body})

    def test_resize_to_a_contradictory_flavor(self) -> None:
        """Resize looks at the new flavor the same way."""
        server = self.boot(self.flavor(2048))
        flavor = self.flavor(4096)
        self.slip_in(flavor, {"pond:policy": "auto", "hw:numa_nodes": "1"})
        resize = {"resize": {"flavorRef": flavor}}
        assert "contradicts" in self.refused(self.api.post_server_action, server["id"], resize)

    def test_scheduler_refuses_what_the_api_let_through(self) -> None:
        """nova-api without our validators: the scheduler refuses, and the fault says why."""
        self.stub_out("nova.virt.hardware.numa_get_constraints", hardware.numa_get_constraints.__wrapped__)
        flavor = self.flavor(4096)
        self.slip_in(flavor, {"pond:policy": "auto", "hw:numa_nodes": "1"})
        server = self.boot(flavor, "ERROR")
        assert "No valid host was found. hw:numa_nodes=1 contradicts pond:policy=auto" in self.fault_of(server)
