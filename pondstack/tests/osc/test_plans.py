"""openstack memory plan, host drain and restore."""

import threading
from dataclasses import replace

import pytest

from pondstack.db.store import plans
from pondstack.domain.plan import ENDED, Action, ActionKind, PlanState
from pondstack.osc.v1 import plan as commands
from pondstack.osc.v1 import progress
from tests.fixtures import sample_plans


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)


def carry_out(api, *states):
    """Take the plan that comes next through states, as soon as it is in a state that the leader attends to."""

    def run():
        found = []
        while not found:
            found = api.database.read(plans.unattended)
        for state in states:
            now = replace(found[0], state=state, reason="it burns" if state is PlanState.FAILED else "")
            decided, ended = state is PlanState.PROPOSED, state in ENDED
            api.database.write(
                lambda session, now=now, decided=decided, ended=ended: plans.change(
                    session, now, decided=decided, ended=ended
                )
            )

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_plans(json_of):
    rows = json_of("memory plan list")
    assert [(row["Kind"], row["State"], row["GiB Moved"]) for row in rows] == [
        ("consolidate", "proposed", 2.0),
        ("drain", "done", 0.0),
    ]
    assert [row["UUID"] for row in json_of("memory plan list --state done")] == [sample_plans.DONE]


def test_one_plan_says_what_why_and_who_not(openstack, json_of):
    found = json_of(f"memory plan show {sample_plans.PROPOSED}")
    assert (found["migrations"], found["estimated_watts"], found["power_profile"]) == (1, 0.0, "hp")
    status, text, _ = openstack(f"memory plan show {sample_plans.PROPOSED} -f value")
    assert status == 0
    assert f"2 live-migrate {sample_plans.SERVER} from host-1 to host-2: pending" in text
    assert "host-3: its CPU load is unknown" in text
    assert "oldest_load_seconds=42.0" in text


def test_one_is_decided_and_only_proposed(api, json_of):
    thread = carry_out(api, PlanState.PROPOSED)
    found = json_of("memory plan create --overload iqr --afterwards keep --most-migrations 3")
    thread.join()
    assert (found["state"], found["afterwards"]) == ("proposed", "keep")
    assert "overload=iqr" in found["settings_text"]
    assert "most_migrations=3" in found["settings_text"]


def test_one_that_cannot_be_decided_fails(api, openstack):
    thread = carry_out(api, PlanState.FAILED)
    status, _, errors = openstack("memory plan create")
    thread.join()
    assert status == 1
    assert "ended as failed" in errors
    assert "it burns" in errors


def test_one_is_applied_and_followed(api, json_of, openstack):
    thread = carry_out(api, PlanState.DONE)
    found = json_of(f"memory plan apply {sample_plans.PROPOSED} --wait")
    thread.join()
    assert found["state"] == "done"
    assert openstack(f"memory plan cancel {sample_plans.PROPOSED}")[0] == 1


def test_one_is_cancelled(json_of):
    assert json_of(f"memory plan cancel {sample_plans.PROPOSED} --wait")["state"] == "cancelled"


def test_a_drain_tells_its_progress(api, openstack):
    thread = carry_out(api, PlanState.RUNNING, PlanState.DONE)
    status, _, progress = openstack("memory host drain host-1 --wait")
    thread.join()
    assert status == 0
    assert ": done, 0 of 0 actions have ended" in progress


def test_a_drain_that_is_not_over_in_time(openstack):
    status, _, errors = openstack("memory host drain host-1 --wait --timeout 0.05")
    assert status == 1
    assert "and goes on; look at" in errors


def test_a_host_is_restored(json_of):
    assert json_of("memory host restore host-1")["kind"] == "restore"


def test_a_move_without_a_destination():
    action = {"number": 1, "kind": "live-migrate", "server_uuid": "vm", "host": "a", "destination": None}
    assert commands._text(action | {"state": "done", "reason": "it is on b"}) == (
        "1 live-migrate vm from a to where Nova finds room: done (it is on b)"
    )
    assert Action(1, ActionKind.DISABLE, "a", "a").hosts == {"a"}
