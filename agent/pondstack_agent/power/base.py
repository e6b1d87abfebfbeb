"""What a power driver is (Zombieland, EuroSys'18, section 3), and settings of the kernel that it changes."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pondstack.domain.errors import Unavailable
from pondstack.domain.power import PowerMode


class PowerDriver(ABC):
    """A way to put this host to sleep. `mode`: what it keeps."""

    mode: PowerMode

    @abstractmethod
    def refusal(self) -> str:
        """Return why this host cannot sleep so, "": it can."""

    @abstractmethod
    def enter(self, woken: threading.Event) -> None:
        """Sleep, and return once the host is awake; one that can be called sleeps until `woken` is set.

        Raises Unavailable with the reason, the host being awake as before.
        """

    def restore(self) -> None:
        """Undo what a former life of this process left behind; idempotent. Most leave nothing."""
        return


class Setting(NamedTuple):
    """A file of the kernel, and what is written there."""

    path: Path
    value: str


def read(path: Path) -> str:
    """Return what a file of the kernel says; raises Unavailable."""
    try:
        return path.read_text().strip()
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}") from error


def write(setting: Setting) -> None:
    """Change a file of the kernel; raises Unavailable."""
    try:
        setting.path.write_text(setting.value)
    except OSError as error:
        raise Unavailable(f"{setting.path} does not take {setting.value!r}: {error.strerror}") from error


def change(settings: Iterable[Setting]) -> list[Setting]:
    """Change all of some settings, or none; returns what puts them back, in that order. Raises Unavailable."""
    back: list[Setting] = []
    try:
        for setting in settings:
            before = Setting(setting.path, read(setting.path))
            if before.value != setting.value:
                write(setting)
                back.insert(0, before)
    except Unavailable:
        put_back(back)
        raise
    return back


def put_back(settings: Iterable[Setting]) -> list[str]:
    """Write all of some settings, whatever becomes of each; returns what went wrong."""
    trouble = []
    for setting in settings:
        try:
            write(setting)
        except Unavailable as error:
            trouble.append(error.message)
    return trouble
