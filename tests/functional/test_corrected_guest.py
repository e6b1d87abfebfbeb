"""A guest whose memory was all claimed as local: Nova never gives it pool memory again, and its nodes stay or go."""

from typing import Any

from lxml import etree

from pondstack.domain.known_split import KnownSplit
from pondstack.domain.sizing import corrected_split
from pondstack.domain.units import RESOURCE_CLASS
from pondstack_nova.scheduler import split_view
from tests.functional.drivers import NovaWithLibvirt

IMAGE = "a2459075-d96c-40d5-893e-577ff92e721c"


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

    def boot_corrected(self) -> dict[str, Any]:
        """Boot a guest, and do what a mitigation does of it."""
        server = self.boot_pond()
        self.claim_all_as_local(server, share=True)
        self.agents.lose(self.host_of(server))
        self.claim_all_as_local(server, share=False)
        self.controller.known = [KnownSplit(server["id"], remembered=corrected_split(4096))]
        split_view.reset()
        return server

    def is_local(self, server: dict[str, Any], memory_mib: int = 4096) -> None:
        """Nothing held, nothing claimed of the pool, and it never was attached again."""
        assert self.claim(server["id"]) == {self.host_of(server): {"MEMORY_MB": memory_mib}}
        assert self.held(server) == {}
        assert len(self.agents.attaches) == 1

    def is_plain(self, server: dict[str, Any], memory_mib: int = 4096) -> None:
        """It is local, and its domain is that of a guest that never had pool memory."""
        self.is_local(server, memory_mib)
        domain = etree.fromstring(self.connection(self.host_of(server)).lookupByUUIDString(server["id"]).given_xml)
        assert domain.findall("cpu/numa/cell") == []
        assert domain.findtext("memory") == str(memory_mib * 1024)
        assert domain.find("devices/emulator") is None

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
        self._rebuild_server(server, IMAGE)
        self._reboot_server(server)
        server = self._live_migrate(server)
        self.is_local(server)

    def test_where_it_is_made_anew(self) -> None:
        """A cold migration, a resize, shelving, an evacuation: the domain is that of a plain guest."""
        server = self._migrate_server(self.boot_corrected())
        self.is_plain(server)
        self._confirm_resize(server)
        server = self._resize_server(server, self.pond_flavor(3072, 8192))
        self.is_plain(server, 8192)
        self._revert_resize(server)
        self.is_plain(server)
        self._shelve_server(server)
        server = self._unshelve_server(server)
        self.is_plain(server)
        source = self.host_of(server)
        self.computes[source].stop()
        self.api.put_service_force_down(self.computes[source].service_ref.uuid, True)
        server = self._evacuate_server(server)
        both = {host: {"MEMORY_MB": 4096} for host in (source, self.host_of(server))}
        assert self.claim(server["id"]) == both, "Nova keeps the claim of the host that is down until it is back"
        self.comes_back(source)
        self.is_plain(server)

    def test_its_host_restarts(self) -> None:
        """With resume_guests_state_on_host_boot it comes back as a plain guest, and waits for no agent."""
        self.flags(resume_guests_state_on_host_boot=True)
        server = self.boot_corrected()
        host = self.host_of(server)
        assert self.cells(server, host) == (1024,)
        self.computes[host].stop()
        self.connection(host).lookupByUUIDString(server["id"]).destroy()
        self.agents.down = {host}
        self.comes_back(host)
        assert self.connection(host).lookupByUUIDString(server["id"]).isActive()
        self.is_plain(server)
