"""A guest of the rack, seen from all sides, while its pool memory becomes local memory."""

import os
import subprocess
from typing import Any
from xml.etree import ElementTree

from pondstack.domain.units import RESOURCE_CLASS
from pondstack_rack.cloud_client import Cloud, read_openrc
from pondstack_rack.layout import program
from pondstack_rack.rack import Rack
from pondstack_rack.wait import wait_until
from tests.rack.beats import GUEST_SECONDS, beat

SETTLE_SECONDS = 60.0
SLOTS = 16
"""Parts of the guest's buffer in its node without CPUs: after that many beats each beat checks what one has."""

BEATS = 3
"""So many parts are checked after each step."""


class LocalGuest:
    """The guest, and what it says, libvirt has and the ledger holds."""

    def __init__(self, rack: Rack, server: str) -> None:
        self.rack, self.server, self.admin = rack, server, rack.connection()
        self.cloud = Cloud.of_rack(rack.layout.root)

    @property
    def host(self) -> str:
        """Where it is."""
        return str(self.admin.compute.get_server(self.server).hypervisor_hostname)

    def memory_mib(self) -> int:
        """Return its size."""
        return int(self.admin.compute.get_server(self.server).flavor.ram)

    def mitigate(self) -> str:
        """Have it taken out of its pool memory for good, as an operator does; return what the command says."""
        words = ["allocation", "mitigate", self.server, "--wait", "--timeout", str(int(GUEST_SECONDS))]
        command = [program("openstack"), "memory", *words, "-f", "json"]
        environment = os.environ | read_openrc(self.rack.layout.root / "openrc")
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=2 * GUEST_SECONDS, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def migrate(self) -> None:
        """Move it live to the other host."""
        [target] = [host for host in self.rack.layout.libvirt_hosts if host != self.host]
        self.admin.compute.live_migrate_server(self.server, host=target, block_migration="auto")
        self.becomes("ACTIVE")
        assert self.host == target

    def becomes(self, status: str) -> None:
        """Wait until Nova is done with it."""

        def settled() -> bool:
            found = self.admin.compute.get_server(self.server)
            return found.task_state is None and found.status in (status, "ERROR")

        assert wait_until(settled, GUEST_SECONDS, 0.5)
        found = self.admin.compute.get_server(self.server)
        assert found.status == status, found.fault

    def goes_on(self) -> None:
        """Check that it beats, and that its memory has what it had."""
        first = beat(self.admin, self.server, self.last + 1)
        after = beat(self.admin, self.server, first["count"] + BEATS)
        assert after["errors"] == 0, "the guest read something else than it had written"
        self.last = after["count"]

    last = SLOTS

    def cells(self, *, stored: bool = False) -> list[dict[str, str]]:
        """Return libvirt's cells of it, as it runs or as it is stored; none where it has no NUMA nodes."""
        command = [str(self.rack.layout.bin / f"in-{self.host}"), "virsh", "--connect", "qemu:///system", "dumpxml"]
        command += ["--inactive"] * stored + [self.server]
        text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        document = ElementTree.fromstring(text)
        assert document.find("./numatune/memnode") is None
        return [dict(cell.attrib) for cell in document.findall("./cpu/numa/cell")]

    def is_local(self) -> None:
        """Check that Placement, ledger and agents agree: all of it is memory of its host."""
        assert self.cloud.claimed_mib(self.server, "MEMORY_MB") == self.memory_mib()
        assert self.cloud.claimed_mib(self.server, RESOURCE_CLASS) == 0
        findings: Any = None

        def agreed() -> bool:
            nonlocal findings
            held = self.cloud.memory_list("allocations", consumer_uuid=self.server)
            findings = held or [finding for finding in self.cloud.audit()["findings"] if self._matters(finding)]
            return not findings

        assert wait_until(agreed, SETTLE_SECONDS, 1.0), findings

    def _matters(self, finding: dict[str, str]) -> bool:
        """Tell a fault, or anything about this guest, from what is under way with another one."""
        return finding["severity"] != "info" or self.server in finding["subject"] + finding["detail"]
