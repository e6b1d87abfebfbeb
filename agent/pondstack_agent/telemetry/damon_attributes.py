"""DAMON's attributes in sysfs, of which somebody else may be at any moment. Effects only."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_TRIES, _RETRY_SECONDS = 50, 0.02

Answer = TypeVar("Answer")


def read(path: Path) -> str:
    """Return an attribute without its line end; raises OSError."""
    return _patiently(path.read_text).strip()


def write(path: Path, text: str) -> None:
    """Write an attribute; raises OSError."""
    _patiently(lambda: path.write_text(text))


def used(tried: Path) -> list[tuple[int, int]]:
    """Return the ranges of addresses that were used, of the folder of regions that were tried; raises OSError."""
    regions = [tried / name for name in os.listdir(tried) if name.isdigit()]
    return [
        (int(read(region / "start")), int(read(region / "end")))
        for region in regions
        if read(region / "nr_accesses") != "0"
    ]


def _patiently(access: Callable[[], Answer]) -> Answer:
    """Access an attribute; while somebody else is at any of them, the kernel says that it is busy."""
    for _ in range(_TRIES):
        try:
            return access()
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        threading.Event().wait(_RETRY_SECONDS)
    return access()
