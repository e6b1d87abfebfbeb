"""The last move of a run: the host that a guest comes from is lost before all of its pages have come.

Its data plane, what keeps memory for it, and its agent are killed, and stay away. The guest cannot go on: that is told,
then it ends with that reason, and a hard reboot boots it anew. The host comes back only then.
"""

import threading
import time
from collections.abc import Callable

import psutil
from keystoneauth1.exceptions import ClientException
from oslo_messaging import MessagingException

from pondstack.domain.errors import PondError
from pondstack_rack.daemon import DaemonFailed, kill_tree
from pondstack_rack.wait import wait_until
from tests.rack.beats import beat
from tests.robustness.moves.guest import MovingGuest
from tests.robustness.moves.plan import Step, Victim
from tests.robustness.moves.rack import ABANDONED_SECONDS, Victims
from tests.robustness.moves.strike import step_of

MEET_SECONDS = 180.0
LOOK_SECONDS = 0.005
TRIES = 4
END_SECONDS = ABANDONED_SECONDS + 300.0
"""A round of nova-compute comes once a minute, on an idle machine."""
TOLD = frozenset({"guest_waits", "guest_memory_lost"})
"""The findings that say so."""
_NO_ANSWER = (ClientException, PondError, MessagingException)


class LostSource:
    """Of one rack. `say`: one line for people."""

    def __init__(self, victims: Victims, guest: MovingGuest, say: Callable[[str], None]) -> None:
        self._victims, self._guest, self._say = victims, guest, say

    def run(self) -> list[str]:
        """Do it; returns what was not as it has to be. Raises DaemonFailed, AssertionError."""
        for _ in range(TRIES):
            self._guest.boot()
            source = self._guest.remote.host
            [destination] = [host for host in self._guest.hosts if host != source]
            if self._lose(source, destination):
                try:
                    return self._ends(destination)
                finally:
                    self._come_back(source)
            self._come_back(source)
            wait_until(lambda: not self._guest.is_moving(), MEET_SECONDS, 0.5)
        return ["the source was never lost before all pages had come"]

    def _lose(self, source: str, destination: str) -> bool:
        """Migrate it, and lose the source while pages are there; False: all had come by then."""
        guest, ends = self._guest, time.monotonic() + MEET_SECONDS
        if not guest.move():
            return False
        while step_of(None, guest.plane_view(destination)) is not Step.FETCHING:
            if time.monotonic() > ends or not guest.is_moving():
                return False
            threading.Event().wait(LOOK_SECONDS)
        plane = self._victims.process(f"pondstack-data-plane-{source}")
        for process in (plane, *plane.children()):  # with what keeps memory for it
            kill_tree(process)
        self._victims.kill(self._victims.service(Victim.SOURCE_AGENT, source, destination))
        view = guest.plane_view(destination)
        return view is not None and view.handover is not None and view.handover.state in ("waiting", "taking")

    def _ends(self, destination: str) -> list[str]:
        began = time.monotonic()
        told = wait_until(lambda: bool(self._findings() & TOLD), END_SECONDS, 1.0)
        found = [] if told else ["no audit tells of it"]
        if not wait_until(self._is_in_error, END_SECONDS, 1.0):
            return [*found, f"the guest waits still, after {time.monotonic() - began:.0f} s"]
        fault = self._guest.server_view().get("fault", {}).get("message", "")
        self._say(f"the source is lost: in ERROR after {time.monotonic() - began:.0f} s: {fault}")
        found += [] if "memory of the server is lost" in fault else [f"its fault is {fault!r}"]
        if not wait_until(lambda: self._guest.domain(destination) in ("", "shut off"), END_SECONDS, 1.0):
            found.append(f"libvirt has it {self._guest.domain(destination)}")
        self._guest.remote.admin.compute.reboot_server(self._guest.server, "HARD")
        self._guest.remote.becomes("ACTIVE")
        beat(self._guest.remote.admin, self._guest.server, 1)
        self._say("hard rebooted, it beats")
        return found

    def _is_in_error(self) -> bool:
        try:
            found = self._guest.server_view()
        except ClientException:
            return False
        return bool(found["status"] == "ERROR" and found.get("fault"))

    def _findings(self) -> set[str]:
        try:
            return {item["code"] for item in self._guest.left.cloud.audit()["findings"]}
        except _NO_ANSWER:
            return set()

    def _come_back(self, source: str) -> None:
        for service in (f"pondstack-data-plane-{source}", f"pondstack-agent-{source}"):
            try:
                self._victims.processes.start(service)
            except psutil.Error as error:
                raise DaemonFailed(f"{service}: {error}") from error
