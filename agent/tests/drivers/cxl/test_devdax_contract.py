"""The contract of agent/tests/drivers/test_contract.py with guests that map their slices ([cxl] backing = devdax)."""

from pathlib import Path

import pytest

from agent.tests.drivers.cxl.hosts import Rack
from agent.tests.drivers.test_contract import *  # noqa: F403 - the contract's tests, all of them
from agent.tests.drivers.test_contract import SLICES, Harness


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """The contract's harness, over two hosts of a device."""
    return Rack(tmp_path, monkeypatch, SLICES).harness()
