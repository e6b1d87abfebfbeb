"""Which notifications of plans and of hosts' sleeps are still to be sent, and that each is sent once."""

from dataclasses import replace
from uuid import uuid4

import pytest

from pondstack.db.models import PlanRow
from pondstack.db.store import host_sleeps, plans, transition_notices
from pondstack.domain.host_sleep import HostSleep, SleepState
from pondstack.domain.plan import Action, ActionKind, ActionState, Plan, PlanKind, PlanState, PlanTrigger

A, S, Z = ActionState, PlanState, SleepState
DISABLE = Action(1, ActionKind.DISABLE, "a", "a")


def told(database, pending):
    found = database.read(pending)
    for subject, kind in found:
        for _ in range(2):
            database.write(lambda session, uuid=subject.uuid, kind=kind: transition_notices.note(session, uuid, kind))
    return [kind for _, kind in found]


@pytest.fixture
def plan(database):
    """One that is proposed, and what takes it to another state."""
    made = Plan(str(uuid4()), PlanKind.CONSOLIDATE, PlanTrigger.OPERATOR, S.PROPOSED, (DISABLE,))
    database.write(lambda session: plans.add(session, made))
    database.write(lambda session: plans.add_actions(session, made.uuid, made.actions))

    def become(state, tries=0):
        done = replace(DISABLE, tries=tries, state=A.DONE if tries else A.PENDING)
        database.write(lambda session: plans.change_action(session, made.uuid, done, begun=bool(tries)))
        after, ended = replace(made, state=state), state in (S.DONE, S.FAILED, S.CANCELLED)
        database.write(lambda session: plans.change(session, after, decided=False, ended=ended))

    return become


@pytest.mark.parametrize(("state", "kind"), [(S.DONE, "end"), (S.CANCELLED, "end"), (S.FAILED, "error")])
def test_of_a_plan_the_begin_and_the_end_are_told(database, plan, state, kind):
    pending = transition_notices.pending_plans
    assert told(database, pending) == [], "nothing is done by one that is proposed"
    plan(S.RUNNING)
    assert told(database, pending) == ["start"]
    assert told(database, pending) == []
    plan(state, tries=1)
    assert told(database, pending) == [kind]
    database.write(transition_notices.prune)
    assert told(database, pending) == []


def test_both_are_told_of_a_plan_that_ended_meanwhile(database, plan):
    plan(S.DONE, tries=1)
    assert told(database, transition_notices.pending_plans) == ["start", "end"]


def test_nothing_is_told_of_a_plan_that_was_never_applied_or_ended_long_ago(database, plan):
    plan(S.CANCELLED)
    assert told(database, transition_notices.pending_plans) == []
    plan(S.DONE, tries=1)
    database.write(lambda session: session.query(PlanRow).update({"ended_at": 1.0}))
    assert told(database, transition_notices.pending_plans) == []


def test_of_a_sleep_each_state_of_note_is_told(database):
    pending = transition_notices.pending_sleeps
    item = HostSleep(str(uuid4()), "a", "frozen")
    database.write(lambda session: host_sleeps.add(session, item))
    for state, kinds in (
        (Z.LENDING, ["start"]),
        (Z.ASLEEP, ["asleep"]),
        (Z.LOST, ["lost"]),
        (Z.WAKING, []),
        (Z.AWAKE, ["end"]),
        (Z.AWAKE, []),
    ):
        after, ended = replace(item, state=state), state is Z.AWAKE
        database.write(
            lambda session, item=after, ended=ended: host_sleeps.change(session, item, moved=True, ended=ended)
        )
        assert told(database, pending) == kinds, state


def test_what_is_forgotten_is_forgotten_with_its_notifications(database):
    item = HostSleep(str(uuid4()), "a", "frozen")
    for _ in range(2):
        database.write(lambda session: host_sleeps.add(session, item))
        assert told(database, transition_notices.pending_sleeps) == ["start"]
        failed = replace(item, state=Z.FAILED)
        database.write(lambda session, failed=failed: host_sleeps.change(session, failed, moved=True, ended=True))
        assert told(database, transition_notices.pending_sleeps) == ["error"]
        database.write(lambda session: host_sleeps.prune(session, -1.0))
        database.write(transition_notices.prune)
