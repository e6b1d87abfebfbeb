"""What a mitigation does next, case by case."""

from dataclasses import replace

import pytest

from pondstack.domain.mitigation import Mitigation, MitigationMethod, MitigationState, MitigationTrigger, Work
from pondstack.domain.mitigation_step import Act, Copy, Limits, Seen, Server, Step, decide

S = MitigationState
HERE, THERE = Server("h1"), Server("h2")
BUSY = Server("h1", busy="powering-off")
LIMITS = Limits(retries=2)


def item(state: MitigationState, method: MitigationMethod = MitigationMethod.COPY, **work: object) -> Mitigation:
    """Return a mitigation of a guest on h1."""
    trigger = MitigationTrigger.OPERATOR
    return Mitigation("m", "vm", "h1", "p", method, state, trigger, False, 2048, 2048, work=Work(4096, **work))


def step(state: MitigationState, seen: Seen, method: MitigationMethod = MitigationMethod.COPY, **work: object) -> Step:
    """Return what is decided."""
    return decide(item(state, method, **work), seen, LIMITS)


CLAIMED = Seen(HERE, all_local=True)
CASES = [
    (S.CLAIMING, Seen(HERE), Act.CLAIM, S.MOVING),
    (S.CLAIMING, Seen(HERE, turn=False), Act.WAIT, S.CLAIMING),
    (S.CLAIMING, Seen(BUSY), Act.WAIT, S.CLAIMING),
    (S.CLAIMING, Seen(BUSY, seconds=301), Act.WAIT, S.UNDOING),
    (S.CLAIMING, Seen(HERE, holds=False), Act.WAIT, S.FAILED),
    (S.CLAIMING, Seen(THERE, holds=False, elsewhere=True), Act.WAIT, S.FAILED),
    (S.CLAIMING, replace(CLAIMED, holds=False), Act.WAIT, S.UNCLAIMING),
    (S.MOVING, CLAIMED, Act.COPY, S.MOVING),
    (S.MOVING, replace(CLAIMED, server=BUSY), Act.WAIT, S.MOVING),
    (S.MOVING, replace(CLAIMED, copy=Copy("moving", 7)), Act.WAIT, S.MOVING),
    (S.MOVING, replace(CLAIMED, copy=Copy("moving"), seconds=1801), Act.WAIT, S.UNDOING),
    (S.MOVING, replace(CLAIMED, copy=Copy("failed")), Act.COPY, S.MOVING),
    (S.MOVING, replace(CLAIMED, copy=Copy("mitigated", mine=False)), Act.COPY, S.MOVING),
    (S.MOVING, replace(CLAIMED, copy=Copy("mitigated")), Act.WAIT, S.REWRITING),
    (S.MOVING, Seen(HERE), Act.WAIT, S.CLAIMING),
    (S.REWRITING, CLAIMED, Act.REWRITE, S.RELEASING),
    (S.REWRITING, replace(CLAIMED, server=BUSY), Act.WAIT, S.REWRITING),
    (S.RELEASING, CLAIMED, Act.GIVE_BACK, S.RELEASING),
    (S.RELEASING, replace(CLAIMED, holds=False), Act.WAIT, S.UNCLAIMING),
    (S.RELEASING, Seen(HERE), Act.WAIT, S.CLAIMING),
    (S.UNCLAIMING, replace(CLAIMED, holds=False), Act.UNCLAIM, S.DONE),
    (S.UNCLAIMING, Seen(HERE, holds=False), Act.CLAIM, S.UNCLAIMING),
    (S.UNCLAIMING, CLAIMED, Act.WAIT, S.CLAIMING),
    (S.UNCLAIMING, replace(CLAIMED, holds=False, server=BUSY), Act.WAIT, S.UNCLAIMING),
    (S.UNDOING, replace(CLAIMED, copy=Copy("moving")), Act.STOP, S.UNDOING),
    (S.UNDOING, replace(CLAIMED, copy=Copy("mitigated")), Act.WAIT, S.REWRITING),
    (S.UNDOING, replace(CLAIMED, copy=Copy("aborted")), Act.UNDO_CLAIM, S.UNDOING),
    (S.UNDOING, Seen(HERE, copy=Copy("aborted")), Act.UNDO_CLAIM, S.UNDOING),
]


@pytest.mark.parametrize(("state", "seen", "act", "after"), CASES)
def test_by_copy(state: MitigationState, seen: Seen, act: Act, after: MitigationState) -> None:
    found = step(state, seen)
    assert (found.act, found.state) == (act, after)


@pytest.mark.parametrize("state", [state for state in S if state not in (S.DONE, S.FAILED, S.ABORTED)])
@pytest.mark.parametrize("method", MitigationMethod)
def test_a_server_that_is_gone_ends_it(state: MitigationState, method: MitigationMethod) -> None:
    assert step(state, Seen(None), method).state is S.FAILED


BY_MIGRATION = [
    (S.CLAIMING, Seen(HERE), 0, Act.WAIT, S.MOVING),
    (S.MOVING, Seen(HERE, seconds=9), 0, Act.WAIT, S.MOVING),
    (S.MOVING, Seen(HERE, seconds=11), 0, Act.MIGRATE, S.MOVING),
    (S.MOVING, Seen(HERE, seconds=59), 1, Act.WAIT, S.MOVING),
    (S.MOVING, Seen(HERE, seconds=61), 1, Act.MIGRATE, S.MOVING),
    (S.MOVING, Seen(HERE, seconds=1000), 3, Act.WAIT, S.UNDOING),
    (S.MOVING, Seen(BUSY, seconds=1000), 3, Act.WAIT, S.MOVING),
    (S.MOVING, Seen(Server("h1", running=False), seconds=11), 0, Act.WAIT, S.UNDOING),
    (S.MOVING, Seen(THERE, all_local=True), 1, Act.WAIT, S.RELEASING),
    (S.MOVING, Seen(THERE, holds=False, elsewhere=True), 1, Act.WAIT, S.CLAIMING),
    (S.RELEASING, Seen(THERE, all_local=True), 1, Act.WAIT, S.RELEASING),
    (S.RELEASING, Seen(THERE, all_local=True, holds=False), 1, Act.WAIT, S.UNCLAIMING),
    (S.UNDOING, Seen(HERE), 1, Act.WAIT, S.FAILED),
    (S.UNDOING, Seen(BUSY), 1, Act.WAIT, S.UNDOING),
]


@pytest.mark.parametrize(("state", "seen", "tries", "act", "after"), BY_MIGRATION)
def test_by_migration(state: MitigationState, seen: Seen, tries: int, act: Act, after: MitigationState) -> None:
    found = step(state, seen, MitigationMethod.MIGRATE, tries=tries)
    assert (found.act, found.state) == (act, after)


def test_the_split_is_marked_before_the_domain_is_rewritten_and_before_nova_is_asked() -> None:
    assert step(S.MOVING, replace(CLAIMED, copy=Copy("mitigated"))).correct
    assert step(S.CLAIMING, Seen(HERE), MitigationMethod.MIGRATE).correct
    assert step(S.UNDOING, Seen(HERE), MitigationMethod.MIGRATE).correct is False


def test_a_copy_that_must_be_done_once_more_is_not_given_up() -> None:
    failed = replace(CLAIMED, copy=Copy("failed"), seconds=5000.0)
    assert step(S.MOVING, failed, tries=9).state is S.UNDOING
    assert step(S.MOVING, failed, tries=9, corrected=True).act is Act.COPY


def test_what_was_aborted_ends_so_and_what_found_no_room_goes_on_by_migration() -> None:
    undone = Seen(HERE)
    assert step(S.UNDOING, undone, undone=True).state is S.FAILED
    assert step(S.UNDOING, undone, ending="aborted", undone=True).state is S.ABORTED
    assert step(S.UNDOING, replace(undone, holds=False), undone=True).state is S.UNCLAIMING
    after = step(S.UNDOING, undone, ending="migrate", undone=True)
    assert (after.state, after.method, after.ending) == (S.CLAIMING, MitigationMethod.MIGRATE, "")
