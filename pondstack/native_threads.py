"""Native threads for a process of ours, whatever else is installed: called before anything of oslo is imported.

futurist and oslo import eventlet just because it is there, and its DNS library with it: a fourth of an agent's start.
"""

import sys
from importlib.abc import MetaPathFinder
from typing import Any


class NoEventlet(MetaPathFinder):
    """Has no eventlet; leaves all else to the finders behind."""

    def find_spec(self, fullname: str, _path: Any, _target: Any = None) -> None:
        """Raise ModuleNotFoundError for eventlet."""
        if fullname.partition(".")[0] == "eventlet":
            raise ModuleNotFoundError("No module named 'eventlet' (pondstack runs without it)", name=fullname)


def use() -> None:
    """Have oslo.service run by native threads, and import eventlet nowhere in this process."""
    if not any(isinstance(finder, NoEventlet) for finder in sys.meta_path):
        sys.meta_path.insert(0, NoEventlet())
    from oslo_service import backend

    backend.init_backend(backend.BackendType.THREADING)
    from pondstack import idle_threads

    idle_threads.let_sleep()
