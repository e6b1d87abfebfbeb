"""What the benchmarks change of the process that runs them is undone: other tests of this process look at logs."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def logs_again() -> Iterator[None]:
    """Have logs written again after a benchmark that switched them off."""
    yield
    logging.disable(logging.NOTSET)
