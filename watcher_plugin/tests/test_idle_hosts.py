"""Idle nodes of Watcher's cluster model are drained and suspended, sleepers woken: real Watcher, real API."""

import pytest

from pondstack.domain.host_sleep import SleepState
from pondstack.domain.plan import PlanState

from .conftest import NODES, node

S = SleepState
IDLE = [node("host-1"), node("host-2", servers={"one": [2, 2048]})]
FULL = [node("host-1", status="disabled", state="down"), node("host-2", servers={"one": [7, 2048]})]


def audit(watcher, nodes, scope=(), **parameters):
    parameters = {"reserve_percent": 20, "least_awake": 1, "most_suspended": 2, "most_servers": 0} | parameters
    return watcher("audit", strategy="pondstack_idle_hosts", parameters=parameters, nodes=nodes, scope=list(scope))


def kinds(told):
    return [(item["action_type"], item["input_parameters"]["resource_name"], item["state"]) for item in told["actions"]]


def asleep(cloud, name="host-1"):
    cloud.api.controller.suspend_host(name=name, driver="frozen")
    cloud.api.controller.go_on(name, S.LENDING, S.SUSPENDING)
    cloud.api.controller.go_on(name, S.ASLEEP, lent_mib=256)


def test_an_idle_node_is_suspended(cloud, watcher):
    told = audit(watcher, IDLE)
    assert kinds(told) == [("pondstack_suspend_host", "host-1", "PENDING")]
    assert told["actions"][0]["input_parameters"]["resource_id"] == NODES["host-1"]
    assert told["indicators"]["released_compute_nodes_count"] == 1
    assert told["indicators"]["gained_mib"] == 16384
    cloud.steps = [
        ("POST /hosts/host-1/suspend", lambda: cloud.api.controller.go_on("host-1", S.LENDING)),
        ("GET /hosts/host-1", lambda: cloud.api.controller.go_on("host-1", S.SUSPENDING)),
        ("GET /hosts/host-1", lambda: cloud.api.controller.go_on("host-1", S.ASLEEP)),
    ]
    told = watcher("run", action_plan=told["action_plan"])
    assert (told["plan_state"], kinds(told)[0][2]) == ("SUCCEEDED", "SUCCEEDED")
    assert cloud.steps == []
    again = audit(watcher, [node("host-1", status="disabled", state="down"), IDLE[1]])
    assert again["actions"] == [], "it sleeps, and enough is free without it"


def test_one_with_few_servers_is_drained_first(cloud, watcher):
    told = audit(watcher, [node("host-1", servers={"one": [1, 512]}), IDLE[1]], most_servers=1)
    drain, suspend = sorted(told["actions"], key=lambda item: len(item["parents"]))
    assert (drain["action_type"], suspend["action_type"]) == ("pondstack_drain_host", "pondstack_suspend_host")
    assert suspend["parents"] == [drain["uuid"]]
    assert told["indicators"]["instance_migrations_count"] == 1
    cloud.steps = [
        ("POST /hosts/host-1/drain", lambda: cloud.end_plan(left_out={"server": "it is not running, and stays"})),
        ("POST /hosts/host-1/suspend", lambda: _fail(cloud)),
    ]
    told = watcher("run", action_plan=told["action_plan"])
    messages = {item["action_type"]: item["status_message"] for item in told["actions"]}
    assert told["plan_state"] == "FAILED"
    assert "is not empty: server: it is not running" in messages["pondstack_drain_host"]
    assert "failed: it has servers" in messages["pondstack_suspend_host"]


def _fail(cloud):
    cloud.api.controller.go_on("host-1", S.ENABLING, S.FAILED, reason="it has servers")


def test_a_sleeper_is_woken_where_less_than_the_reserve_is_free(cloud, watcher):
    asleep(cloud)
    told = audit(watcher, FULL)
    assert kinds(told) == [("pondstack_wake_host", "host-1", "PENDING")]
    assert (told["indicators"]["woken_compute_nodes_count"], told["indicators"]["gained_mib"]) == (1, -256)
    waking = (S.RECLAIMING, S.ENABLING, S.AWAKE)
    cloud.steps = [("GET /hosts/host-1", lambda: None), ("/wake", lambda: None)]
    cloud.steps += [("GET /hosts/host-1", lambda: cloud.api.controller.go_on("host-1", *waking))]
    told = watcher("run", action_plan=told["action_plan"])
    assert (told["plan_state"], kinds(told)[0][2]) == ("SUCCEEDED", "SUCCEEDED")


def test_one_that_was_woken_meanwhile_is_skipped(cloud, watcher):
    asleep(cloud)
    told = audit(watcher, FULL)
    cloud.api.controller.wake_host(name="host-1")
    cloud.api.controller.go_on("host-1", S.RECLAIMING, S.ENABLING, S.AWAKE)
    assert kinds(watcher("run", action_plan=told["action_plan"]))[0][2] == "SKIPPED"


@pytest.mark.parametrize(("abort", "state"), [(True, "CANCELLED"), (False, "PENDING")])
def test_an_abort_and_a_revert_wake_the_host(cloud, watcher, abort, state):
    told = audit(watcher, IDLE)
    asleep(cloud)
    waking = (S.RECLAIMING, S.ENABLING, S.AWAKE)
    cloud.steps = [("/wake", lambda: cloud.api.controller.go_on("host-1", *waking))]
    told = watcher("revert", action_plan=told["action_plan"], abort=abort)
    assert kinds(told)[0][2] == state
    assert cloud.steps == []


def test_a_cancellation_between_two_actions_leaves_the_second_undone(cloud, watcher):
    told = audit(watcher, [node("host-1", servers={"one": [1, 512]}), IDLE[1]], most_servers=1)
    watcher("begin", action_plan=told["action_plan"])
    cloud.wait_for("/hosts/host-1/drain")
    watcher("cancel", action_plan=told["action_plan"])
    cloud.end_plan()
    told = watcher("end", action_plan=told["action_plan"])
    states = {item["action_type"]: item["state"] for item in told["actions"]}
    assert told["plan_state"] == "CANCELLED"
    assert states == {"pondstack_drain_host": "SUCCEEDED", "pondstack_suspend_host": "CANCELLED"}
    assert not [item for item in cloud.seen if "/suspend" in item]


def test_a_drain_is_reverted_by_a_restore(cloud, watcher):
    told = audit(watcher, [node("host-1", servers={"one": [1, 512]}), IDLE[1]], most_servers=1)
    [drain] = [item for item in told["actions"] if not item["parents"]]
    assert drain["action_type"] == "pondstack_drain_host"
    cloud.steps = [("/hosts/host-1/restore", cloud.end_plan)]
    watcher("revert", action_plan=told["action_plan"], abort=False)
    assert (str(cloud.newest_plan().kind), cloud.newest_plan().state) == ("restore", PlanState.DONE)


@pytest.mark.usefixtures("cloud")
def test_nodes_outside_of_the_scope_or_unknown_take_no_part(watcher):
    scope = [{"compute": [{"exclude": [{"compute_nodes": [{"name": "host-1"}]}]}]}]
    assert audit(watcher, IDLE, scope)["actions"] == []
    unknown = {**node("host-1"), "uuid": "5a0c1f3e-7d2b-4c6a-9e8f-1b2c3d4e5f60"}
    told = audit(watcher, [unknown, IDLE[1]])
    assert (told["actions"], told["indicators"]["left_out_count"]) == ([], 1)


@pytest.mark.parametrize("changes", [{"status": "disabled", "disabled_reason": "a disk"}, {"state": "down"}])
@pytest.mark.usefixtures("cloud")
def test_nor_do_nodes_that_nova_does_not_use(watcher, changes):
    told = audit(watcher, [node("host-1", **changes), IDLE[1]], least_awake=0)
    assert "host-1" not in [item[1] for item in kinds(told)]
    assert told["indicators"]["left_out_count"] == 1
