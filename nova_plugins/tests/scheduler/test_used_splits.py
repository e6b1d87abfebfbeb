"""What instances were placed with reaches the controller, also one that is away at first; nobody waits for it."""

import threading
from collections.abc import Iterator, Sequence

import oslo_messaging
import pytest

from pondstack.domain import errors
from pondstack.domain.sizing import Features, Split
from pondstack.rpc.wire import UsedSplit
from pondstack_nova.filter import PondFilter
from pondstack_nova.scheduler import used_splits
from pondstack_nova.scheduler.used_splits import Decision, UsedSplits

SPLIT = Split(3072, 1024, "static", 1.0, "15 %")
UUIDS = ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002")
LATE = Split(4096, 0, "timeout", 1.0, "all local")


class Controller:
    """Keeps what it is told; raises what is in `faults` first. `told` is set by each call that it took."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.batches: list[list[UsedSplit]] = []
        self.told = threading.Event()

    def tell(self, splits: Sequence[UsedSplit]) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.batches.append(list(splits))
        self.told.set()


class Quiet(UsedSplits):
    """Has no thread: the test tells."""

    def _run(self) -> None:
        """End at once."""


def decision(split: Split = SPLIT) -> Decision:
    return Decision(Features("first", 4096, 2), split)


def quiet(controller: Controller, moments: Iterator[float]) -> UsedSplits:
    return Quiet(controller.tell, retry_seconds=lambda: 0.0, clock=lambda: next(moments))


def test_each_instance_is_told_by_its_own_uuid() -> None:
    controller = Controller()
    used = quiet(controller, iter([1.0, 2.0, 5.0]))
    used.note("first", decision())
    used.note("second", decision())
    assert used.tell()
    [batch] = controller.batches
    assert [(item.features["instance_uuid"], item.pool_mib, item.age_seconds) for item in batch] == [
        ("first", 1024, 4.0),
        ("second", 1024, 3.0),
    ]


def test_what_was_not_told_is_told_later_with_its_age_and_the_newest_only() -> None:
    controller = Controller(errors.NotLeader("nobody leads"))
    used = quiet(controller, iter([0.0, 1.0, 7.0, 9.0]))
    used.note("first", decision())
    assert not used.tell()
    used.note("first", decision(LATE))
    assert used.tell()
    [[item]] = controller.batches
    assert (item.source, item.age_seconds) == ("timeout", 2.0)
    assert used.tell()
    assert len(controller.batches) == 1


def test_what_is_noted_while_the_controller_is_asked_is_newer() -> None:
    """What comes back untold is older than that."""
    controller, moments = Controller(errors.NotLeader("nobody leads")), iter([0.0, 1.0, 2.0, 9.0])

    def tell(splits: Sequence[UsedSplit]) -> None:
        if controller.faults:
            used.note("first", decision(LATE))
        controller.tell(splits)

    used = Quiet(tell, retry_seconds=lambda: 0.0, clock=lambda: next(moments))
    used.note("first", decision())
    assert not used.tell()
    assert used.tell()
    [[item]] = controller.batches
    assert (item.source, item.age_seconds) == ("timeout", 7.0)


def test_what_the_controller_does_not_take_is_told_once(caplog) -> None:
    controller = Controller(errors.BadRequest("no"))
    used = quiet(controller, iter([0.0, 1.0, 2.0]))
    used.note("first", decision())
    assert used.tell()
    assert "does not record 1 splits" in caplog.text
    assert used.tell()
    assert controller.batches == []


@pytest.mark.parametrize(
    "refusal", [oslo_messaging.RemoteError("UnsupportedVersion", "1.8"), oslo_messaging.UnsupportedVersion("1.8")]
)
def test_a_controller_of_the_former_release_is_told_once_it_is_upgraded(refusal: Exception) -> None:
    """Over a bus its refusal comes by name only."""
    controller = Controller(refusal)
    used = quiet(controller, iter([0.0, 1.0, 2.0]))
    used.note("first", decision())
    assert not used.tell()
    assert used.tell()
    [[item]] = controller.batches
    assert item.features["instance_uuid"] == "first"


def test_many_go_in_batches_and_the_oldest_are_lost(monkeypatch) -> None:
    monkeypatch.setattr(used_splits, "BATCH", 2)
    monkeypatch.setattr(used_splits, "KEPT", 3)
    controller = Controller()
    used = quiet(controller, iter(map(float, range(20))))
    for number in range(5):
        used.note(f"i{number}", decision())
    assert used.tell()
    assert [[item.features["instance_uuid"] for item in batch] for batch in controller.batches] == [
        ["i2", "i3"],
        ["i4"],
    ]


def test_the_thread_tells_and_tries_again() -> None:
    controller = Controller(errors.Unavailable("no"), RuntimeError("the bus"))
    used = UsedSplits(controller.tell, retry_seconds=lambda: 0.01)
    try:
        used.note("first", decision())
        assert controller.told.wait(10)
    finally:
        used.stop()


def test_the_filter_notes_each_instance_of_a_request(make_spec) -> None:
    """All local, too: that is what is remembered of it."""
    controller = Controller()
    used_splits.reset(quiet(controller, iter(map(float, range(20)))))
    try:
        spec = make_spec(pond__policy="auto")
        used_splits.put_on(spec, decision(LATE))
        for uuid in UUIDS:
            spec.instance_uuid = uuid
            PondFilter().filter_all([], spec)
        plain = make_spec()
        PondFilter().filter_all([], plain)
        used_splits.used_splits().tell()
    finally:
        used_splits.reset()
    [batch] = controller.batches
    assert tuple(item.features["instance_uuid"] for item in batch) == UUIDS
