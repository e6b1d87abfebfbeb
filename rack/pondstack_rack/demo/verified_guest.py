"""A guest of the rack that verifies its own memory: what it told on its console, and what its data plane says."""

from typing import Any

from pondstack_agent.data_plane.client import ControlClient
from pondstack_rack.demo.story import Broken
from pondstack_rack.rack import Rack
from pondstack_rack.services import image
from pondstack_rack.wait import wait_until

BEAT_SECONDS = 300.0
DATA_PLANE_SECONDS = 10.0
SLOTS = 16
"""Parts of the guest's buffer: from so many beats on, each beat verifies one that was written long before."""
ALL_BEATS = 64
"""With every so many beats a guest with remote memory verifies the 80 MiB, too, that it does not touch otherwise."""
POLL_SECONDS = 0.5


class VerifiedGuest:
    """One server."""

    def __init__(self, rack: Rack, server: str) -> None:
        self._rack, self.server = rack, server
        self._compute = rack.connection().compute
        self.beats = self.errors = self.verified = 0

    @property
    def host(self) -> str:
        """Where Nova has it."""
        return str(self._compute.get_server(self.server).hypervisor_hostname)

    @property
    def status(self) -> str:
        """Nova's word of it."""
        return str(self._compute.get_server(self.server).status)

    def live_migrations(self) -> list[tuple[str, str]]:
        """Return its live migrations that were completed: from where, and to where."""
        found = self._compute.migrations(instance_uuid=self.server)
        done = [item for item in found if item.migration_type == "live-migration" and item.status == "completed"]
        return [(str(item.source_compute), str(item.dest_compute)) for item in done]

    def beat(self, more: int) -> int:
        """Wait for so many more beats; returns how often it has read something else than it had written, ever."""
        self._wait(self.beats + more if self.beats else more)
        return self.errors

    def verify_all(self) -> int:
        """Wait until it has verified all of its memory once more; returns as beat()."""
        self._wait((self.beats // ALL_BEATS + 1) * ALL_BEATS + 1)
        return self.errors

    def served(self) -> Any:
        """Return what its host's data plane says of it."""
        folder = self._rack.layout.host(self.host) / "data-plane"
        found = [item for item in ControlClient(folder, DATA_PLANE_SECONDS).guests() if item.guest == self.server]
        if not found:
            raise Broken(f"the data plane of {self.host} does not serve {self.server}")
        return found[0]

    def _wait(self, count: int) -> None:
        def beaten() -> bool:
            text = self._compute.get_server_console_output(self.server)["output"] or ""
            for item in image.console_lines(text, "beat"):
                self.beats, self.errors, self.verified = item["count"], item["errors"], item["checked"]
            return self.beats >= count

        if not wait_until(beaten, BEAT_SECONDS, POLL_SECONDS):
            raise Broken(f"guest {self.server} does not reach beat {count}: its last one is {self.beats}")
