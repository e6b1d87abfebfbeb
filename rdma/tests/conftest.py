"""A belt for the machine that runs these tests: no file, a memfd included, can become large.

A memfd has no limit but the machine's memory, so that one wrong size in a test would end with the OOM killer.
"""

import resource
from collections.abc import Iterator

import pytest

_LARGEST_BYTES = 64 * 2**20


@pytest.fixture(autouse=True)
def small_files() -> Iterator[None]:
    """Limit the size of files, for child processes, too. Python ignores the signal, so that it is an OSError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    lowest = _LARGEST_BYTES if soft == resource.RLIM_INFINITY else min(soft, _LARGEST_BYTES)
    resource.setrlimit(resource.RLIMIT_FSIZE, (lowest, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
