"""How functions are compiled: kept on disk in the user's cache, under a digest of all sources that they are made of.

Numba itself looks at the file of the function alone, and would go on with what was compiled of the functions that it
calls, such as those of pondstack.domain, after these have changed.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import config, njit

from pondstack.domain import host_choice, share

SOURCES = (Path(host_choice.__file__), Path(share.__file__), *sorted(Path(__file__).parent.glob("*.py")))


def digest() -> str:
    """Return what tells these sources, and this Numba, from all others."""
    found = hashlib.sha256(numba.__version__.encode())
    for path in SOURCES:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def _folder() -> str | None:
    """Return a folder of the user's own; None where there is none that can be written to."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base / "pondstack" / "planner" / digest()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, RuntimeError):
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


FOLDER = _folder()
NUMBA: Any = config


def jit(function: Callable[..., Any]) -> Any:
    """Return a function, compiled when it is first called; without a folder it is compiled in each process."""
    if FOLDER is None:
        return njit(nogil=True)(function)
    before, NUMBA.CACHE_DIR = NUMBA.CACHE_DIR, FOLDER
    try:
        return njit(nogil=True, cache=True)(function)
    finally:
        NUMBA.CACHE_DIR = before
