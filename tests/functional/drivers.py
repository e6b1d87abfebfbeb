"""Nova in one process with pondstack's virt drivers and in-memory agents; libvirt itself is Nova's fake of it."""

from pathlib import Path
from typing import Any
from unittest import mock

import fixtures
from lxml import etree
from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.libvirt import base as libvirt_base
from oslo_utils.fixture import uuidsentinel as uuids

from pondstack_nova import stats, virt_fake
from pondstack_nova.compute import znuma
from tests.fixtures.fake_agents import FakeAgents
from tests.functional.base import CONF, NovaWithPondstack

MIGRATE_PAUSED = 1 << 5
"""VIR_MIGRATE_PAUSED of libvirt-domain.h, which Nova's fake does not have."""


def _make_folder(_driver: Any, _context: Any, instance: Any, *_: Any, **__: Any) -> tuple[bool, bool]:
    Path(CONF.instances_path, instance.uuid).mkdir(exist_ok=True)
    return False, False


class NovaWithAgents(NovaWithPondstack):
    """Nova whose computes run one of our drivers; `self.agents` stands for all agents."""

    hosts = ("host1", "host2", "host3")

    def setUp(self) -> None:
        """Have the agents there before the first compute starts."""
        self.install_agents()
        super().setUp()

    def install_agents(self) -> None:
        """Put agents in memory in the place of real ones."""
        self.agents = FakeAgents()
        patcher = mock.patch("pondstack_nova.compute.agent_client.make_api", return_value=self.agents)
        patcher.start()
        self.addCleanup(patcher.stop)

    def pond_flavor(self, pool_mib: int, memory_mib: int) -> str:
        """Make a flavor whose servers get so much pool memory."""
        return self.flavor(memory_mib, policy="fixed", pool_mb=str(pool_mib))

    def boot_pond(self, pool_mib: int = 1024, memory_mib: int = 4096, **kwargs: Any) -> dict[str, Any]:
        """Boot a guest with pool memory."""
        return self.boot(self.pond_flavor(pool_mib, memory_mib), **kwargs)

    def host_of(self, server: dict[str, Any]) -> str:
        """Return where a server is."""
        return str(self.api.get_server(server["id"])["OS-EXT-SRV-ATTR:host"])

    def held(self, server: dict[str, Any]) -> dict[str, int]:
        """Return what the agents hold for a server: host to MiB."""
        return self.agents.hosts_of(server["id"])

    def driver(self, host: str) -> Any:
        """Return the virt driver of a host."""
        return self.computes[host].manager.driver


class NovaWithFakes(NovaWithAgents):
    """PondFakeDriver, several hosts in one process: each with a node UUID of its own, as separate processes have."""

    compute_driver = "pond.PondFakeDriver"

    def setUp(self) -> None:
        """Tell the hosts apart."""

        def resources(driver: Any, nodename: str) -> Any:
            data = super(virt_fake.fake.FakeDriverWithoutFakeNodes, driver).get_available_resource(nodename)
            return {**data, "stats": {stats.BY_CLAIM: "1"}}

        def nodes(driver: Any, refresh: bool = False) -> dict[str, str]:
            del refresh
            return {str(getattr(uuids, f"node_{driver._host}")): driver._host}

        self.computes: dict[str, Any] = {}
        for name, method in (("get_available_resource", resources), ("get_nodenames_by_uuid", nodes)):
            patcher = mock.patch.object(virt_fake.PondFakeDriver, name, method)
            patcher.start()
            self.addCleanup(patcher.stop)
        super().setUp()

    def start_service(self, name: str, host: str | None = None, **kwargs: Any) -> Any:
        """Keep the computes by host."""
        service = super().start_service(name, host=host, **kwargs)
        if name == "compute":
            self.computes[str(host)] = service
        return service


class NovaWithLibvirt(NovaWithAgents):
    """PondLibvirtDriver over Nova's fake libvirt; domains keep the XML that they were defined by."""

    compute_driver = "pond.PondLibvirtDriver"
    start_compute = libvirt_base.ServersTestBase.start_compute
    _get_connection = libvirt_base.ServersTestBase._get_connection

    def setUp(self) -> None:
        """Install the fakes once Nova's base has set up, before the first compute."""
        self.computes: dict[str, Any] = {}
        self.compute_rp_uuids: dict[str, str] = {}
        self.faked = False
        self.fail_migration = False
        self.flags(emulator="/usr/bin/pondstack-qemu", group="pondstack")
        super().setUp()

    def start_service(self, name: str, host: str | None = None, **kwargs: Any) -> Any:
        """Start a compute with a libvirt connection of its own."""
        if name != "compute" or "cell_name" in kwargs:
            return super().start_service(name, host=host, **kwargs)
        if not self.faked:
            self._fake_libvirt()
        self.start_compute(host)
        return self.computes[str(host)]

    def comes_back(self, host: str) -> None:
        """Start a stopped compute again with the connection that it had."""
        libvirt = self.connection(host)
        self.computes.pop(host)
        self.compute_rp_uuids.pop(host)
        self.start_compute(host, connection=libvirt)

    def connection(self, host: str) -> Any:
        """Return the fake libvirt of a host."""
        return self.driver(host)._host.get_connection()

    def cells(self, server: dict[str, Any], host: str) -> tuple[int, ...]:
        """Return the MiB of a guest's CPU-less nodes, from its domain."""
        return znuma.pool_cells_mib(self.connection(host).lookupByUUIDString(server["id"]).given_xml)

    def _fake_libvirt(self) -> None:
        self.faked = True
        self.flags(instances_path=self.useFixture(fixtures.TempDir()).path)
        self.useFixture(nova_fixtures.LibvirtImageBackendFixture())
        self.useFixture(nova_fixtures.CGroupsFixture())
        self.libvirt = self.useFixture(nova_fixtures.LibvirtFixture())
        self.useFixture(nova_fixtures.OSBrickFixture())
        self.useFixture(fixtures.MonkeyPatch("nova.virt.libvirt.LibvirtDriver._create_image", _make_folder))
        self._patch(
            "nova.virt.libvirt.LibvirtDriver._get_local_gb_info", return_value={"total": 128, "used": 44, "free": 84}
        )
        self._patch("nova.virt.libvirt.driver.libvirt_utils.is_valid_hostname", return_value=True)
        self._patch("nova.virt.libvirt.host.Host.get_online_cpus", return_value=set(range(16)))
        self._patch("nova.virt.libvirt.LibvirtDriver._get_instance_disk_info", return_value=[])
        self._patch("nova.virt.libvirt.LibvirtDriver.get_instance_disk_info", return_value="[]")
        self._patch("nova.virt.libvirt.LibvirtDriver._create_images_and_backing")
        self._patch("nova.virt.libvirt.LibvirtDriver._is_path_shared_with", return_value=False)
        self._patch("nova.virt.libvirt.volume.remotefs.RemoteFilesystem.create_dir")
        self._patch("nova.virt.libvirt.utils.copy_image")
        self._patch("nova.virt.libvirt.LibvirtDriver.snapshot")
        self.mock_conn = self._patch("nova.virt.libvirt.host.Host.get_connection")
        self._keep_given_xml()
        self._show_managed_saves()
        self._show_security_drivers()

    def _patch(self, target: str, **kwargs: Any) -> Any:
        return self.useFixture(fixtures.MockPatch(target, **kwargs)).mock

    def _show_managed_saves(self) -> None:
        """Nova's fake has managed save images, and no look into them: the domain as it was defined last."""
        methods = {
            "managedSaveGetXMLDesc": lambda domain, _flags: domain.given_xml,
            "managedSaveDefineXML": lambda domain, xml: setattr(domain, "given_xml", xml),
        }
        for name, method in methods.items():
            patcher = mock.patch.object(fakelibvirt.Domain, name, method, create=True)
            patcher.start()
            self.addCleanup(patcher.stop)

    def _show_security_drivers(self) -> None:
        """Have hosts tell of the security driver that a libvirt of root always has, beside that of Nova's fake."""
        plain = fakelibvirt.Connection.getCapabilities
        models = "<secmodel><model>dac</model><doi>0</doi></secmodel>"

        def told(connection: Any) -> str:
            return str(plain(connection)).replace("</host>", f"{models}</host>", 1)

        self.useFixture(fixtures.MonkeyPatch("nova.tests.fixtures.libvirt.Connection.getCapabilities", told))

    def _keep_given_xml(self) -> None:
        real_parse, real_dump, test = fakelibvirt.Domain._parse_definition, fakelibvirt.Domain.XMLDesc, self

        def parse(domain: Any, xml: str) -> Any:
            domain.given_xml = xml
            return real_parse(domain, xml)

        def dump(domain: Any, flags: int) -> str:
            document, given = etree.fromstring(real_dump(domain, flags)), etree.fromstring(domain.given_xml)
            for tag in ("cpu", "memoryBacking", "numatune", "seclabel"):
                for element in document.findall(tag):
                    document.remove(element)
                document.extend(given.findall(tag))
            for emulator in given.findall("devices/emulator"):
                document.find("devices/emulator").text = emulator.text
            disks = zip(*(xml.findall("devices/disk[@type='network']") for xml in (document, given)), strict=True)
            for shown, disk in disks:
                shown.getparent().replace(shown, disk)
            return str(etree.tostring(document, encoding="unicode"))

        def migrate(domain: Any, destination: str, params: dict[str, Any], flags: int) -> None:
            if test.fail_migration:
                domain.fail_job()
                raise fakelibvirt.make_libvirtError(
                    fakelibvirt.libvirtError, "migration failed", error_code=fakelibvirt.VIR_ERR_OPERATION_FAILED
                )
            target = next(host for host in test.hosts if host in destination)
            there = test.connection(target).createXML(params["destination_xml"], "")
            if flags & MIGRATE_PAUSED:
                there.suspend()
            domain.complete_job()

        for name, method in (("_parse_definition", parse), ("XMLDesc", dump), ("migrateToURI3", migrate)):
            self.useFixture(fixtures.MonkeyPatch(f"nova.tests.fixtures.libvirt.Domain.{name}", method))
        self.useFixture(fixtures.MonkeyPatch("libvirt_qemu.qemuMonitorCommand", lambda *_: '{"return": {}}'))
