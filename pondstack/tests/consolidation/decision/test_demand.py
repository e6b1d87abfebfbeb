"""What a server needs: Zombieland's 30 % of its working set, where a pager can have the rest elsewhere."""

import pytest

from pondstack.consolidation.decision.demand import demand_of
from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import Reading

from .builders import server

SET = Reading(1000.0, 60.0)


@pytest.mark.parametrize(
    ("changes", "mib", "whole"),
    [
        ({}, 4096, False),
        ({"working_set_mib": SET}, 4096, False),
        ({"working_set_mib": SET, "extendable": True}, 300, False),
        ({"working_set_mib": Reading(1001.0, 0.0), "extendable": True}, 301, False),
        ({"working_set_mib": Reading(20_000.0, 0.0), "extendable": True}, 4096, False),
        ({"working_set_mib": Reading(1000.0, 7200.1), "extendable": True}, 4096, True),
        ({"extendable": True}, 4096, True),
    ],
)
def test_the_local_memory_that_has_to_fit(changes, mib, whole):
    found = demand_of(server("one", "a", mib=4096, **changes), Settings(working_set_seconds=7200.0))
    assert (found.mib, found.whole) == (mib, whole)


def test_cpus_are_those_that_it_uses():
    assert demand_of(server("one", "a", cpus=1.5), Settings()).cpus == 1.5
