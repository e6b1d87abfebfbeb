"""Heat by the processor's own referenced bits: cleared once, looked at after the hot and after the warm window.

/proc/PID/clear_refs clears them, smaps sums them up by mapping. Exact to the page, but for pages whose translation a
processor still holds (some MiB): it notes no use of these. Blind for what a guest of KVM does, whose accesses are noted
in other tables that this interface does not ask. Linux: Documentation/filesystems/proc.
"""

import time
from collections.abc import Callable
from pathlib import Path

from pondstack_agent.tiering import pagetypes
from pondstack_agent.tiering.heat import Cost, Profile, between
from pondstack_agent.tiering.pagetypes import Mapping

_ALL_PAGES = "1"


class Referenced:
    """The method for processes. `wait`: seconds. Windows are in seconds."""

    name = "referenced"
    precision = "each page, by the processor's referenced bits; what its TLB keeps looks unused"

    def __init__(
        self,
        pid: int,
        hot_seconds: float,
        warm_seconds: float,
        *,
        wait: Callable[[float], object],
        proc: Path = Path("/proc"),
    ) -> None:
        self._pid, self._proc = pid, proc
        self._windows, self._wait = (hot_seconds, warm_seconds - hot_seconds), wait
        self.cost = Cost()

    def cycle(self) -> Profile:
        """Watch for the warm window; raises OSError when the process is gone."""
        self._timed(self._clear)
        looks: list[list[Mapping]] = []
        for seconds in self._windows:
            self._wait(seconds)
            looks.append(self._timed(self._look))
        return between(*looks)

    def _clear(self) -> list[Mapping]:
        (self._proc / str(self._pid) / "clear_refs").write_text(_ALL_PAGES)
        return []

    def _look(self) -> list[Mapping]:
        return pagetypes.of_process(self._pid, self._proc)

    def _timed(self, look: Callable[[], list[Mapping]]) -> list[Mapping]:
        begun, used = time.perf_counter(), time.process_time()
        found = look()
        self.cost.processor_seconds += time.process_time() - used
        self.cost.longest_look_seconds = max(self.cost.longest_look_seconds, time.perf_counter() - begun)
        return found
