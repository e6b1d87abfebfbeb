"""Hosts' sleeps in the ledger: one at a time per host, each step once and journaled, none that another overtook."""

from uuid import uuid4

import pytest

from pondstack.domain.errors import Conflict, HostUnusable, IllegalTransition, NotFound, OperationMismatch
from pondstack.domain.host_sleep import SleepState, Work
from pondstack.domain.host_sleep_step import Act, Step
from pondstack.domain.lending import LenderKind
from pondstack.ledger.mitigations import Overtaken

S = SleepState
FORWARD = (S.LENDING, S.SUSPENDING, S.ASLEEP, S.WAKING, S.RECLAIMING, S.ENABLING, S.AWAKE)


def begin(ledger, operation=None, mib=None):
    uuid = ledger.host_sleeps.begin(operation or str(uuid4()), "h1", "lowpower-s0", Work(mib=mib))
    return ledger.host_sleeps.get(uuid)


def to(state, **more):
    return Step(Act.WAIT, state, **more)


def take(ledger, item, *path):
    for state in path:
        item = ledger.host_sleeps.advance(item, to(state))
    return item


def test_from_its_begin_to_its_end(ledger, reader):
    item = begin(ledger)
    assert (item.state, item.host, item.is_open) == (S.DISABLING, "h1", True)
    assert [each.uuid for each in ledger.host_sleeps.unended()] == [item.uuid]
    assert reader.rack().hosts["h1"].sleep.state is S.DISABLING
    item = take(ledger, item, S.LENDING)
    item = ledger.host_sleeps.advance(item, to(S.SUSPENDING, lent_mib=128, incarnation="i1"))
    item = take(ledger, item, S.ASLEEP)
    assert reader.rack().hosts["h1"].is_expected_silent
    assert (reader.host("h1").sleep.state, reader.host("h1").sleep.lent_mib) == (S.ASLEEP, 128)
    take(ledger, item, *FORWARD[3:])
    ended = ledger.host_sleeps.get(item.uuid)
    assert (ended.state, ended.is_open, ended.work.incarnation) == (S.AWAKE, False, "i1")
    assert ledger.host_sleeps.unended() == []
    assert ledger.host_sleeps.of_host("h1") is None
    assert reader.rack().hosts["h1"].sleep is None
    assert reader.host("h1").sleep.ended_at is not None


def test_a_repeated_operation_begins_nothing(ledger):
    operation = str(uuid4())
    first = begin(ledger, operation, mib=64)
    assert begin(ledger, operation, mib=64).uuid == first.uuid == ledger.host_sleeps.begun(operation)
    with pytest.raises(OperationMismatch):
        begin(ledger, operation, mib=128)


def test_one_at_a_time_per_host(ledger):
    begin(ledger)
    with pytest.raises(Conflict, match="disabling already"):
        begin(ledger)


def test_a_host_that_is_about_to_lend_is_not_suspended(ledger):
    ledger.lends.begin(str(uuid4()), "h1", 64, LenderKind.ACTIVE)
    with pytest.raises(Conflict, match=r"lend .* is under way"):
        begin(ledger)


def test_a_host_that_may_have_nothing_is_not_suspended(ledger):
    with pytest.raises(HostUnusable):
        ledger.host_sleeps.begin(str(uuid4()), "nobody", "s3", Work())


@pytest.mark.parametrize(
    ("reached", "after", "ending"),
    [
        (0, S.ENABLING, S.ABORTED),
        (1, S.RECLAIMING, S.ABORTED),
        (2, S.WAKING, S.ABORTED),
        (3, S.WAKING, ""),
        (4, S.WAKING, ""),
        (5, S.RECLAIMING, ""),
    ],
)
def test_waking_turns_round_wherever_it_is(ledger, reached, after, ending):
    item = take(ledger, begin(ledger), *FORWARD[:reached])
    assert ledger.host_sleeps.wake(str(uuid4()), "h1") == item.uuid
    present = ledger.host_sleeps.get(item.uuid)
    assert (present.state, present.work.ending) == (after, ending)


def test_what_is_awake_is_not_woken(ledger):
    with pytest.raises(Conflict, match="awake"):
        ledger.host_sleeps.wake(str(uuid4()), "h1")
    take(ledger, begin(ledger), *FORWARD)
    with pytest.raises(Conflict, match="awake"):
        ledger.host_sleeps.wake(str(uuid4()), "h1")


def test_a_step_that_was_overtaken_changes_nothing(ledger):
    seen = take(ledger, begin(ledger), S.LENDING)
    ledger.host_sleeps.wake(str(uuid4()), "h1")
    with pytest.raises(Overtaken):
        ledger.host_sleeps.advance(seen, to(S.SUSPENDING))
    assert ledger.host_sleeps.get(seen.uuid).state is S.RECLAIMING


def test_no_step_is_left_out(ledger):
    with pytest.raises(IllegalTransition):
        ledger.host_sleeps.advance(begin(ledger), to(S.ASLEEP))


def test_calls_are_counted_within_a_state(ledger):
    item = take(ledger, begin(ledger), S.LENDING, S.SUSPENDING, S.ASLEEP, S.WAKING)
    for number in (1, 2):
        item = ledger.host_sleeps.advance(item, to(S.WAKING, called=True))
        assert item.work.calls == number
    assert take(ledger, item, S.RECLAIMING).work.calls == 0


def test_ended_ones_are_forgotten_after_a_while(ledger):
    item = take(ledger, begin(ledger), *FORWARD)
    ledger.prune(3600.0, 3600.0)
    assert ledger.host_sleeps.get(item.uuid)
    ledger.prune(-1.0, -1.0)
    with pytest.raises(NotFound):
        ledger.host_sleeps.get(item.uuid)


def deepening(ledger):
    item = take(ledger, begin(ledger), S.LENDING, S.SUSPENDING, S.ASLEEP)
    return ledger.host_sleeps.advance(item, to(S.WAKING, deeper="s3"))


def test_one_sleeps_deeper_by_another_driver(ledger):
    item = take(ledger, deepening(ledger), S.RECLAIMING)
    assert (item.driver, item.is_deeper) == ("lowpower-s0", False)
    ledger.host_sleeps.advance(item, to(S.SUSPENDING, driver="s3", lent_mib=0))
    item = take(ledger, ledger.host_sleeps.get(item.uuid), S.ASLEEP)
    assert (item.driver, item.is_deeper) == ("s3", True)
    ledger.host_sleeps.wake(str(uuid4()), "h1")
    assert ledger.host_sleeps.get(item.uuid).is_deeper


@pytest.mark.parametrize("state", [S.WAKING, S.RECLAIMING])
def test_one_that_is_wanted_back_does_not_sleep_deeper(ledger, state):
    item = deepening(ledger)
    item = item if state is S.WAKING else take(ledger, item, state)
    ledger.host_sleeps.wake(str(uuid4()), "h1")
    present = ledger.host_sleeps.get(item.uuid)
    assert (present.state, present.work.deeper) == (state, "")
