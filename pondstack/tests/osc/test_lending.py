"""The commands of memory that hosts lend, and how --wait follows what a host was asked for."""

import json
import sys

import pytest

from pondstack.domain.errors import AgentUnavailable, HostUnusable
from pondstack.domain.lending import Lender, LenderKind
from pondstack.osc.v1 import operation
from tests.fixtures import sample_rack


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Look often."""
    monkeypatch.setattr(operation, "POLL_SECONDS", 0.001)


@pytest.fixture
def steps(api, monkeypatch):
    """Let each look at a lender, or each repeated request, find the next of these changes, or raise it."""

    def use(host, *changes):
        left, ids = list(changes), []
        read, begin = api.reader.lender, api.controller._begin

        def step():
            if ids and left:
                change = left.pop(0)
                if isinstance(change, Exception):
                    raise change
                api.controller.advance(host, ids[0], **change)

        def look(name):
            step()
            return read(name)

        def ask(*arguments):
            step()
            told = begin(*arguments)
            ids.append(told["operation_id"])
            return told

        monkeypatch.setattr(api.reader, "lender", look)
        monkeypatch.setattr(api.controller, "_begin", ask)
        return ids

    return use


@pytest.fixture
def idle(api):
    """Let the first host be done with what it was asked for before."""
    api.controller.advance("host-1", sample_rack.RECLAIM, state="done", done_mib=192)


def test_lender_list(json_of, openstack):
    rows = json_of("memory lender list")
    assert [(row["Host"], row["Kind"], row["Lent MiB"]) for row in rows] == [
        ("host-1", "active", 512),
        ("host-3", "zombie", 256),
    ]
    assert [row["Lendable MiB"] for row in rows] == [0, None]
    assert "free 3, assigning 1, online 2, releasing 1, sanitizing 1" in openstack("memory lender list")[1]
    assert [row["Host"] for row in json_of("memory lender list --limit 1 --marker host-1")] == ["host-3"]


def test_lender_show(json_of, openstack):
    lender = json_of("memory lender show host-1")
    assert lender["incarnation"] == sample_rack.INCARNATIONS["host-1"]
    assert lender["operations"] == [dict(item) for item in sample_rack.OPERATIONS]
    text = openstack("memory lender show host-1")[1]
    assert "| lend 512 of 1024 MiB, done: the host keeps the rest" in text
    assert "| reclaim 0 of 192 MiB, pending " in text
    assert "| operations   | -  " in openstack("memory lender show host-3")[1]
    status, _, err = openstack("memory lender show host-2")
    assert status == 1
    assert "host-2 lends nothing" in err


def test_buffers_are_joined_to_extents(json_of):
    rows = json_of("memory buffer list")
    assert [(row["Lender"], row["Buffers"], row["State"]) for row in rows] == [
        ("host-1", "0-1", "online"),
        ("host-1", "2", "releasing"),
        ("host-1", "3", "free"),
        ("host-1", "4", "sanitizing"),
        ("host-1", "5", "assigning"),
        ("host-1", "6-7", "free"),
        ("host-3", "0", "online"),
        ("host-3", "1", "free"),
        ("host-3", "2-3", "free"),
    ]
    assert [row["Promised To"] for row in rows[6:]] == ["host-1", "host-2", None]
    assert [row["Leaving"] for row in rows[:6]] == [False, True, False, False, False, True]


def test_buffer_filters(json_of):
    assert len(json_of("memory buffer list --each")) == 12
    assert [row["Buffers"] for row in json_of("memory buffer list --lender host-1 --state free")] == ["3", "6-7"]
    assert [row["Lender"] for row in json_of("memory buffer list --host host-1")] == ["host-3"]
    assert json_of("memory buffer list --lender host-3 --state quarantined") == []


def test_buffer_pages(json_of, openstack):
    assert len(json_of("memory buffer list --each --limit 10")) == 10
    marker = f"5:{sample_rack.INCARNATIONS['host-1']}"
    rows = json_of(f"memory buffer list --lender host-1 --marker {marker}")
    assert [row["Buffers"] for row in rows] == ["6-7"]
    status, _, err = openstack(f"memory buffer list --marker {marker}")
    assert status == 1
    assert "--marker goes with --lender only" in err


def test_a_lender_that_has_all_back_while_buffers_are_listed(api, json_of, openstack):
    real = api.reader.lenders

    def gone_afterwards(**arguments):
        found = real(**arguments)
        api.ledger.buffers.delegate(Lender("host-3", "", LenderKind.ACTIVE, 64), 2, {})
        api.ledger.loans.give_back("d2f1c0de-0000-4000-8000-000000000001", _loan_of_the_zombie(api), "host-1")
        api.ledger.buffers.delegate(Lender("host-3", "", LenderKind.ACTIVE, 64), 3, {})
        return found

    api.reader.lenders = gone_afterwards
    assert {row["Lender"] for row in json_of("memory buffer list")} == {"host-1"}
    assert openstack("memory buffer list --lender host-3")[0] == 1


def _loan_of_the_zombie(api):
    (uuid,) = {item.allocation_uuid for item in api.ledger.buffers.find("host-3") if item.allocation_uuid}
    return uuid


def test_buffer_show(json_of, openstack):
    buffer = json_of("memory buffer show host-1 2")
    assert (buffer["state"], buffer["host"], buffer["leaving"], buffer["guaranteed"]) == (
        "releasing",
        "host-2",
        True,
        False,
    )
    assert buffer["offset_mib"] == 128
    assert openstack("memory buffer show host-1 9")[0] == 1


def test_delegate_answers_at_once(api, json_of):
    told = json_of("memory host delegate host-2 --mib 512 --kind zombie")
    assert (told["verb"], told["state"], told["mib"], told["done_mib"]) == ("lend", "pending", 512, 0)
    assert told["operation_id"] == api.controller._lending("host-2")["operations"][0]["operation_id"]


@pytest.mark.parametrize("wrong", ["", "--mib much", "--mib 64 --kind ghost"])
def test_delegate_wants_an_amount_and_a_kind(openstack, wrong):
    with pytest.raises(SystemExit):
        openstack(f"memory host delegate host-2 {wrong}")


def test_an_illegal_amount_is_told_by_the_service(openstack):
    status, _, err = openstack("memory host reclaim host-1 --mib 0")
    assert status == 1
    assert "an integer from 1" in err


def test_what_is_under_way_is_in_the_way(openstack):
    status, _, err = openstack("memory host delegate host-1 --mib 64")
    assert status == 1
    assert "is under way" in err


@pytest.mark.usefixtures("idle")
def test_progress_is_told_until_it_is_done(openstack, steps):
    ids = steps(
        "host-1",
        {"done_mib": 64},
        {"done_mib": 64},
        AgentUnavailable("the agent restarts"),
        {"state": "telling", "done_mib": 128},
        {"state": "done"},
    )
    status, out, err = openstack("memory host reclaim host-1 --mib 128 --seconds 2.5 --wait -f json")
    assert status == 0, err
    assert json.loads(out) == {
        "operation_id": ids[0],
        "verb": "reclaim",
        "state": "done",
        "mib": 128,
        "done_mib": 128,
        "reason": "",
    }
    assert [line for line in err.splitlines() if line.startswith("host-1:")] == [
        "host-1: reclaim 0 of 128 MiB, pending",
        "host-1: reclaim 64 of 128 MiB, pending",
        "host-1: reclaim 128 of 128 MiB, telling",
        "host-1: reclaim 128 of 128 MiB, done",
    ]
    assert len(ids) == 1


def test_a_host_that_lends_nothing_yet_is_asked_again_with_the_same_id(api, openstack, steps):
    ids = steps("host-2", {"done_mib": 64}, {"done_mib": 512}, {"state": "done"})
    status, _, err = openstack("memory host delegate host-2 --mib 512 --wait")
    assert status == 0, err
    assert len(ids) > 1
    assert len(set(ids)) == 1
    assert len(api.controller._lending("host-2")["operations"]) == 1


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize(
    ("reason", "told"), [("the host keeps the rest", "the host keeps the rest"), ("", "the host gives no reason")]
)
def test_less_than_asked_is_a_failure_with_its_reason(openstack, steps, reason, told):
    steps("host-1", {"state": "done", "done_mib": 640, "reason": reason})
    status, out, err = openstack("memory host delegate host-1 --mib 1024 --wait -f json")
    assert status == 1
    assert out == ""
    assert f"host-1 is done with 640 of 1024 MiB only: {told}" in err


def test_more_than_asked_is_none(openstack, steps):
    steps("host-3", {"state": "done", "done_mib": 128})
    assert openstack("memory host reclaim host-3 --mib 100 --wait")[0] == 0


def test_a_host_that_is_not_done_in_time(openstack):
    status, _, err = openstack("memory host delegate host-2 --mib 512 --wait --timeout 0.05")
    assert status == 1
    assert "host-2 is not done after 0.05 s and goes on (lend 0 of 512 MiB, pending)" in err
    assert "openstack memory lender show host-2" in err


def test_a_refusal_while_it_is_followed_is_told(openstack, steps):
    steps("host-2", HostUnusable("host host-2 is fenced"))
    status, _, err = openstack("memory host delegate host-2 --mib 512 --wait")
    assert status == 1
    assert "pondstack.host_unusable" in err


def test_progress_is_one_line_on_a_terminal(openstack, steps, monkeypatch):
    steps("host-3", {"done_mib": 64}, {"state": "done", "done_mib": 128})
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda stream: stream is sys.stderr)
    status, _, err = openstack("memory host reclaim host-3 --mib 128 --wait")
    assert status == 0
    assert "\r\x1b[Khost-3: reclaim 64 of 128 MiB, pending\r\x1b[Khost-3: reclaim 128 of 128 MiB, done\n" in err


def test_lenders_came_with_1_5(openstack):
    status, _, err = openstack("--os-memory-api-version 1.4 memory lender list")
    assert status == 1
    assert "came with memory 1.5" in err
