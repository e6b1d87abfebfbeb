"""Guests whose memory is pinned or encrypted have no pool memory, and hosts that cannot give any are not tried."""

import pytest
from nova.tests.functional.api import client as api_client

from tests.functional.base import NovaWithPondstack
from tests.functional.drivers import NovaWithLibvirt


class TestPins(NovaWithPondstack):
    """What nova-api and nova-scheduler refuse, or place all local."""

    hosts = ("host1",)

    def test_encrypted_memory_of_the_image(self) -> None:
        """A fixed share is a 400 with the legal form; an automatic one is none."""
        image = self._create_image({"hw_mem_encryption": "true", "hw_machine_type": "q35", "hw_firmware_type": "uefi"})
        fixed, auto = self.flavor(4096, policy="fixed", pool_mb="1024"), self.flavor(7168, policy="auto")
        body = self._build_server(flavor_id=fixed, image_uuid=image["id"], networks="none")
        with pytest.raises(api_client.OpenStackApiException) as refusal:
            self.api.post_server({"server": body})
        assert refusal.value.response.status_code == 400
        assert "legal: a server without it, pond:policy=local, or pond:policy=auto" in refusal.value.response.text
        # No host here has SEV, which Nova would ask Placement for.
        self.stub_out("nova.scheduler.utils.ResourceRequest._translate_mem_encryption_request", lambda *_: None)
        server = self.boot(auto, image_uuid=image["id"])
        assert self.claim(server["id"]) == {"host1": {"MEMORY_MB": 7168}}
        self.told_of(server, "pinned")

    def test_a_device_of_the_flavor(self) -> None:
        """Setting it is a 400 beside a fixed share."""
        flavor = self.flavor(4096, policy="fixed", pool_mb="1024")
        with pytest.raises(api_client.OpenStackApiException) as refusal:
            self.admin_api.post_extra_spec(flavor, {"extra_specs": {"resources:VGPU": "1"}})
        assert refusal.value.response.status_code == 400
        assert "neither pinned nor encrypted" in refusal.value.response.text


class TestFileBackedMemory(NovaWithLibvirt):
    """[libvirt] file_backed_memory, on each host of this process."""

    def setUp(self) -> None:
        """Set it before the computes start."""
        self.flags(file_backed_memory=65536, group="libvirt")
        self.flags(ram_allocation_ratio=1.0, reserved_host_memory_mb=0)
        super().setUp()

    def test_such_hosts_are_not_tried(self) -> None:
        """No agent is asked; guests without pool memory start."""
        server = self.boot_pond(expected_state="ERROR")
        assert "No valid host" in self.fault_of(server)
        assert self.agents.attaches == []
        self.boot(self.flavor(2048))
