"""Fixtures of the tests of frames and of attacks on them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .raw import Raw


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Raw]:
    """A client that writes what it likes."""
    made = Raw(tmp_path)
    yield made
    made.close()
