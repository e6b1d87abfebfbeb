"""Histories of lent memory, and broken variants that they catch."""

import functools

import pytest

from tests.sim.histories import assert_caught, run_all
from tests.sim.lending import offers
from tests.sim.lending.mutants import MUTANTS
from tests.sim.lending.plan import KINDS, draw
from tests.sim.lending.shortage import SHORTAGE
from tests.sim.run import run

HISTORIES = 24
CHUNK = 12
WITHIN = 150
"""Histories in which each variant must be caught."""


@pytest.mark.parametrize("first", range(0, HISTORIES, CHUNK))
def test_no_history_violates_anything(first: int) -> None:
    faults, acknowledged = run_all(draw, range(first, first + CHUNK))
    assert acknowledged > CHUNK
    assert len(faults) > len(KINDS) / 2
    assert faults["zombie slept"]
    assert faults["zombie served"]
    assert faults["data plane crashed"]
    assert faults["keys ended in part"]
    assert faults["best effort gave way"]
    assert faults["borrower moved"]
    assert faults["page handed over"]


def test_active_hosts_and_best_effort_loans_meet_one_shortage_together() -> None:
    faults, _ = run_all(functools.partial(draw, only=(SHORTAGE,)), range(HISTORIES))
    assert faults["shortage met by both"] > HISTORIES / 4


@pytest.mark.parametrize("seed", [3371, 3563])
def test_what_was_taken_back_before_it_was_acknowledged_is_not_used(seed: int) -> None:
    """Both were violations while an acknowledgement named the allocation only."""
    assert not run(draw(seed)).code


LATE_LENDS = (901954, 904699, 20262026)
"""An agent was paused when it was told to lend, and did so after the operator had given up and looked at its host.

Here it was the simulated operator that was wrong: "no answer" does not mean that nothing will be lent.
"""


@pytest.mark.parametrize("seed", LATE_LENDS)
def test_a_lend_that_was_not_answered_is_taken_back_too(seed: int) -> None:
    outcome = run(draw(seed))
    assert not outcome.code, outcome.detail


SHORT_RETURN = 770256
"""A claim came back for a moment between two looks at Placement. Here it was the check that wanted too much."""

UNSEEN_RETURN = 71006169
"""A claim came back and went again while the database was down and a leader that was to follow not yet elected."""


@pytest.mark.parametrize("seed", [SHORT_RETURN, UNSEEN_RETURN])
def test_a_claim_that_was_back_between_two_looks_only_is_not_seen(seed: int) -> None:
    outcome = run(draw(seed))
    assert not outcome.code, outcome.detail


ASLEEP_FOR_GOOD = 28000080
"""Its operator woke a host once, during a reclaim, was refused and gave up."""

BACK_TOO_LATE = 28003845
"""A paused borrower still had what was asked back from it when its claim came back: the check judged it once more."""

AWAKE_BEFORE_ITS_FIRST_USE = 98000150
"""A lender that had slept woke before a host, whose messages were late, first used what it had had there before."""


@pytest.mark.parametrize("seed", [ASLEEP_FOR_GOOD, BACK_TOO_LATE, AWAKE_BEFORE_ITS_FIRST_USE])
def test_nobody_is_blamed_for_what_was_right_when_it_was_done(seed: int) -> None:
    outcome = run(draw(seed))
    assert not outcome.code, outcome.detail


AWAKE_IN_A_MOVE = 130000191
"""A lender woke while a guest moved, and was told to end the destination's key: the source's lived on for good."""

TWO_ATTEMPTS = 130000708
"""Of two attempts of a move's borrowing the late one got no keys, and took from the other what it was to inherit."""

LATE_CALL = 130005998
"""A call from before memory was shared with a destination came late, and ended the destination's key."""

PROMISE_TAKEN_FOR_ENDED = 130002859
"""A host gave back what its lender, awake for a moment, kept a key of: the controller took it for anybody's."""

HEIRS_FOR_GOOD = (130009432, 130011034)
"""A destination lost its state in a move that failed; one never heard that it was to have memory."""

ANOTHERS_REASON = 130002800
"""A destination was asked for memory that its lender wanted back: nobody had claimed the source's."""


TWO_KEYS = (130016220, 151000877)
"""Of a guest that had moved, or had not after all, two hosts had keys: the last to let go was given the buffer next."""


LOST_ITS_INHERITANCE = 152003600
"""A destination lost its state after it had acknowledged what it was to inherit of a lender that slept."""


MOVED_WHILE_READ = 154000371
"""A move began after the claims on lent memory had been read, and before those of the host where it began."""


@pytest.mark.parametrize(
    "seed",
    [
        AWAKE_IN_A_MOVE,
        TWO_ATTEMPTS,
        LATE_CALL,
        PROMISE_TAKEN_FOR_ENDED,
        *HEIRS_FOR_GOOD,
        ANOTHERS_REASON,
        *TWO_KEYS,
        LOST_ITS_INHERITANCE,
        MOVED_WHILE_READ,
    ],
)
def test_a_guest_that_moves_keeps_its_keys(seed: int) -> None:
    outcome = run(draw(seed))
    assert not outcome.code, outcome.detail


COME_MEANWHILE = 130012128
"""A buffer that was coming back came between the look at what a loan lacked and the order to swap disks."""


LENT_MEANWHILE = 150000037
"""A host lent what it was asked for between the same two moments: it counted as free, and as on its way."""


ASKED_TWICE = 150002999
"""The same host was asked by two attempts at a time: the second one's refusal counted as no memory at all."""

LENDS_NO_MORE = 150004578
"""A host's answer was lost, and it was asked for more than it had: that counted as on its way for a minute."""


NEW_LEADER = 152002871
"""A host was at what a former leader had asked it for, which the new one took for nothing."""


@pytest.mark.parametrize("seed", [COME_MEANWHILE, LENT_MEANWHILE, ASKED_TWICE, LENDS_NO_MORE, NEW_LEADER])
def test_what_a_loan_lacks_is_asked_for_once(seed: int) -> None:
    outcome = run(draw(seed))
    assert not outcome.code, outcome.detail


AWAKE_FOR_A_MOMENT = 98000264
"""A lender woke, ended its keys, of which a leader that was none any more did not note it, and was to sleep again."""


GIVEN_BACK_BEFORE = 211006819
"""The same of a buffer that its borrower had given back to the sleeping lender: its key was told to it again."""


@pytest.mark.parametrize("seed", [AWAKE_FOR_A_MOMENT, GIVEN_BACK_BEFORE])
def test_keys_of_a_lender_that_was_awake_for_a_moment_are_not_told(seed: int) -> None:
    outcome = run(draw(seed))
    assert not outcome.code, outcome.detail


BORROWS_AS_BEFORE = 220008959
"""An agent that was started again drew the id of its first loan once more, and was answered with that one."""


def test_an_agent_that_starts_again_asks_for_something_new() -> None:
    """Here it was the simulated tenant that was wrong."""
    outcome = run(draw(BORROWS_AS_BEFORE))
    assert not outcome.code, outcome.detail


VARIANTS = MUTANTS | offers.MUTANTS


@pytest.mark.parametrize("name", VARIANTS)
def test_a_broken_variant_is_caught(name: str) -> None:
    assert_caught(VARIANTS[name], draw, WITHIN)


def test_some_histories_tell_placement_of_lent_memory() -> None:
    told = [steps for seed in range(HISTORIES) if (steps := draw(seed).offers) is not None]
    assert HISTORIES / 6 < len(told) < HISTORIES / 2
    assert {step.kind for steps in told for step in steps} == {"placement_down", "audit", "failover"}


def test_the_same_seed_takes_the_same_turns() -> None:
    first, second = (run(draw(7), tracing=True).trace for _ in range(2))
    assert first == second
    assert len(first) > 20
