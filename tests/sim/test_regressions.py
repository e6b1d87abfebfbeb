"""Histories that once went wrong, as short as they could be made; each names what was mended."""

from tests.sim.mutants import MUTANTS
from tests.sim.plan import History, Step
from tests.sim.run import run

LATE_REPORT = History(
    seed=33,
    controllers=("c1", "c2"),
    hosts=("h1", "h2"),
    pools={"pool0": 5},
    buffer_slices=0,
    drain=False,
    operations=(
        Step(2.651, "boot", "vm3", {"host": "h1", "pool": "pool0", "slices": 1}),
        Step(8.627, "boot", "vm1", {"host": "h1", "pool": "pool0", "slices": 1}),
        Step(11.823, "boot", "vm2", {"host": "h2", "pool": "pool0", "slices": 2}),
    ),
    faults=(
        Step(5.765, "delay", "", {"seconds": 5.426571025459708, "share": 0.2}),
        Step(12.540, "lose", "", {"seconds": 7.8579681946308355, "share": 0.9}),
    ),
)
"""A heartbeat from before an attach came seconds after it, and the report that was asked for to confirm it was lost.

The reconciler took the old report for the fresh one and set a running guest's memory aside. (Operations and faults are
history 168's as it was found; its turns are another seed's since controllers call themselves through the bus.)
"""


def test_a_late_report_does_not_set_memory_aside() -> None:
    assert run(LATE_REPORT).code == ""


def test_without_the_mending_it_still_does() -> None:
    assert run(LATE_REPORT, broken=MUTANTS["old_report_proves"].broken).code == "acknowledged_lost"
