"""A target by CPU time on any machine, and by the clock on one that has a CPU to spare."""

import threading

import pytest

from bench.own_cost import Load, Spent, judge, spent

IDLE, BUSY = Load(0.5, 2), Load(40.0, 2)


@pytest.mark.parametrize(
    ("cost", "load", "held"),
    [
        (Spent(1.0, 0.9), IDLE, True),
        (Spent(9.0, 0.9), IDLE, False),  # it waits for something
        (Spent(9.0, 0.9), BUSY, True),
        (Spent(9.0, 2.5), BUSY, False),
        (Spent(2.6, 2.5), IDLE, False),
    ],
)
def test_what_is_judged(cost: Spent, load: Load, held: bool) -> None:
    text, found = judge("a decision", [cost] * 10, 2.0, load)
    assert found is held
    assert ("not judged, load 40.0 on 2 CPUs" in text) is load.busy


def test_a_call_that_waits_costs_no_cpu_time() -> None:
    waited = spent(lambda: threading.Event().wait(0.05))
    assert waited.clock_ms >= 50
    assert waited.cpu_ms < waited.clock_ms / 2
