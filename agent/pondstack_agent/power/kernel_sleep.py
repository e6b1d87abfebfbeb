"""Sleep states of the kernel: S3, and Sz where a kernel and its firmware offer it (Zombieland, section 3.1)."""

import threading
from pathlib import Path

from pondstack.domain.power import S3, SZ, PowerMode
from pondstack_agent.power.base import PowerDriver, Setting, change, put_back, read, write

ZOMBIE_KEYWORD = "zom"
"""What the paper's kernel takes in /sys/power/state for Sz. Released kernels do not have it."""


class KernelSleep(PowerDriver):
    """Writes `keyword` into state. `sleep_kind`: what mem_sleep is to be for it, "" for nothing."""

    def __init__(self, mode: PowerMode, keyword: str, sleep_kind: str, sys: Path) -> None:
        self.mode = mode
        self._keyword, self._kind = keyword, sleep_kind
        self._state, self._mem_sleep = sys / "power" / "state", sys / "power" / "mem_sleep"

    def refusal(self) -> str:
        """Return why this host cannot sleep so: its kernel does not offer the state."""
        offered = _words(self._state)
        if self._keyword not in offered:
            return f"the kernel offers {', '.join(offered) or 'nothing'} in {self._state}, not {self._keyword}"
        if self._kind and self._kind not in (kinds := _words(self._mem_sleep)):
            return f"the kernel offers {', '.join(kinds) or 'nothing'} in {self._mem_sleep}, not {self._kind}"
        return ""

    def enter(self, woken: threading.Event) -> None:
        """Sleep; the kernel returns from the write once the host is awake."""
        del woken  # no process of a host that sleeps so can be called
        back = change([Setting(self._mem_sleep, self._kind)] if self._kind else [])
        try:
            write(Setting(self._state, self._keyword))
        finally:
            put_back(Setting(item.path, _chosen(item.value)) for item in back)


def s3(sys: Path) -> KernelSleep:
    """Return the driver of S3, suspend to RAM: memory keeps its content, and nobody reaches it."""
    return KernelSleep(S3, "mem", "deep", sys)


def sz(sys: Path) -> KernelSleep:
    """Return the driver of Sz: S3 with memory and network card kept on."""
    return KernelSleep(SZ, ZOMBIE_KEYWORD, "", sys)


def _words(path: Path) -> list[str]:
    return [word.strip("[]") for word in read(path).split()] if path.exists() else []


def _chosen(line: str) -> str:
    """Return the word in brackets of a line such as `s2idle [deep]`."""
    return next((word.strip("[]") for word in line.split() if word.startswith("[")), line)
