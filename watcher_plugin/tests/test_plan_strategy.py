"""Watcher has the memory service decide a plan, and carry it out: real Watcher, real API, a played controller."""

import pytest

from pondstack.domain.errors import Unavailable
from pondstack.domain.plan import PlanState
from tests.fixtures.sample_plans import ACTIONS

from .conftest import node

BRINGS = {"hosts_emptied": 1, "migrations": 1, "gained_mib": 2048}
ALL = [node("host-1", servers={"one": [1, 1024]}), node("host-2"), node("host-3")]


def audit(watcher, nodes=ALL, scope=(), **parameters):
    return watcher("audit", strategy="pondstack_plan", parameters=parameters, nodes=list(nodes), scope=list(scope))


@pytest.fixture
def planned(watcher, cloud):
    """Return an action plan of Watcher's that is one plan of ours, with two actions."""
    cloud.steps = [("POST /plans", lambda: cloud.decide(*ACTIONS, left_out={"host-3": "no load"}, **BRINGS))]
    return audit(watcher)


def test_a_plan_becomes_an_action_plan_with_its_efficacy(cloud, planned):
    assert (planned["state"], planned["plan_state"]) == ("SUCCEEDED", "RECOMMENDED")
    [action] = planned["actions"]
    plan = cloud.newest_plan()
    assert (action["action_type"], action["input_parameters"]) == ("pondstack_apply_plan", {"resource_id": plan.uuid})
    assert planned["indicators"] == {
        "compute_nodes_count": 3,
        "released_compute_nodes_count": 1,
        "instance_migrations_count": 1,
        "woken_compute_nodes_count": 0,
        "gained_mib": 2048,
        "left_out_count": 1,
    }
    assert planned["global"] == {"released_nodes_ratio": pytest.approx(100 / 3)}
    assert plan.state is PlanState.PROPOSED, "an audit moves nothing"


def test_settings_of_the_audit_reach_the_plan_and_others_are_the_controllers(cloud, watcher):
    cloud.steps = [("POST /plans", cloud.decide)]
    told = audit(watcher, underload_percent=10, afterwards="lend")
    assert cloud.newest_plan().settings["underload_percent"] == 10
    assert cloud.newest_plan().settings["afterwards"] == "lend"
    assert (told["state"], told["actions"]) == ("SUCCEEDED", [])


def test_an_audit_fails_where_no_plan_can_be_decided(cloud, watcher):
    cloud.steps = [("POST /plans", lambda: cloud.end_plan(PlanState.FAILED, "there is no such algorithm"))]
    told = audit(watcher)
    assert (told["state"], told["action_plan"]) == ("FAILED", None)
    assert "there is no such algorithm" in told["errors"]


def test_a_plan_beyond_the_scope_is_cancelled_and_fails_the_audit(cloud, watcher):
    cloud.steps = [("POST /plans", lambda: cloud.decide(*ACTIONS))]
    told = audit(watcher, scope=[{"compute": [{"exclude": [{"compute_nodes": [{"name": "host-2"}]}]}]}])
    assert told["state"] == "FAILED"
    assert "outside of the audit's scope (host-2)" in told["errors"]
    assert cloud.newest_plan().state is PlanState.CANCELLED


def test_the_action_applies_the_plan_and_follows_it(cloud, watcher, planned):
    cloud.steps = [("/apply", lambda: None), ("GET /plans/", cloud.end_plan)]
    told = watcher("run", action_plan=planned["action_plan"])
    assert (told["plan_state"], told["actions"][0]["state"]) == ("SUCCEEDED", "SUCCEEDED")
    assert cloud.newest_plan().state is PlanState.DONE
    assert [item for item in cloud.seen if "/apply" in item] == [f"POST /plans/{cloud.newest_plan().uuid}/apply"]


def test_a_plan_that_fails_fails_the_action_with_its_reason(cloud, watcher, planned):
    cloud.steps = [("/apply", lambda: cloud.end_plan(PlanState.FAILED, "Nova did not move it"))]
    told = watcher("run", action_plan=planned["action_plan"])
    assert (told["plan_state"], told["actions"][0]["state"]) == ("FAILED", "FAILED")
    assert "Nova did not move it" in told["actions"][0]["status_message"]


def test_a_plan_that_ended_meanwhile_is_skipped_or_refused(cloud, watcher, planned):
    cloud.end_plan(PlanState.CANCELLED, "by an operator")
    told = watcher("run", action_plan=planned["action_plan"])
    assert "Action failed in pre_condition" in told["actions"][0]["status_message"]
    assert "is cancelled: by an operator" in told["actions"][0]["status_message"]
    assert not [item for item in cloud.seen if "/apply" in item]


def test_one_that_was_done_is_skipped(cloud, watcher, planned):
    cloud.end_plan()
    told = watcher("run", action_plan=planned["action_plan"])
    assert (told["plan_state"], told["actions"][0]["state"]) == ("SUCCEEDED", "SKIPPED")


def test_one_that_runs_already_is_followed(cloud, watcher, planned):
    cloud.api.controller.apply_plan(uuid=cloud.newest_plan().uuid)
    cloud.steps = [("GET /plans/", lambda: None), ("GET /plans/", cloud.end_plan)]
    assert watcher("run", action_plan=planned["action_plan"])["plan_state"] == "SUCCEEDED"
    assert not [item for item in cloud.seen if "/apply" in item]


def test_an_abort_cancels_the_plan(cloud, watcher, planned):
    cloud.api.controller.apply_plan(uuid=cloud.newest_plan().uuid)
    told = watcher("revert", action_plan=planned["action_plan"], abort=True)
    assert told["actions"][0]["state"] == "CANCELLED"
    assert cloud.newest_plan().state is PlanState.CANCELLED


def test_an_abort_of_what_was_done_says_so(cloud, watcher, planned):
    cloud.end_plan()
    assert watcher("revert", action_plan=planned["action_plan"], abort=True)["actions"][0]["state"] == "SUCCEEDED"


def test_a_cancellation_waits_for_the_action_under_way(cloud, watcher, planned):
    """Watcher 17 looks between two actions: to stop one, its plan is cancelled at the memory service."""
    watcher("begin", action_plan=planned["action_plan"])
    cloud.wait_for("/apply")
    watcher("cancel", action_plan=planned["action_plan"])
    cloud.api.controller.cancel_plan(uuid=cloud.newest_plan().uuid)
    told = watcher("end", action_plan=planned["action_plan"])
    assert told["actions"][0]["state"] == "FAILED"
    assert "is cancelled" in told["actions"][0]["status_message"]


def test_a_revert_enables_what_the_plan_disabled(cloud, watcher, planned):
    cloud.end_plan()
    cloud.steps = [("/hosts/host-1/restore", cloud.end_plan)]
    watcher("revert", action_plan=planned["action_plan"], abort=False)
    assert (str(cloud.newest_plan().kind), cloud.newest_plan().state) == ("restore", PlanState.DONE)


def test_a_controller_that_changes_is_waited_for(cloud, watcher, planned):
    """503 while the next leader comes is no failure of the action, whether it asks or looks."""
    cloud.api.controller.error = Unavailable("nobody leads")

    def lead():
        cloud.api.controller.error = None

    cloud.steps = [("/apply", lead), ("/apply", lambda: None), ("GET /plans/", cloud.end_plan)]
    told = watcher("run", action_plan=planned["action_plan"])
    assert told["plan_state"] == "SUCCEEDED", told
    assert len([item for item in cloud.seen if "/apply" in item]) == 2
