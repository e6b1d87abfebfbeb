"""The servers that are mitigated: booted with pool memory, seen from all sides, stopped and started, deleted."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4
from xml.etree import ElementTree

from keystoneauth1.exceptions import ClientException, Conflict, NotFound

from pondstack.domain.units import GIB_MIB
from pondstack_agent.qemu import attachment_lock
from pondstack_rack.daemon import DaemonFailed
from pondstack_rack.rack import Rack
from pondstack_rack.services import image
from pondstack_rack.wait import wait_until
from tests.rack.beats import beat
from tests.robustness.left_by_nova import LeftByNova
from tests.robustness.mitigations.plan import Place

MITIGATIONS = "1.16"
"""Microversion of the memory API."""
POOL_MIB = GIB_MIB
LOCAL_MIB = {Place.FAKE: GIB_MIB, Place.GUEST: 256}
BUILD_SECONDS = 300.0
DONE_SECONDS = 180.0
BEATS = 2
TRAIT = "CUSTOM_POND_KILLED"
ABSENT = ""
"""What virsh has of a domain on a host that has none."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A server as all parts have it. `claims`: {provider: {class: MiB or count}}, `allocations`: {uuid: (host, state)}.

    `cells`: of libvirt's domain as it runs and as it is stored, by host; None for a fake compute.
    """

    status: str
    task: str
    host: str
    claims: Mapping[str, Mapping[str, int]]
    allocations: Mapping[str, tuple[str, str]]
    corrected: bool
    cells: Mapping[str, tuple[str, str]] | None


class Servers(LeftByNova):
    """All of a run; each name begins with `prefix`."""

    def __init__(self, rack: Rack) -> None:
        super().__init__(rack)
        self.prefix = f"kill-{uuid4().hex[:6]}-"
        self.admin = rack.connection()
        self._flavors: dict[Place, str] = {}
        self._images: dict[Place, str] = {}

    def prepare(self) -> None:
        """Make the flavors: each for one kind of host."""
        self.find_providers()
        images = {item.name: item.id for item in self.admin.image.images()}
        self._images = {Place.FAKE: images[image.BLANK], Place.GUEST: images[image.IMAGE]}
        for place, hosts in self.hosts.items():
            trait = f"{TRAIT}_{place.name}"
            for host in hosts:
                self.cloud.set_trait(self.providers[host], trait, present=True)
            specs = {"pond:policy": "fixed", "pond:pool_mb": str(POOL_MIB), f"trait:{trait}": "required"}
            name = f"{self.prefix}{place.name.lower()}"
            self._flavors[place] = self.cloud.create_flavor(name, 1, POOL_MIB + LOCAL_MIB[place], specs)

    @property
    def hosts(self) -> dict[Place, tuple[str, ...]]:
        """The hosts by kind."""
        return {Place.FAKE: self.rack.layout.fake_hosts, Place.GUEST: self.rack.layout.libvirt_hosts}

    def boot(self, place: Place, host: str) -> str:
        """Ask for a server on a host."""
        body = {
            "name": f"{self.prefix}{uuid4().hex[:6]}",
            "flavorRef": self._flavors[place],
            "imageRef": self._images[place],
            "networks": "none",
            "hypervisor_hostname": host,
        }
        return str(self.cloud.nova.post("/servers", json={"server": body}).json()["server"]["id"])

    def built(self, server: str, place: Place) -> None:
        """Wait until it is ACTIVE, and a real guest beats; raises DaemonFailed."""
        self.becomes(server, "ACTIVE", BUILD_SECONDS)
        if place is Place.GUEST:
            beat(self.admin, server, 2)

    def beats_on(self, server: str) -> str:
        """Return what is wrong with a real guest's beats, "" for nothing: its memory has what it had written."""
        first = beat(self.admin, server, 1)
        after = beat(self.admin, server, first["count"] + BEATS)
        return "" if after["errors"] == 0 else f"the guest read something else than it had written: {after}"

    def get(self, server: str) -> dict[str, Any]:
        """Return it as Nova shows it."""
        return dict(self.cloud.nova.get(f"/servers/{server}").json()["server"])

    def host_of(self, server: str) -> str:
        """Return where it is."""
        return str(self.get(server)["OS-EXT-SRV-ATTR:hypervisor_hostname"])

    def becomes(self, server: str, status: str, seconds: float = DONE_SECONDS) -> None:
        """Wait until Nova is done with it; raises DaemonFailed where it is not as wanted then."""
        seen = ("", None)

        def settled() -> bool:
            nonlocal seen
            try:
                found = self.get(server)
            except ClientException:
                return False
            seen = (found["status"], found["OS-EXT-STS:task_state"])
            return seen in ((status, None), ("ERROR", None))

        if not wait_until(settled, seconds, 0.3) or seen[0] != status:
            raise DaemonFailed(f"server {server} is {seen}, not {status}, after {seconds:.0f} s")

    def act(self, server: str, action: str, status: str) -> None:
        """Have Nova do something that takes no arguments, and wait for its end."""
        self.cloud.nova.post(f"/servers/{server}/action", json={action: None})
        self.becomes(server, status)

    def delete(self, servers: list[str]) -> None:
        """Delete servers, and wait until Nova has none of them."""
        for server in servers:
            self.cloud.delete_server(server)

        def gone() -> bool:
            try:
                return not {item["id"] for item in self.cloud.servers(self.prefix)} & set(servers)
            except ClientException:
                return False

        if not wait_until(gone, DONE_SECONDS, 0.5):
            raise DaemonFailed(f"Nova did not delete {servers} within {DONE_SECONDS:.0f} s")

    # Mitigation

    def mitigate(self, server: str, method: str | None) -> None:
        """Begin to mitigate it; no answer is none: the ledger tells what became of it."""
        body = {"operation_id": str(uuid4())} | ({"method": method} if method else {})
        self._asked(f"/allocations/{server}/mitigate", body)

    def abort(self, server: str) -> None:
        """Have its mitigation undone; one that is beyond that stays so."""
        self._asked(f"/allocations/{server}/abort", {"operation_id": str(uuid4())})

    def _asked(self, path: str, body: dict[str, Any]) -> None:
        def asked() -> bool:
            try:
                self.cloud.memory.post(path, json=body, microversion=MITIGATIONS)
            except (Conflict, NotFound):
                return True
            except ClientException:
                return False
            return True

        wait_until(asked, DONE_SECONDS, 0.5)

    @contextmanager
    def slices_in_use(self, server: str) -> Iterator[None]:
        """Keep a server's slices from going offline, as a QEMU that ends slowly does: its record is locked."""
        with ExitStack() as held:
            for item in self.cloud.memory_list("allocations", consumer_uuid=server):
                folder = self.rack.layout.host(item["host"]) / "agent" / attachment_lock.FOLDER
                handle = attachment_lock.hold(folder / f"{item['uuid']}.json")
                held.callback(os.close, handle)
            yield

    # What all parts have

    def look(self, server: str, place: Place) -> Seen:
        """Look at it from all sides. Raises ClientException."""
        found = self.get(server)
        claims = self.cloud.placement.get(f"/allocations/{server}").json()["allocations"]
        held = self.cloud.memory_list("allocations", consumer_uuid=server)
        told = self.cloud.memory.get(f"/qos/{server}", microversion=MITIGATIONS).json()
        return Seen(
            found["status"],
            found["OS-EXT-STS:task_state"] or "",
            found["OS-EXT-SRV-ATTR:hypervisor_hostname"],
            {uuid: dict(item["resources"]) for uuid, item in claims.items()},
            {item["uuid"]: (item["host"], item["state"]) for item in held},
            bool(told["corrected"]),
            self._cells(server) if place is Place.GUEST else None,
        )

    def _cells(self, server: str) -> dict[str, tuple[str, str]]:
        """Return what libvirt has of a guest on each host that has it: its NUMA cells, as it runs and as stored."""
        return {
            host: (active, self._domain(host, server, "--inactive"))
            for host in self.rack.layout.libvirt_hosts
            if (active := self._domain(host, server)) != ABSENT
        }

    def _domain(self, host: str, server: str, *options: str) -> str:
        enter = str(self.rack.layout.bin / f"in-{host}")
        command = [enter, "virsh", "--connect", "qemu:///system", "dumpxml", *options, server]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            return ABSENT
        cells = ElementTree.fromstring(done.stdout).findall("./cpu/numa/cell")
        return "pool" if any(cell.get("memAccess") == "shared" for cell in cells) else "local"
