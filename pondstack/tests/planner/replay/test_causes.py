"""Why a policy saves what it saves, on histories that are reckoned by hand."""

import numpy as np
import pytest

from pondstack.planner.answers import causes
from pondstack.planner.answers.parts import Grid
from pondstack.planner.cell import Task, base_of, cell_of
from pondstack.planner.dram import placed_share
from pondstack.planner.settings import EVEN, NO_BUFFER, SMALL_SLICES, Settings
from pondstack.planner.sizing import sizes_of
from pondstack.planner.variants import settings_of as settings_of_variant
from pondstack.planner.variants import sizes_of as sizes_of_variant

GIB = 1024


def test_even_shares_leave_the_pool_share_as_it_is(make_history, settings) -> None:
    """Of four servers of 8 GiB two get 4 GiB and two none: evenly, each gets 2. Servers of another size keep theirs."""
    history = make_history([(0, 10, 1, 8 * GIB)] * 4 + [(0, 10, 1, 4 * GIB)], last=10)
    history.untouched[:] = (0.5, 0.5, 0.0, 0.0, 0.5)
    history.insensitivity[:] = 0.99
    found = sizes_of("oracle", history, settings, 182.0)
    even = sizes_of_variant(EVEN, history, found, settings.slice_mib)
    assert found.pool_mib.tolist() == [4 * GIB, 4 * GIB, 0, 0, 2 * GIB]
    assert even.pool_mib.tolist() == 5 * [2 * GIB]
    assert placed_share(history, even.pool_mib) == placed_share(history, found.pool_mib)


def test_each_variant_changes_one_thing() -> None:
    """Slices, or the buffer; all others are as they were."""
    usual = Settings()
    assert settings_of_variant("", usual) == settings_of_variant(EVEN, usual) == usual
    assert settings_of_variant(SMALL_SLICES, usual) == Settings(slice_mib=128)
    assert settings_of_variant(NO_BUFFER, usual) == Settings(buffer_least_slices=0, buffer_most_percent=0)


def test_uneven_shares_of_one_size_cost_dram(make_history, settings) -> None:
    """One server fills each of two sockets and one of them has pool memory: uniform DRAM has to fit the other.

    8 GiB each: without a pool 8 per socket; with 4 GiB of one on it, 8 local and 2 per socket of pool, which saves
    nothing; with 2 of each, 6 local and 2.
    """
    history = make_history([(0, 10, 1, 8 * GIB)] * 2, last=10, sockets=2)
    history.untouched[:], history.insensitivity[:] = (0.5, 0.0), 0.99
    base = base_of(history, settings)
    assert base.mib_per_socket == 8 * GIB
    needs = {
        variant: cell_of(base, Task(1, "oracle", "emc", 2, 1.0, variant), settings).mib_per_socket
        for variant in ("", EVEN)
    }
    assert needs[""] > needs[EVEN] == 8 * GIB


def test_shares_by_size(make_history, settings) -> None:
    """1.75 GiB with 15 % of it: no slice; 8 GiB: one, which is 12.5 %."""
    history = make_history([(0, 10, 1, 1792)] * 3 + [(0, 10, 1, 8 * GIB)], last=10, sockets=2)
    settings = Settings(seeds=(1,), policies=("static", "pond"), pool_sockets=(2,))
    small, large = causes.size_classes(Grid(settings, 2), [history], settings)[:2]
    assert (small.policy, small.up_to_gib, large.up_to_gib) == ("static", 2.0, 8.0)
    assert (small.servers_percent, large.servers_percent) == (75.0, 25.0)
    assert small.memory_percent == pytest.approx(100 * 3 * 1792 / (3 * 1792 + 8 * GIB))
    assert (small.wanted_percent, small.pooled_percent) == (0.0, 0.0)
    assert (large.wanted_percent, large.pooled_percent) == (12.5, 100.0)


def test_causes_are_looked_for_of_pond_alone() -> None:
    """At 16 sockets where there are so many, else at the most; a gain is against the same seed."""
    asked = Grid(Settings(), 64).asked
    assert asked == (("pond", "emc", 16),)
    assert Grid(Settings(), 9).asked == (("pond", "emc", 8),)
    assert not Grid(Settings(policies=("static",)), 64).otherwise
    assert np.unique([task.variant for task in Grid(Settings(), 64).otherwise]).tolist() == sorted(
        (EVEN, NO_BUFFER, SMALL_SLICES)
    )
