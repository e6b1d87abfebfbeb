"""Histories that once went wrong, as short as they could be made; each names what was mended."""

import contextlib
from collections.abc import Iterator
from unittest import mock

import pytest

from pondstack.controller.reconcile.holders import Claims
from pondstack_agent.pool.operations import Operations
from tests.sim.mutants import MUTANTS
from tests.sim.plan import History, Step
from tests.sim.run import run

LATE_REPORT = History(
    seed=8,
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
history 168's as it was found; its turns are another seed's since attaches are written down once more.)
"""


def test_a_late_report_does_not_set_memory_aside() -> None:
    assert run(LATE_REPORT).code == ""


def test_without_the_mending_it_still_does() -> None:
    assert run(LATE_REPORT, broken=MUTANTS["old_report_proves"].broken).code == "acknowledged_lost"


def _returned_claim(silent_seconds: float) -> History:
    return History(
        seed=1,
        controllers=("c1", "c2"),
        hosts=("h1", "h2"),
        pools={"pool0": 4},
        buffer_slices=0,
        drain=True,
        operations=(
            Step(2.0, "boot", "vm1", {"host": "h1", "pool": "pool0", "slices": 2}),
            Step(10.0, "migrate", "vm1", {"host": "h2", "seconds": 1.0}),
        ),
        faults=(
            Step(9.9, "cut", "h1", {"seconds": silent_seconds}),
            Step(9.9, "cut", "h2", {"seconds": 15.0}),
        ),
    )


RETURNED_CLAIMS = {"releasing": 5.0, "quarantined": 9.0}
"""For how long the source is silent, by what becomes of its memory meanwhile.

A live migration fails: its target answers nothing, and neither does the source. The release of its memory began all the
same, for its claim is the migration's meanwhile; the guest would have lost it at its next end.
"""


@contextlib.contextmanager
def _unknown_migrations() -> Iterator[None]:
    """Have the claim of a migration count for nothing at its source, as it once did."""
    with mock.patch.object(Claims, "like", return_value=()):
        yield


@pytest.mark.parametrize("state", RETURNED_CLAIMS)
def test_a_guest_whose_migration_failed_keeps_its_memory(state: str) -> None:
    outcome = run(_returned_claim(RETURNED_CLAIMS[state]))
    assert not outcome.code, outcome.detail


@pytest.mark.parametrize("state", RETURNED_CLAIMS)
def test_without_the_claim_of_the_migration_it_would_lose_it(state: str) -> None:
    outcome = run(_returned_claim(RETURNED_CLAIMS[state]), broken=_unknown_migrations)
    assert outcome.code == "acknowledged_lost"
    assert "slice 0 is releasing" in outcome.detail


POWER_CUT_IN_A_MOVE = History(
    seed=6004,
    controllers=("c1", "c2", "c3"),
    hosts=("h1", "h2", "h3"),
    pools={"pool0": 4},
    buffer_slices=0,
    drain=False,
    operations=(
        Step(8.115, "boot", "vm4", {"host": "h1", "pool": "pool0", "slices": 1}),
        Step(9.232, "migrate", "vm4", {"host": "h3", "seconds": 1.2024542026964002}),
        Step(15.402, "migrate", "vm4", {"host": "h2", "seconds": 3.5883578429725844}),
        Step(16.672, "boot", "vm3", {"host": "h2", "pool": "pool0", "slices": 2}),
    ),
    faults=(
        Step(10.237, "cut", "h1", {"seconds": 0.5}),
        Step(13.987, "host_death", "h3", {"seconds": 5.0}),
        Step(14.310, "pause", "leader", {"moment": "device.after", "seconds": 2.0}),
        Step(16.148, "lose", "", {"seconds": 2.089046942797668, "share": 0.2}),
    ),
)
"""The source of a live migration lost power and had it back before the migration failed.

Here it was the simulated Nova that was wrong: it took the guest for running, on memory that had been given back.
"""


def test_a_power_cut_in_a_move_leaves_the_guest_off() -> None:
    assert run(POWER_CUT_IN_A_MOVE).code == ""


LATE_OFFLINE = History(
    seed=86,
    controllers=("c1", "c2"),
    hosts=("h1", "h2"),
    pools={"pool0": 4},
    buffer_slices=0,
    drain=False,
    operations=(
        Step(1.089, "boot", "vm2", {"host": "h2", "pool": "pool0", "slices": 2}),
        Step(2.544, "boot", "vm3", {"host": "h2", "pool": "pool0", "slices": 2}),
        Step(2.708, "boot", "vm4", {"host": "h2", "pool": "pool0", "slices": 1}),
    ),
    faults=(
        Step(0.924, "delay", "h2", {"seconds": 7.8495, "share": 0.5}),
        Step(3.198, "clock_jump", "database", {"seconds": 40.0}),
        Step(3.306, "duplicate", "h1", {"seconds": 5.571887736413371, "share": 0.5}),
        Step(4.295, "lose", "c2", {"seconds": 2.2379, "share": 0.9}),
    ),
)
"""An attach looked abandoned (the clock jumped) while its answers were late; its host was told to let go of it.

That command, too, came late: after the host had brought the memory online, had that acknowledged and told Nova so.
(Operations and faults are history 26377's, shortened; the turns are another seed's, and the moments of the faults with
them, since attaches are written down once more and the rounds begin in a thread of their own.)
"""


@contextlib.contextmanager
def _offline_whenever() -> Iterator[None]:
    with mock.patch.object(Operations, "online_at", return_value=0):
        yield


def test_a_late_offline_spares_what_came_online_since() -> None:
    assert run(LATE_OFFLINE).code == ""


def test_without_the_report_that_it_rests_on_it_would_not() -> None:
    assert run(LATE_OFFLINE, broken=_offline_whenever).code == "attachment_lost"
