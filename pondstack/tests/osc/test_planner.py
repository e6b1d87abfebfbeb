"""openstack memory planner ..."""

import argparse
import json
import threading

import pytest

from pondstack.db.store import planner_jobs
from pondstack.osc.v1 import planner as commands
from pondstack.osc.v1 import progress
from tests.fixtures import sample_jobs


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)


def carry_out(api, *steps):
    """Take the job that comes next through steps, as a leader does."""

    def run():
        found = []
        while not found:
            waiting = api.database.read(planner_jobs.unended)
            found = [job for job in waiting if job.uuid != sample_jobs.WAITING]
        for step in steps:
            api.database.write(lambda session, step=step: step(session, found[0].uuid))

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def begin(session, uuid):
    planner_jobs.begin(session, uuid, "controller-1", "")
    planner_jobs.progress(session, uuid, 3, 20)


def end(session, uuid):
    planner_jobs.end(session, uuid, sample_jobs.SUMMARY, sample_jobs.REPORT)


def test_jobs(json_of):
    rows = json_of("memory planner list")
    assert [(row["Source"], row["State"], row["Progress"]) for row in rows] == [
        ("generated (SYNTHETIC)", "queued", "-"),
        ("generated (SYNTHETIC)", "ended", "20 of 20 parts"),
    ]
    assert [row["UUID"] for row in json_of("memory planner list --state ended")] == [sample_jobs.ENDED]


def test_one_says_who_asked_for_what_and_what_it_came_to(json_of):
    found = json_of(f"memory planner show {sample_jobs.ENDED}")
    assert (found["user_id"], found["tries"], found["controller"]) == ("admin", 1, "controller-1")
    assert "servers=400" in found["order_text"]
    assert "seeds=1,2" in found["order_text"]
    assert found["summary"] == sample_jobs.SUMMARY


def test_one_is_asked_for_and_followed(api, openstack):
    thread = carry_out(api, begin, end)
    status, text, progress = openstack(
        "memory planner run --window-days 7 --set policies=static --set sockets=16 --set pool-shares=0.5,1 --wait "
        "-f json"
    )
    thread.join()
    assert status == 0
    found = json.loads(text)
    assert found["state"] == "ended"
    assert found["source"] == "cloud"
    for word in ("window_days=7", "policies=static", "sockets=16", "pool_shares=0.5,1"):
        assert word in found["order_text"]
    assert ": ended, 20 of 20 parts" in progress


def test_one_that_fails(api, openstack):
    thread = carry_out(api, begin, lambda session, uuid: planner_jobs.fail(session, uuid, "it burns"))
    status, _, errors = openstack("memory planner run --source generated --wait")
    thread.join()
    assert status == 1
    assert "ended as failed" in errors
    assert "it burns" in errors


def test_one_that_is_not_over_in_time(openstack):
    status, _, errors = openstack("memory planner run --wait --timeout 0.05")
    assert status == 1
    assert "and goes on; look at `openstack memory planner show" in errors


@pytest.mark.parametrize("text", ["sockets", "=3", "sockets="])
def test_a_setting_that_is_none(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is no NAME=VALUE"):
        commands.setting(text)


def test_a_setting_out_of_bounds_is_told(openstack):
    status, _, errors = openstack("memory planner run --set sockets=0")
    assert status == 1
    assert "sockets" in errors


def test_one_is_cancelled_and_deleted(json_of, openstack):
    assert openstack(f"memory planner delete {sample_jobs.WAITING}")[0] == 1
    assert json_of(f"memory planner cancel {sample_jobs.WAITING}")["state"] == "cancelled"
    assert openstack(f"memory planner delete {sample_jobs.WAITING}")[0] == 0
    assert openstack(f"memory planner show {sample_jobs.WAITING}")[0] == 1


def test_its_report_is_written(openstack, tmp_path):
    html, answers = tmp_path / "report.html", tmp_path / "answers.json"
    assert openstack(f"memory planner report {sample_jobs.ENDED} --html {html} --json {answers}")[0] == 0
    assert html.read_text() == sample_jobs.REPORT.html
    assert json.loads(answers.read_text()) == sample_jobs.REPORT.answers
    status, _, errors = openstack(f"memory planner report {sample_jobs.ENDED}")
    assert (status, "--html, --json" in errors) == (1, True)
    assert openstack(f"memory planner report {sample_jobs.ENDED} --html {tmp_path}/no/such.html")[0] == 1
    assert openstack(f"memory planner report {sample_jobs.WAITING} --html {html}")[0] == 1
