"""A copy of an assign waited in the queue of a leader that was cut off from the bus; the device failed as it arrived.

The next leader could not let the host in again, and took back what a guest was running on by then.
"""

from collections.abc import Collection
from typing import Any
from unittest import mock

from pondstack.ledger.slices import Slices
from tests.sim.plan import History, Step
from tests.sim.run import run

LATE_ASSIGN = History(
    seed=0,
    controllers=("c1", "c2", "c3"),
    hosts=("h1", "h2", "h3"),
    pools={"pool0": 6, "pool1": 5},
    buffer_slices=1,
    drain=False,
    operations=(
        Step(2.858, "boot", "vm1", {"host": "h3", "pool": "pool0", "slices": 2}),
        Step(6.587, "restart", "leader", {"seconds": 1.166}),
    ),
    faults=(
        Step(1.387, "cut_broker", "leader", {"seconds": 2.0}),
        Step(6.610, "device_failure", "pool0", {"seconds": 1.18}),
    ),
)


def test_a_late_assign_takes_nothing_from_a_running_guest() -> None:
    assert run(LATE_ASSIGN).code == ""


def test_without_the_mending_it_still_does() -> None:
    plain = Slices.release

    def release(self: Slices, *arguments: str, unacknowledged: bool, not_zero: Collection[int], **more: Any) -> Any:
        del unacknowledged
        return plain(self, *arguments, not_zero=not_zero, **more)

    with mock.patch.object(Slices, "release", release):
        assert run(LATE_ASSIGN).code == "running_memory_freed"
