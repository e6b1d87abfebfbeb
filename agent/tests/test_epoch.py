"""The epoch's high-water mark."""

import pytest

from pondstack.domain.errors import StaleEpoch
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.records import Records


def test_only_upwards_and_over_restarts(tmp_path) -> None:
    guard = EpochGuard(Records(tmp_path))
    assert guard.seen == 0
    for epoch in (3, 3, 5):
        guard.check(epoch)
    for seen in (guard, EpochGuard(Records(tmp_path))):
        assert seen.seen == 5
        with pytest.raises(StaleEpoch, match="epoch 5 and refuses epoch 4"):
            seen.check(4)
