"""When memory whose release had begun goes back to its guest, and when it must not."""

from dataclasses import replace

import pytest

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.rules.rules import decide
from pondstack.domain.causes import Cause
from pondstack.domain.model import Extent
from pondstack.domain.states import SliceState
from pondstack.tests.controller.builders import IDLE, REPORT_AGE, Builder

BEGUN = (SliceState.RELEASING, SliceState.QUARANTINED)
OTHERS = sorted(set(Cause) - {Cause.AGENT_DOWN})


def reinstate(state=SliceState.RELEASING, *, cause=Cause.AGENT_DOWN, age=1000.0, **values):
    """A observation in which an allocation's release had begun, and its claim and its host are back."""
    built = Builder().allocate(state=state, age=age, **values)
    for index in (0, 1):
        built.put(index, state, age=age, host="h1", allocation="a1", cause=cause)
    return built


def found(built):
    return {finding.code: finding for finding in decide(built.observation())}


def actions_of(built):
    return [finding.action for finding in found(built).values() if finding.action is not None]


@pytest.mark.parametrize("state", BEGUN)
@pytest.mark.parametrize("in_use", [True, False], ids=["running", "off"])
def test_what_is_claimed_again_and_still_there_goes_back(state, in_use):
    finding = found(reinstate(state, in_use=in_use))["claimed_again"]
    assert finding.action == actions.Reinstate("a1")
    assert finding.host == "h1", "a fresh report is asked for first"
    assert actions_of(reinstate(state, in_use=in_use)) == [actions.Reinstate("a1")]


@pytest.mark.parametrize("state", BEGUN)
@pytest.mark.parametrize(
    "change",
    [
        lambda built: built.claims.clear(),
        lambda built: setattr(built, "placement", False),
        lambda built: built.silence(),
        lambda built: built.fence(),
        lambda built: built.attached["h1"].clear(),
        lambda built: built.attached["h1"][0].update(extents=[{"start": 0, "count": 1}]),
        lambda built: built.attached["h1"][0].update(extents=[{"start": 0, "count": 3}]),
        lambda built: built.allocate(replace(IDLE, uuid="a2", extents=(Extent(4, 2),)), age=5),
    ],
    ids=[
        "unclaimed",
        "Placement does not tell",
        "its host is silent",
        "its host is fenced",
        "its host has let go",
        "its host holds a part",
        "its host holds more",
        "a newer allocation has the claim",
    ],
)
def test_without_each_of_the_proofs_it_does_not(state, change):
    built = reinstate(state)
    change(built)
    assert actions.Reinstate("a1") not in actions_of(built)


@pytest.mark.parametrize("state", BEGUN)
def test_a_report_that_may_be_older_than_the_release_proves_nothing(state):
    assert actions_of(reinstate(state, age=REPORT_AGE + 0.5)) == []


@pytest.mark.parametrize("cause", OTHERS)
def test_what_was_set_aside_for_another_cause_stays(cause):
    assert actions.Reinstate("a1") not in actions_of(reinstate(SliceState.QUARANTINED, cause=cause))


def test_what_may_be_claimed_is_not_asked_for_while_it_is_there():
    built = reinstate(in_use=False)
    built.placement = False
    assert found(built)["releasing"].action is None


def test_what_is_gone_is_confirmed_although_it_is_claimed():
    """So that nothing stays RELEASING: the host says again that it holds none of it, which takes nothing from it."""
    assert found(reinstate(attached=False))["releasing"].action == actions.Offline("h1", "a1")
