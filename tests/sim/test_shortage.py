"""Two guests of two slices start while two slices are on their way back and three are free: one waits, none fails."""

from unittest import mock

from pondstack.controller.pool.shortages import Shortages
from tests.sim.plan import History, Step
from tests.sim.run import run

SHORTAGE = History(
    seed=1,
    controllers=("c1", "c2"),
    hosts=("h1", "h2"),
    pools={"pool0": 5},
    buffer_slices=1,
    drain=False,
    operations=(
        Step(6.0, "boot", "vm1", {"host": "h1", "pool": "pool0", "slices": 2}),
        Step(10.9, "delete", "vm1"),
        Step(11.1, "boot", "vm2", {"host": "h2", "pool": "pool0", "slices": 2}),
        Step(11.11, "boot", "vm3", {"host": "h2", "pool": "pool0", "slices": 2}),
    ),
    faults=(Step(2.0, "slow_host", "h1", {"seconds": 0.8}),),
)


def test_a_start_waits_for_slices_on_their_way_back() -> None:
    outcome = run(SHORTAGE)
    assert (outcome.code, outcome.acknowledged) == ("", 3)


def test_without_the_wait_it_failed() -> None:
    with mock.patch.object(Shortages, "judge", lambda _self, _operation, _request, shortage: shortage):
        outcome = run(SHORTAGE)
    assert (outcome.code, outcome.acknowledged) == ("", 2)
