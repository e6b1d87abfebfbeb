"""What tests of block devices share. They need root, which opens what a keeper holds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .. import builds
from ..processes import BlockPlane


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data plane, with sanitizers and points to die at."""
    return builds.programs(tmp_path_factory)[0]


@pytest.fixture
def plane(program: Path, tmp_path: Path) -> Iterator[BlockPlane]:
    """One that runs; what it leaves running ends with the test."""
    made = BlockPlane(program, tmp_path / "plane")
    made.start()
    made.await_ready()
    yield made
    made.close()
