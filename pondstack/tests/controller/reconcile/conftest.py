"""What the tests of rounds share."""

import pytest

from pondstack.tests.controller.lent_rack import LentRack


@pytest.fixture
def lent(placed, placement_http):
    """A rack that lends."""
    return LentRack(placed, placement_http)
