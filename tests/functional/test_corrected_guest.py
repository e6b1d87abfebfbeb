"""A guest whose memory was all claimed as local: Nova never gives it pool memory again, and its nodes stay or go."""

from typing import Any

from lxml import etree

from pondstack.domain.units import RESOURCE_CLASS
from tests.functional.drivers import NovaWithLibvirt


class TestCorrectedGuest(NovaWithLibvirt):
    """Placement is what the controller makes of it: first all as local and the pool share, then without the share."""

    def claim_all_as_local(self, server: dict[str, Any], *, share: bool) -> None:
        """Claim 4096 MiB of its host, with or without its pool share."""
        url = f"/allocations/{server['id']}"
        body = self.placement.get(url, version="1.28").body
        for provider, held in list(body["allocations"].items()):
            held.pop("generation", None)
            if "MEMORY_MB" in held["resources"]:
                held["resources"]["MEMORY_MB"] = 4096
            elif RESOURCE_CLASS in held["resources"] and not share:
                del body["allocations"][provider]
        assert self.placement.put(url, body, version="1.28").status == 204

    def is_local(self, server: dict[str, Any]) -> None:
        """Nothing held, nothing claimed of the pool, and it never was attached again."""
        assert self.claim(server["id"]) == {self.host_of(server): {"MEMORY_MB": 4096}}
        assert self.held(server) == {}
        assert len(self.agents.attaches) == 1

    def test_by_live_migration(self) -> None:
        """Its node stays, and is no file at the destination; the source's slices go back."""
        server = self.boot_pond()
        self.claim_all_as_local(server, share=True)
        server = self._live_migrate(server)
        self.is_local(server)
        domain = etree.fromstring(self.connection(self.host_of(server)).lookupByUUIDString(server["id"]).given_xml)
        [cell] = [cell for cell in domain.findall("cpu/numa/cell") if not cell.get("cpus")]
        assert (cell.get("memory"), cell.get("memAccess")) == (str(1024 * 1024), None)
        server = self._live_migrate(server)
        self.is_local(server)
        self._suspend_server(server)
        self._resume_server(server)
        self.is_local(server)
        self._reboot_server(server, hard=True)
        assert self.cells(server, self.host_of(server)) == ()
        self.is_local(server)

    def test_on_its_host(self) -> None:
        """A restart in the middle gives the slices back; from then on it is a guest without pool memory."""
        server = self.boot_pond()
        self.claim_all_as_local(server, share=True)
        self._suspend_server(server)
        self._resume_server(server)
        assert self.held(server) == {self.host_of(server): 1024}, "the controller orders them back"
        self._stop_server(server)
        self._start_server(server)
        assert self.held(server) == {}
        assert self.cells(server, self.host_of(server)) == ()
        self.claim_all_as_local(server, share=False)
        self.is_local(server)
        self._rescue_server(server)
        self._unrescue_server(server)
        self._rebuild_server(server, "a2459075-d96c-40d5-893e-577ff92e721c")
        self._reboot_server(server)
        server = self._live_migrate(server)
        self.is_local(server)
