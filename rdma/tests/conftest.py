"""Fixtures of the contract tests; and a belt for the machine: no file, a memfd included, can become large.

A memfd has no limit but the machine's memory, so that one wrong size in a test would end with the OOM killer.
"""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from pondstack_rdma.base import Transport

from .harness import HARNESSES, SIZE, LenderProcess, Rig, connect

_LARGEST_BYTES = 64 * 2**20


@pytest.fixture(autouse=True)
def small_files() -> Iterator[None]:
    """Limit the size of files, for child processes, too. Python ignores the signal, so that it is an OSError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    lowest = _LARGEST_BYTES if soft == resource.RLIM_INFINITY else min(soft, _LARGEST_BYTES)
    resource.setrlimit(resource.RLIMIT_FSIZE, (lowest, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(params=HARNESSES, ids=lambda factory: factory.__name__)
def transport(request: pytest.FixtureRequest, tmp_path: Path) -> Transport:
    made: Transport = request.param(tmp_path)
    return made


@pytest.fixture
def rig(transport: Transport) -> Iterator[Rig]:
    with transport.lend("lender1") as lender:
        region = lender.register(SIZE)
        key = lender.export(region, "host1")
        made = Rig(transport, lender, region, key, connect(transport, lender.admit("host1")))
        yield made
        made.link.close()


@pytest.fixture
def process(transport: Transport, tmp_path: Path) -> Iterator[LenderProcess]:
    """A lender in a process of its own."""
    made = LenderProcess(transport.characteristics.driver, tmp_path)
    yield made
    made.close()
