"""The server that moves: booted with remote memory, seen from all sides, migrated live, verified, deleted."""

import re
import subprocess
from pathlib import Path
from typing import Any

from keystoneauth1.exceptions import ClientException
from oslo_messaging import MessagingException

from pondstack.domain.errors import PondError
from pondstack.domain.lending import DEFAULT_BUFFER_MIB
from pondstack_agent.data_plane.client import ControlClient
from pondstack_agent.data_plane.views import GuestView
from pondstack_rack.daemon import DaemonFailed
from pondstack_rack.services.pondstack_services import MIRRORS
from pondstack_rack.wait import wait_until
from tests.rack.beats import beat
from tests.rack.local_guest import SLOTS
from tests.rack.remote_guest import MOVING, MOVING_MIB, MOVING_REMOTE_MIB, RemoteGuest
from tests.robustness.domain_state import domain_state
from tests.robustness.left_by_nova import LeftByNova
from tests.robustness.moves.judge import Seen, Sizes

MICROVERSION = "2.80"
DELETE_SECONDS = 180.0
PLANE_SECONDS = 1.0
SIZES = Sizes(MOVING_MIB - MOVING_REMOTE_MIB, MOVING_MIB, MOVING_REMOTE_MIB, MOVING_REMOTE_MIB // DEFAULT_BUFFER_MIB)
VERIFIED_BEATS = SLOTS
"""Each of them reads one part of what was written before the move; so many read all parts."""


class MovingGuest:
    """One server at a time; `remote` says what it is on the rack."""

    def __init__(self, remote: RemoteGuest, left: LeftByNova) -> None:
        self.remote, self.left = remote, left
        self.hosts = remote.rack.layout.libvirt_hosts
        self._count = 0

    @property
    def server(self) -> str:
        """Its UUID, '' while there is none."""
        return self.remote.server

    def boot(self) -> None:
        """Boot it, unless it is there, and have it write all of its memory that it verifies."""
        if not self.server:
            self.remote.boot(MOVING)
            self._count = beat(self.remote.admin, self.server, SLOTS + 1)["count"]

    def verifies(self) -> str:
        """Return what is wrong with the guest's beats, '' for nothing: each word is as it was before the move."""
        first = beat(self.remote.admin, self.server, self._count + 1)
        after = beat(self.remote.admin, self.server, first["count"] + VERIFIED_BEATS)
        self._count = after["count"]
        return "" if after["errors"] == 0 else f"the guest read something else than it had written: {after}"

    def move(self) -> bool:
        """Ask Nova to migrate it live; False: Nova did not take it."""
        body = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
        try:
            self.left.cloud.nova.post(f"/servers/{self.server}/action", json=body, microversion=MICROVERSION)
        except ClientException:
            return False
        return True

    def abort(self) -> None:
        """Have Nova abort the migration that is under way; where that cannot be aborted now, it goes on."""
        try:
            for item in self.migrations():
                path = f"/servers/{self.server}/migrations/{item['id']}"
                self.left.cloud.nova.delete(path, microversion=MICROVERSION)
        except ClientException:
            return

    def is_moving(self) -> bool:
        """Whether Nova has a migration of it under way; also while Nova does not say."""
        try:
            return self.server_view()["OS-EXT-STS:task_state"] is not None
        except ClientException:
            return True

    def server_view(self) -> dict[str, Any]:
        """Return it as Nova shows it."""
        return dict(self.left.cloud.nova.get(f"/servers/{self.server}").json()["server"])

    def migrations(self) -> list[dict[str, Any]]:
        """Return its migrations that are under way, by Nova."""
        found = self.left.cloud.nova.get(f"/servers/{self.server}/migrations", microversion=MICROVERSION)
        return list(found.json()["migrations"])

    def provider(self, host: str) -> str:
        """Return a host's provider in Placement."""
        return self.left.providers[host]

    def look(self) -> Seen:
        """Look at it from all sides. Raises ClientException, PondError, MessagingException."""
        found = self.server_view()
        claims = self.left.cloud.placement.get(f"/allocations/{self.server}").json()["allocations"]
        return Seen(
            found["status"],
            found["OS-EXT-STS:task_state"] or "",
            found["OS-EXT-SRV-ATTR:hypervisor_hostname"],
            {uuid: dict(item["resources"]) for uuid, item in claims.items()},
            {host: state for host in self.hosts if (state := self.domain(host))},
            {host: state for host in self.hosts if (state := self._served(host))},
            {host: state for host in self.hosts if (state := self._consumer(host))},
            tuple(self.remote.buffers()),
        )

    def domain(self, host: str) -> str:
        """Return libvirt's state of it on a host, '' where it knows none."""
        return domain_state(self.remote.rack.layout, host, self.server)

    def plane(self, host: str) -> ControlClient:
        """Return a client of a host's data plane."""
        return ControlClient(self.left.rack.layout.host(host) / "data-plane", PLANE_SECONDS)

    def plane_view(self, host: str) -> GuestView | None:
        """Return what a host's data plane says of it, None also while it does not answer."""
        try:
            return self.plane(host).view(self.server)
        except PondError:
            return None

    def _served(self, host: str) -> tuple[str, str] | None:
        view = self.plane(host).view(self.server)
        return None if view is None else (str(view.state), view.handover.state if view.handover else "")

    def _consumer(self, host: str) -> str:
        found = self.remote.agents.get_remote(host, consumer_uuid=self.server)
        return str(found["state"]) if found else ""

    def forget(self) -> None:
        """Delete it; the next boot() makes another one. Raises DaemonFailed."""
        server, self.remote.server = self.server, ""
        if not server:
            return
        self.left.cloud.delete_server(server)

        def gone() -> bool:
            try:
                return server not in {item["id"] for item in self.left.cloud.servers("")}
            except ClientException:
                return False

        if not wait_until(gone, DELETE_SECONDS, 0.5):
            raise DaemonFailed(f"Nova did not delete {server} within {DELETE_SECONDS:.0f} s")

    def remains(self) -> list[str]:
        """Return what is left on the hosts, in the ledger and in Placement once there is no server."""
        found = []
        for host in self.hosts:
            try:
                served = [view.guest for view in self.plane(host).guests()]
                used_mib = self.remote.agents.get_mirror_room(host)["used_mib"]
            except (PondError, MessagingException) as error:
                return [f"{host} does not answer: {error}"]
            found += [f"the data plane of {host} has guest {guest}" for guest in served]
            found += [f"mirrors of {host} take {used_mib} MiB"] * bool(used_mib)
            folder = self.left.rack.layout.host(host)
            found += [f"{host} has mirror {path.name}" for path in (folder / MIRRORS).iterdir()]
            found += [f"{host} has a keeper: {line}" for line in keepers(folder)]
        free = set(self.remote.buffers()) <= {"free"}
        found += [] if free else [f"lent buffers are {self.remote.buffers()}"]
        return found + [f"Placement has a claim of no server: {item}" for item in self.left.strangers()]


def keepers(folder: Path) -> list[str]:
    """Return the command lines of processes that keep memory of guests below a host's folder."""
    done = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    pattern = re.compile(rf"pondstack-data-plane keep {re.escape(str(folder))}")
    return [line for line in done.stdout.splitlines() if pattern.search(line)]
