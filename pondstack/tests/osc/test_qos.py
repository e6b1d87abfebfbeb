"""openstack memory qos, mitigation, performance, and the verbs of allocation that begin and end a mitigation."""

import threading
from dataclasses import replace

import pytest

from pondstack.db.store import mitigations
from pondstack.domain.mitigation import MitigationState
from pondstack.osc.v1 import progress
from tests.fixtures import sample_rack

FIRST, SECOND, THIRD = sample_rack.CONSUMERS


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)


def carry_out(api, consumer, *steps):
    """Have a mitigation go through these (state, MiB left), as soon as it is there."""

    def run():
        found = None
        while found is None or not found.is_open:
            found = api.database.read(lambda session: mitigations.latest(session, consumer))
        for state, left in steps:
            now = replace(found, state=state, left_mib=left, reason="")
            ended = state in (MitigationState.DONE, MitigationState.FAILED)
            api.database.write(
                lambda session, now=now, ended=ended: mitigations.change(session, now, moved=True, ended=ended)
            )

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_decisions(json_of, openstack):
    rows = json_of("memory qos list")
    assert [(row["Consumer"], row["Action"]) for row in rows] == [(SECOND, "mitigate"), (FIRST, "leave")]
    assert [row["ID"] for row in json_of("memory qos list --marker 2")] == [1]
    assert json_of(f"memory qos list --consumer {FIRST} --action leave")[0]["Verdict"] == "insensitive"
    with pytest.raises(SystemExit):
        openstack("memory qos list --action run")


def test_one_instance(json_of, openstack):
    found = json_of(f"memory qos show {FIRST}")
    assert (found["corrected"], found["split_source"]) == (False, "fixed")
    assert found["reprediction"]["reclaimable_mib"] == 1024
    assert "leave: touched 640 of 2048 MiB" in openstack(f"memory qos show {FIRST}")[1]


def test_the_report_and_what_it_is_made_of(json_of, openstack):
    words = f"memory performance set {FIRST} --metric p99_ms --value 12.5 --lower-is-better"
    assert json_of(words)["mean"] == 12.5
    assert json_of("memory qos report") == []
    assert "1024 MiB of them could come from a pool" in openstack("memory qos report")[2]
    with pytest.raises(SystemExit):
        openstack(f"memory performance set {FIRST} --metric p99_ms --value 1")


def test_mitigations(json_of):
    assert [row["State"] for row in json_of("memory mitigation list")] == ["moving", "done"]
    assert [row["Consumer"] for row in json_of("memory mitigation list --open")] == [SECOND]
    assert [row["Consumer"] for row in json_of("memory mitigation list --host host-2")] == [THIRD]


def test_one_begins_and_is_followed_to_its_end(api, openstack):
    thread = carry_out(api, FIRST, (MitigationState.MOVING, 1024), (MitigationState.DONE, 0))
    status, out, err = openstack(f"memory allocation mitigate {FIRST} --force --method copy --wait -f json")
    thread.join()
    assert status == 0, err
    assert '"state": "done"' in out
    assert "2048 of 2048 MiB moved" in err


def test_one_that_fails_is_an_error(api, openstack):
    thread = carry_out(api, FIRST, (MitigationState.FAILED, 2048))
    status, _, err = openstack(f"memory allocation mitigate {FIRST} --wait")
    thread.join()
    assert status == 1
    assert " ended as failed, 0 of 2048 MiB moved" in err


def test_one_that_takes_too_long_goes_on(openstack):
    status, _, err = openstack(f"memory allocation mitigate {FIRST} --wait --timeout 0.05")
    assert status == 1
    assert f"mitigation list --consumer {FIRST}" in err


def test_abort(json_of, openstack):
    assert json_of(f"memory allocation abort {SECOND} --wait")["state"] == "aborted"
    status, _, err = openstack(f"memory allocation abort {SECOND}")
    assert (status, "404" in err) == (1, True)
