"""Root of all tests: no eventlet anywhere, oslo.service's threading backend first, then the shipped fixtures."""

import gc
import logging
import os
import sys
from collections.abc import Generator
from importlib.abc import MetaPathFinder
from typing import Any

import pytest


class NoEventlet(MetaPathFinder):
    """Refuses eventlet, as native-thread Nova does; futurist would import it just because it is there."""

    def find_spec(self, fullname: str, _path: Any, _target: Any = None) -> None:
        """Raise ImportError for eventlet; leave all else to the finders behind."""
        if fullname.partition(".")[0] == "eventlet":
            raise ImportError("pondstack and its tests run without eventlet")


# Nova's own tests patch or poison at their first import, by this variable; both must be settled before.
os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"
sys.meta_path.insert(0, NoEventlet())

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)

# oslo.messaging reads /proc of its process group's leader, which has ended where a shell began the run and went on.
if not os.path.exists(f"/proc/{os.getpgrp()}"):
    os.setpgrp()

pytest_plugins = [
    "tests.fixtures.checked_schemas",
    "tests.fixtures.servers",
    "tests.fixtures.tiers",
    "tests.fixtures.marks",
    "tests.fixtures.workers",
    "tests.fixtures.stalls",
    "tests.fixtures.outcomes",
]


def pytest_itemcollected(item: Any) -> None:
    """Keep colons out of test names but gabbi's: it takes every test with one for its own (and dies of it)."""
    if item.path.name != "test_gabbi.py":
        item.name = item.name.replace(":", ".")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage meanwhile, a third of the time that it takes, and later only in what was made since."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Let the summary be the last word: clients whose broker is gone would log after it."""
    logging.disable(logging.CRITICAL)
