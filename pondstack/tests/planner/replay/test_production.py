"""The planner decides by production's functions: the same objects, compiled where it needs the speed."""

import numpy as np
import pytest

from pondstack.consolidation.decision import decider
from pondstack.controller.pool import buffer_sizer, inventory
from pondstack.domain import energy, free_buffer, sizing
from pondstack.domain.sizing import Features, PondSpecs, StaticShare
from pondstack.planner import cluster, dram
from pondstack.planner.energy import consolidation, simulation
from pondstack.planner.replay import policy
from pondstack.planner.sizing import sizes_of
from pondstack.prediction import flow, former


def test_sizes_are_production_s() -> None:
    """The static policy's, and those that the models' answers become slices by."""
    assert policy.static_mib.py_func is sizing.static_mib
    assert policy.untouched_mib.py_func is flow.untouched_mib is former.untouched_mib
    assert policy.kept_local_mib.py_func is flow.kept_local_mib
    assert policy.capped_mib.py_func is flow.capped_mib


def test_buffer_and_inventory_are_production_s() -> None:
    """What is kept back, and how the buffer is sized and bounded."""
    assert policy.kept_back.py_func is inventory.kept_back
    assert dram.needed is buffer_sizer.needed is free_buffer.needed
    assert cluster.bounded is buffer_sizer.bounded is free_buffer.bounded


def test_consolidation_is_production_s() -> None:
    """The plan, and what hosts take asleep and awake."""
    assert consolidation.decide is decider.decide
    assert simulation.PROFILES is energy.PROFILES


@pytest.mark.parametrize("memory_mib", [1, 1023, 1024, 1792, 6826, 6827, 7168, 57344, 114688])
def test_static_sizes_agree_with_the_service(make_history, settings, memory_mib) -> None:
    """Whatever the size, the compiled loop gives what the service's predictor gives."""
    features = Features("", memory_mib, 1, specs=PondSpecs(policy=sizing.Policy.AUTO))
    history = make_history([(0, 1, 1, memory_mib)])
    expected = StaticShare(settings.static_percent).predict(features, settings.slice_mib).pool_mib
    assert sizes_of("static", history, settings, 190.0).pool_mib.tolist() == [expected]


def test_all_policies_leave_local_memory(make_history, settings) -> None:
    """Even where all of it is untouched, and where a server is insensitive."""
    for untouched, insensitivity in ((1.0, 1.0), (0.5, 0.0)):
        columns = {"untouched": untouched, "insensitivity": insensitivity}
        history = make_history([(0, 1, 1, mib) for mib in (1, 1024, 1025, 4096)], **columns)
        for name in ("static", "pond", "oracle"):
            pool = sizes_of(name, history, settings, 190.0).pool_mib
            assert np.all(pool < history.memory_mib)
            assert np.all(pool % settings.slice_mib == 0)
