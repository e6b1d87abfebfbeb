"""lowpower-s0: a host that is awake for its memory only. What the hardware of today has in place of Sz.

User space stands still but for the lender's process and the one that wakes it, one CPU is left, which idles as deep as
it can; memory and network card are on. RDMA needs no CPU, so what the host lends is served as before.
"""

import json
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

from oslo_log import log

from pondstack.domain.errors import Unavailable
from pondstack.domain.power import LOW_POWER_S0
from pondstack_agent.host.boot import BOOT_ID
from pondstack_agent.power.base import PowerDriver, Setting, change, put_back, read
from pondstack_agent.power.cgroups import FREEZE, freezable, is_frozen

LOG = log.getLogger(__name__)


FREEZE_SECONDS = 30.0
"""So long the processes of a group may take to stand still: one that waits for a disk does not at once."""
_PAUSE_SECONDS = 0.05


class LowPowerS0(PowerDriver):
    """`kept()`: the processes that go on; `sys`: /sys; `cgroups`: root of control groups; `record`: what to undo."""

    mode = LOW_POWER_S0

    def __init__(
        self,
        sys: Path,
        cgroups: Path,
        record: Path,
        kept: Callable[[], Collection[int]],
        *,
        boot_id: Path = BOOT_ID,
        freeze_seconds: float = FREEZE_SECONDS,
    ) -> None:
        self._cpus, self._watchdogs = sys / "devices/system/cpu", sys / "class/watchdog"
        self._cgroups, self._record, self._kept = cgroups, record, kept
        self._boot_id, self._freeze_seconds = boot_id, freeze_seconds

    def refusal(self) -> str:
        """Return why this host cannot sleep so."""
        if not (self._cgroups / "cgroup.controllers").exists():
            return f"{self._cgroups} has no control groups of version 2, by which user space is frozen"
        if not self._groups():
            return f"no control group of {self._cgroups} can be frozen: all have processes that are to go on"
        for state in sorted(self._watchdogs.glob("*/state")):
            if read(state) == "active":
                return (
                    f"{state.parent.name} would reset the host, as who feeds it is frozen: stop it first "
                    "(RuntimeWatchdogSec=off of systemd)"
                )
        return ""

    def enter(self, woken: threading.Event) -> None:
        """Stand still until woken. What is to be undone is on disk before anything is changed."""
        groups = self._groups()
        wanted = self._settings(groups)
        undo = [[str(item.path), _opposite(item)] for item in wanted]
        self._record.write_text(json.dumps({"boot": read(self._boot_id), "undo": undo}))
        back: list[Setting] = []
        try:
            back = change(wanted)
            self._await_frozen(groups, woken)
            LOG.info("%d settings are changed: the host sleeps by %s", len(back), self.mode.name)
            woken.wait()
        finally:
            self._undo(back)

    def _await_frozen(self, groups: Collection[Path], woken: threading.Event) -> None:
        """Return once all of some groups stand still, or woken; raises Unavailable: one does not."""
        ends = time.monotonic() + self._freeze_seconds
        while restless := [group for group in groups if not is_frozen(group)]:
            if time.monotonic() > ends:
                raise Unavailable(f"{restless[0]} does not freeze within {self._freeze_seconds:g} s; see its processes")
            if woken.wait(_PAUSE_SECONDS):
                return

    def _undo(self, back: list[Setting]) -> None:
        # A group whose processes were killed meanwhile may be gone: there is nobody to thaw.
        trouble = put_back(item for item in back if item.path.name != FREEZE or item.path.exists())
        self._record.unlink(missing_ok=True)
        if trouble:
            raise Unavailable(f"the host is awake, but for {'; '.join(trouble)}: restart it")

    def restore(self) -> None:
        """Undo what a waker that died has left behind; after a reset there is nothing."""
        if not self._record.exists():
            return
        found = json.loads(self._record.read_text())
        same_boot = found["boot"] == read(self._boot_id)
        self._undo([Setting(Path(path), value) for path, value in reversed(found["undo"])] if same_boot else [])

    def _groups(self) -> list[Path]:
        return freezable(self._cgroups, self._kept())

    def _settings(self, groups: Collection[Path]) -> list[Setting]:
        """Return what is to be changed: first nothing runs, then few CPUs are left, and they may idle deep."""
        idle = [file for file in sorted(self._cpus.glob("cpu0/cpuidle/state*/disable")) if file.read_text()[:1] == "1"]
        return [
            *(Setting(group / FREEZE, "1") for group in groups if read(group / FREEZE) != "1"),
            # cpu0 has no such file where it cannot be taken away.
            *(
                Setting(file, "0")
                for file in sorted(self._cpus.glob("cpu[0-9]*/online"))
                if file.parent.name != "cpu0" and file.read_text()[:1] == "1"
            ),
            *(Setting(file, "0") for file in idle),
        ]


def _opposite(setting: Setting) -> str:
    return "0" if setting.value == "1" else "1"
