"""The epoch's high-water mark."""

import pytest

from pondstack.domain.errors import BadRequest, DeviceFailed, StaleEpoch, Unavailable
from pondstack_agent.epoch import MAX_EPOCH, MAX_JUMP, EpochGuard
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


@pytest.mark.parametrize("epoch", [float("inf"), float("nan"), 2.0, "9", True, None, -1, MAX_EPOCH + 1, 10**400])
def test_only_an_integer_of_the_ledgers_size_is_an_epoch(tmp_path, epoch) -> None:
    guard = EpochGuard(Records(tmp_path))
    for let_in in (guard.check, guard.confirm):
        with pytest.raises(BadRequest, match="no epoch"):
            let_in(epoch)
    assert EpochGuard(Records(tmp_path)).seen == 0


def test_a_command_does_not_lock_the_controller_out(tmp_path, caplog) -> None:
    guard = EpochGuard(Records(tmp_path))
    guard.check(7)
    for _ in range(2):
        with pytest.raises(Unavailable, match="heartbeat"):
            guard.check(10**18)
    assert caplog.text.count("Refused a command of epoch 1000000000000000000") == 1
    guard.check(8)
    assert EpochGuard(Records(tmp_path)).seen == 8


def test_a_jump_of_the_bound_is_believed_at_once(tmp_path) -> None:
    guard = EpochGuard(Records(tmp_path))
    guard.check(MAX_JUMP)
    with pytest.raises(Unavailable):
        guard.check(2 * MAX_JUMP + 1)
    guard.check(2 * MAX_JUMP)


def test_the_answer_to_a_heartbeat_confirms_any_epoch_but_an_older_one(tmp_path) -> None:
    guard = EpochGuard(Records(tmp_path))
    guard.confirm(5_000_000)
    guard.check(5_000_001)
    with pytest.raises(StaleEpoch):
        guard.confirm(5_000_000)
    assert EpochGuard(Records(tmp_path)).seen == 5_000_001


def test_a_record_that_is_no_epoch_is_named_with_the_way_out(tmp_path) -> None:
    (tmp_path / "epoch.json").write_text('{"seen": Infinity}')
    with pytest.raises(DeviceFailed, match=r"epoch\.json is damaged .*remove the file") as raised:
        EpochGuard(Records(tmp_path))
    assert "heartbeat" in raised.value.message
    (tmp_path / "epoch.json").unlink()
    assert EpochGuard(Records(tmp_path)).seen == 0
