"""lowpower-s0: a host that is awake for its memory only. What the hardware of today has in place of Sz.

User space stands still but for the lender's process and the one that wakes it, one CPU is left, which idles as deep as
it can; memory and network card are on. RDMA needs no CPU, so what the host lends is served as before.
"""

import json
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from oslo_log import log

from pondstack.domain.errors import Unavailable
from pondstack.domain.power import LOW_POWER_S0
from pondstack_agent.power.base import PowerDriver, Setting, change, put_back
from pondstack_agent.power.cgroups import FREEZE, freezable

LOG = log.getLogger(__name__)


class LowPowerS0(PowerDriver):
    """`kept()`: the processes that go on; `sys`: /sys; `cgroups`: root of control groups; `record`: what to undo."""

    mode = LOW_POWER_S0

    def __init__(self, sys: Path, cgroups: Path, record: Path, kept: Callable[[], Collection[int]]) -> None:
        self._cpus, self._cgroups, self._record, self._kept = sys / "devices/system/cpu", cgroups, record, kept

    def refusal(self) -> str:
        """Return why this host cannot sleep so."""
        if not (self._cgroups / "cgroup.controllers").exists():
            return f"{self._cgroups} has no control groups of version 2, by which user space is frozen"
        if not self._groups():
            return f"no control group of {self._cgroups} can be frozen: all have processes that are to go on"
        return ""

    def enter(self, woken: threading.Event) -> None:
        """Stand still until woken. What is to be undone is on disk before anything is changed."""
        wanted = self._settings()
        self._record.write_text(json.dumps([[str(item.path), _opposite(item)] for item in wanted]))
        back = change(wanted)
        LOG.info("%d settings are changed: the host sleeps by %s", len(back), self.mode.name)
        try:
            woken.wait()
        finally:
            self._undo(back)

    def _undo(self, back: list[Setting]) -> None:
        trouble = put_back(back)
        self._record.unlink(missing_ok=True)
        if trouble:
            raise Unavailable(f"the host is awake, but for {'; '.join(trouble)}: restart it")

    def restore(self) -> None:
        """Undo what a waker that died has left behind."""
        if self._record.exists():
            self._undo([Setting(Path(path), value) for path, value in reversed(json.loads(self._record.read_text()))])

    def _groups(self) -> list[Path]:
        return freezable(self._cgroups, self._kept())

    def _settings(self) -> list[Setting]:
        """Return what is to be changed: first nothing runs, then few CPUs are left, and they may idle deep."""
        idle = [file for file in sorted(self._cpus.glob("cpu0/cpuidle/state*/disable")) if file.read_text()[:1] == "1"]
        return [
            *(Setting(group / FREEZE, "1") for group in self._groups()),
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
