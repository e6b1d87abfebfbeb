"""A server with remote memory on the rack, seen from all sides: Nova, libvirt, Placement, ledger, agent, data plane."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from keystoneauth1.adapter import Adapter

from pondstack.domain.lending import DEFAULT_BUFFER_MIB, REMOTE_CLASS
from pondstack.domain.remote_share import MIRROR_CLASS
from pondstack.domain.swap_disk import SERIAL
from pondstack.rpc.agent_api import AgentAPI
from pondstack_rack.cloud_client import read_openrc
from pondstack_rack.layout import program
from pondstack_rack.rack import Rack
from pondstack_rack.services import image, keystone
from pondstack_rack.services.flavors import FLAVORS
from pondstack_rack.wait import wait_until
from tests.rack.beats import GUEST_SECONDS, beat
from tests.rack.local_guest import SLOTS
from tests.rack.outages import Days
from tests.rack.streams import stream_of

FLAVOR = "pond.swap.small"
MEMORY_MIB = FLAVORS[FLAVOR][1]
REMOTE_MIB = int(FLAVORS[FLAVOR][2]["pond:remote_mb"])
DISK_MIB = int(FLAVORS[FLAVOR][2]["pond:disk_mb"])
LOCAL_MIB = MEMORY_MIB - REMOTE_MIB - DISK_MIB
SWAP_MIB = int(FLAVORS[FLAVOR][2]["pond:swap_mb"])
LENT_MIB = REMOTE_MIB + SWAP_MIB // 2
"""Of the disk, which is best effort, half is with a lender."""
MIRROR_MIB = MEMORY_MIB + SWAP_MIB
MOVING = "pond.remote.small"
MOVING_MIB = FLAVORS[MOVING][1]
MOVING_REMOTE_MIB = int(FLAVORS[MOVING][2]["pond:remote_mb"])
SECONDS = 120.0


class RemoteGuest:
    """The server, seen from all sides."""

    def __init__(self, rack: Rack, days: Days, agents: AgentAPI) -> None:
        self.rack, self.cloud, self.agents, self.admin = rack, days.cloud, agents, rack.connection()
        self.lender = rack.layout.fake_hosts[0]
        session = keystone.session(rack.layout)
        self._api = Adapter(session, "memory", region_name="RegionOne", default_microversion="1.5", raise_exc=False)
        self.server = ""

    def openstack(self, *words: str) -> str:
        """Run a command as an operator does."""
        environment = os.environ | read_openrc(self.rack.layout.root / "openrc")
        command = [program("openstack"), "memory", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def buffers(self) -> list[str]:
        """Return the states of what the lender lends."""
        answer = self._api.get(f"/lenders/{self.lender}/buffers")
        return [] if answer.status_code == 404 else sorted(item["state"] for item in answer.json()["buffers"])

    def fits(self) -> bool:
        """Tell whether Placement has a host for it: what is lent is admitted, and there is room for its mirror."""
        own = f"resources=MEMORY_MB:{LOCAL_MIB},{MIRROR_CLASS}:{MIRROR_MIB}"
        found = self.cloud.placement.get(f"/allocation_candidates?{own}&resources_R={REMOTE_CLASS}:{REMOTE_MIB}")
        return bool(found.json()["allocation_requests"])

    def boot(self, name: str = FLAVOR) -> None:
        """Boot it as a tenant does."""
        tenant = self.rack.connection(keystone.TENANT)
        flavor = tenant.compute.find_flavor(name, ignore_missing=False)
        picture = tenant.image.find_image(image.IMAGE, ignore_missing=False)
        made = tenant.compute.create_server(name="remote", flavor_id=flavor.id, image_id=picture.id, networks="none")
        self.server = str(made.id)
        self.starts()

    def becomes(self, status: str) -> None:
        """Wait until Nova is done with it."""

        def settled() -> bool:
            found = self.admin.compute.get_server(self.server)
            return found.task_state is None and found.status in (status, "ERROR")

        assert wait_until(settled, GUEST_SECONDS, 1.0)
        found = self.admin.compute.get_server(self.server)
        assert found.status == status, found.fault

    @property
    def host(self) -> str:
        """Where it is."""
        return str(self.admin.compute.get_server(self.server).hypervisor_hostname)

    def view(self) -> dict[str, Any]:
        """Return what its host's agent says of it."""
        found = self.agents.get_remote(self.host, consumer_uuid=self.server)
        assert found
        return found

    def migrations(self) -> list[tuple[str, Any]]:
        """Return how far each of its migrations came, and what went wrong with it."""
        found = [item.status for item in self.admin.compute.migrations(instance_uuid=self.server)]
        return [(status, self.admin.compute.get_server(self.server).fault) for status in found]

    def places(self) -> set[tuple[str, int]]:
        """Return the buffers that its host has for it, by the ledger."""
        found = self._api.get(f"/lenders/{self.lender}/buffers").json()["buffers"]
        return {(item["incarnation"], item["index"]) for item in found if item["state"] == "online"}

    def copied_mib(self) -> float:
        """Return what QEMU has copied of it to the host where it is, in MiB."""
        return stream_of(self.rack, self.admin, self.server)["copied"]

    def starts(self) -> None:
        """Wait until the guest runs and beats."""
        self.becomes("ACTIVE")
        beat(self.admin, self.server, 1)

    def verifies(self) -> None:
        """Check that the guest beats on, and that its memory has what it had written."""
        first = beat(self.admin, self.server, SLOTS + 1)  # each beat from then on reads what was written long before
        after = beat(self.admin, self.server, first["count"] + 3)
        assert after["errors"] == 0, "the guest read something else than it had written"
        assert after["swapped_kib"] > 0, "some of it was on the disk meanwhile"

    def all_agree(self) -> None:
        """Placement, ledger, agent, data plane and the guest say the same."""
        classes = ("MEMORY_MB", MIRROR_CLASS, REMOTE_CLASS)
        assert [self.cloud.claimed_mib(self.server, name) for name in classes] == [LOCAL_MIB, MIRROR_MIB, REMOTE_MIB]
        assert self.buffers().count("online") * DEFAULT_BUFFER_MIB == LENT_MIB
        view = self.view()
        print(view)
        assert (view["mib"], view["borrowed_mib"], view["guaranteed"]) == (REMOTE_MIB, REMOTE_MIB, True)
        served = view["extension"]
        assert (served["memory_mib"], served["limit_mib"], served["problem"]) == (MEMORY_MIB, LOCAL_MIB, "")
        assert served["resident_mib"] <= LOCAL_MIB
        self.disk_agrees()
        text = self.admin.compute.get_server_console_output(self.server)["output"] or ""
        [node] = image.console_lines(text, "node")[-1:]
        assert node["node"] == 0
        assert LOCAL_MIB < node["memtotal_kib"] / 1024 <= MEMORY_MIB, "the guest sees all of its memory"
        [seen] = image.console_lines(text, "swap")[-1:]
        assert (seen["serial"], seen["size_kib"]) == (SERIAL, SWAP_MIB * 1024)

    def disk_agrees(self) -> None:
        """Agent and data plane say of the swap disk what the guest does."""
        view = self.agents.get_swap(self.host, consumer_uuid=self.server)
        print(view)
        assert view
        assert (view["mib"], view["borrowed_mib"], view["guaranteed"]) == (SWAP_MIB, SWAP_MIB // 2, False)
        disk = view["disk"]
        assert (disk["state"], disk["problem"], disk["connected"]) == ("serving", "", 1)
        assert disk["leases"] == {"active": SWAP_MIB // 2 // DEFAULT_BUFFER_MIB}


@contextmanager
def lent(rack: Rack, mib: int) -> Iterator[RemoteGuest]:
    """Have a host lend; the server and what was lent are gone at the end."""
    with Days(rack) as days:
        transport = days.transport()
        made = RemoteGuest(rack, days, AgentAPI(transport))
        made.openstack("host", "delegate", made.lender, "--mib", str(mib), "--wait")
        try:
            assert wait_until(made.fits, SECONDS, 1.0), "Placement has no host with room for remote memory"
            yield made
        finally:
            if made.server:
                made.admin.compute.delete_server(made.server, ignore_missing=True)
            if made.buffers():
                made.openstack("host", "reclaim", made.lender, "--mib", str(mib), "--wait")
            transport.cleanup()
