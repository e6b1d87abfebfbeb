"""Each command through OpenStackClient's own shell against the real API in process."""

import json

import pytest

from pondstack.osc.client import ApiError, MemoryClient
from pondstack.osc.v1.columns import FreeBuffer, Names, Span, Tiering
from tests.fixtures import sample_rack

COLUMNS = {
    "memory pool list": ["UUID", "Name", "State", "Slice MiB", "Total", "Slices", "Hosts"],
    "memory slice list pool0": ["Pool", "Slices", "State", "Host", "Consumer", "Allocation", "Reason", "Cause"],
    "memory host list": ["Name", "Enabled", "Up", "Pool MiB", "Pools", "Disabled Reason", "Sleep"],
    "memory agent list": ["Host", "Up", "Version", "Epoch", "Last Heartbeat", "Heartbeat Age Seconds"],
    "memory lender list": ["Host", "Kind", "Lent MiB", "Lendable MiB", "Buffer MiB", "Buffers", "Borrowed MiB"],
    "memory loan list": ["UUID", "Consumer", "Guaranteed", "State", "Lent MiB", "Host", "Buffers"],
    "memory share list": [
        "Consumer",
        "Pool MiB",
        "Remote MiB",
        "Remote Lent MiB",
        "Disk MiB",
        "Swap MiB",
        "Swap Lent MiB",
        "Hosts",
    ],
    "memory buffer list": [
        "Lender",
        "Kind",
        "Buffers",
        "State",
        "Host",
        "Consumer",
        "Promised To",
        "Leaving",
        "Reason",
        "Cause",
    ],
    "memory controller list": ["Name", "Role", "Epoch", "Seen Seconds", "Lag", "Reaches Broker"],
    "memory split list": [
        "Consumer",
        "Local MiB",
        "Pool MiB",
        "Source",
        "Confidence",
        "Reason",
        "Created At",
        "Project",
        "Model",
    ],
    "memory model list": [
        "Version",
        "Kind",
        "State",
        "Created At",
        "Promoted At",
        "UM Percent",
        "OP Percent",
        "Pool Percent",
        "Mispredictions Percent",
        "Synthetic Labels",
    ],
    "memory allocation list": ["UUID", "Consumer", "State", "Local MiB", "Pool MiB", "Host", "Pool", "Slices"],
}


TELEMETRY = f"memory telemetry show {sample_rack.CONSUMERS[0]}"
COLUMNS[TELEMETRY] = [
    "Metric",
    "Node",
    "Mean",
    "Minimum",
    "Maximum",
    "Readings",
    "Taken At",
    "Host",
    "Reason",
    "Source",
]


@pytest.mark.parametrize("line", COLUMNS)
def test_the_columns_of_a_list_are_stable(json_of, line):
    rows = json_of(line)
    assert rows
    assert all(list(row) == COLUMNS[line] for row in rows)


def test_lists_span_pages(json_of):
    assert len(json_of("memory slice list pool0 --each")) == 8
    assert len(json_of("memory host list")) == 3
    assert [row["Name"] for row in json_of("memory host list --limit 1 --marker host-1")] == ["host-2"]


def test_pool(json_of, openstack):
    assert json_of("memory pool show pool0")["slices"]["free"] == 3
    assert json_of(f"memory pool show {sample_rack.POOL}")["name"] == "pool0"
    assert "free 3, assigning 1, online 3, quarantined 1" in openstack("memory pool list")[1]


def test_a_pool_says_how_much_it_keeps_back_and_why(json_of, openstack):
    assert json_of("memory pool show pool0")["free_buffer"]["give_back_seconds"] == 12.5
    text = openstack("memory pool show pool0")[1]
    assert "1 slices (1 needed by 3 starts in the 12.5 s in which slices come back), 0 misses" in text
    assert json_of("--os-memory-api-version 1.7 memory pool show pool0")["free_buffer"] is None


def test_a_buffer_is_told_to_people():
    value = {"slices": 2, "needed_slices": 0, "give_back_seconds": None, "starts": 4, "misses": 1}
    assert FreeBuffer(value).human_readable() == "2 slices (no slice came back lately), 1 misses"
    assert FreeBuffer(None).human_readable() == "-"


def test_a_quarantine_has_a_cause_and_an_older_api_none(json_of):
    assert json_of("memory slice show pool0 4")["cause"] == "unknown_attachment"
    assert json_of("memory slice show pool0 0")["cause"] is None
    rows = json_of("--os-memory-api-version 1.5 memory slice list pool0")
    assert [(row["Slices"], row["Cause"]) for row in rows if row["State"] == "quarantined"] == [("4", None)]
    assert json_of("--os-memory-api-version 1.5 memory buffer list")


def test_slices_are_joined_to_extents(json_of):
    rows = json_of("memory slice list pool0")
    assert [row["Slices"] for row in rows] == ["0-1", "2", "3", "4", "5-7"]
    assert [row["State"] for row in rows] == ["online", "assigning", "online", "quarantined", "free"]
    assert [row["Slices"] for row in json_of("memory slice list pool0 --state free")] == ["5-7"]
    assert [row["Slices"] for row in json_of("memory slice list pool0 --host host-1")] == ["0-1", "2"]


def test_slice_show(json_of, openstack):
    assert json_of("memory slice show pool0 4")["state"] == "quarantined"
    status, _, err = openstack("memory slice show pool0 8")
    assert status == 1
    assert "pondstack.not_found" in err


def test_telemetry(json_of, openstack):
    rows = json_of(TELEMETRY)
    assert [(row["Metric"], row["Node"], row["Mean"]) for row in rows] == [
        ("hot_mib", None, None),
        ("untouched_mib", None, 2560.0),
        ("untouched_mib", 0, 512.0),
        ("untouched_mib", 1, 2048.0),
    ]
    assert rows[0]["Reason"] == "somebody else uses DAMON on this host"
    assert len(json_of(f"{TELEMETRY} --history samples --metric untouched_mib --limit 2")) == 2
    assert json_of(f"{TELEMETRY} --history periods") == []
    assert "| untouched_mib | 1    | 2048.00 |" in openstack(TELEMETRY)[1]


def test_split(json_of, openstack):
    split = json_of(f"memory split show {sample_rack.CONSUMERS[0]}")
    assert (split["local_mib"], split["pool_mib"], split["source"]) == (2048, 2048, "fixed")
    status, _, err = openstack("memory split show 0635cccd-1e78-5473-b66a-bacffc430000")
    assert status == 1
    assert "pondstack.not_found" in err


def test_splits(json_of, openstack):
    fixed, late = json_of("memory split list")
    assert (fixed["Source"], late["Source"]) == ("fixed", "timeout")
    assert [row["Consumer"] for row in json_of(f"memory split list --project-id {sample_rack.BLUE}")] == [
        sample_rack.CONSUMERS[0]
    ]
    (own,) = json_of("memory split list", token=f"joe:{sample_rack.BLUE}")
    assert (own["Pool MiB"], own["Source"], own["Reason"], own["Confidence"]) == (2048, "fixed", None, None)
    assert "| -          | -      |" in openstack("memory split list", token=f"joe:{sample_rack.BLUE}")[1]


def test_who_may_sees_the_model_and_what_it_decided_from(api, json_of, openstack):
    with api.database.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE splits SET model_version = 'um-1', inputs = ?", ('{"pdm": 5, "history": 3}',)
        )
    command = f"memory split show {sample_rack.CONSUMERS[0]}"
    shown = json_of(command)
    assert (shown["model_version"], shown["inputs"]) == ("um-1", {"pdm": 5, "history": 3})
    assert "history 3, pdm 5" in openstack(command)[1]
    for own in (json_of(command, token=f"joe:{sample_rack.BLUE}"), json_of(f"--os-memory-api-version 1.13 {command}")):
        assert (own["model_version"], own["inputs"]) == (None, None)


def test_allocation_of_an_instance_or_by_its_own_uuid(api, json_of, openstack):
    by_instance = json_of(f"memory allocation show {sample_rack.CONSUMERS[0]}")
    assert by_instance == json_of(f"memory allocation show {api.allocations[0]}")
    assert by_instance["extents"] == [{"start": 0, "count": 2}]
    assert (by_instance["local_mib"], by_instance["pool_mib"]) == (2048, 2048)
    assert "| 0-1 " in openstack(f"memory allocation show {sample_rack.CONSUMERS[0]}")[1]


def test_allocation_of_an_instance_that_migrates(api, openstack):
    with api.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE allocations SET consumer_uuid = ?", (sample_rack.CONSUMERS[0],))
    status, _, err = openstack(f"memory allocation show {sample_rack.CONSUMERS[0]}")
    assert status == 1
    assert all(uuid in err for uuid in api.allocations)
    assert openstack(f"memory allocation show {api.allocations[0]}")[0] == 0


def test_allocation_that_is_none(openstack):
    status, _, err = openstack(f"memory allocation show {sample_rack.POOL}")
    assert status == 1
    assert "no allocation and no instance with pool memory" in err


def test_allocation_filters(api, json_of):
    assert [row["UUID"] for row in json_of("memory allocation list --host host-2")] == [api.allocations[2]]
    assert len(json_of("memory allocation list --pool pool0")) == 3
    assert len(json_of(f"memory allocation list --project-id {sample_rack.BLUE}")) == 2
    assert [row["UUID"] for row in json_of(f"memory allocation list --consumer {sample_rack.CONSUMERS[1]}")] == [
        api.allocations[1]
    ]


def test_a_project_sees_its_own_with_dashes_for_the_place(api, json_of, openstack):
    token = f"joe:{sample_rack.GREEN}"
    (row,) = json_of("memory allocation list", token=token)
    assert list(row) == COLUMNS["memory allocation list"]
    assert (row["UUID"], row["Host"], row["Pool"], row["Slices"]) == (api.allocations[2], None, None, None)
    line = openstack("memory allocation list", token=token)[1].splitlines()[3]
    assert [cell.strip() for cell in line.split("|")][6:9] == ["-", "-", "-"]
    status, _, err = openstack("memory pool list", token=token)
    assert status == 1
    assert "pondstack.forbidden" in err


def test_agent(json_of):
    assert json_of("memory agent show host-3")["up"] is False


def test_leader(json_of):
    leader = json_of("memory leader show")
    assert (leader["holder"], leader["epoch"], leader["fresh"]) == ("controller-1:101:5f0a11b2", 1, True)


def test_audit_tells_by_its_exit_status(api, openstack):
    status, out, err = openstack("memory audit -f json")
    assert status == 1
    assert json.loads(out)[0]["Code"] == "quarantined"
    assert "Audit: 1 finding(s)" in err
    status, out, err = openstack("memory audit --repair -f json")
    assert status == 0
    assert json.loads(out) == []
    assert "Audit: clean" in err
    assert api.controller.audits == [False, True]


def test_the_version_can_be_chosen(openstack):
    assert openstack("--os-memory-api-version 1 memory pool list")[0] == 0
    status, _, err = openstack("--os-memory-api-version 1.99 memory pool list")
    assert status == 1
    assert "pondstack.version_not_supported" in err


def test_what_others_told_does_not_reach_the_terminal_raw(openstack, json_of, monkeypatch):
    """A table has escapes; -f json has what the API gave."""
    name, reason = "pool\x1b[2J", "found\rby\nan audit"
    read = MemoryClient.get
    monkeypatch.setattr(MemoryClient, "get", lambda self, *path, **query: {**read(self, *path, **query), "name": name})
    status, out, err = openstack("memory pool show pool0")
    assert (status, "\x1b" in out, r"pool\x1b[2J" in out) == (0, False, True), err
    assert json_of("memory pool show pool0")["name"] == name
    assert str(ApiError(409, "pondstack.conflict", reason, "")).startswith(r"found\rby\nan audit (HTTP 409")


def test_texts_within_values_are_escaped():
    tiering = Tiering({"settings": {}, "tiers": {}, "trouble": ["no\x1b[2J", "none"]})
    assert tiering.human_readable() == "trouble: no\\x1b[2J\ntrouble: none"
    assert tiering.machine_readable()["trouble"][0] == "no\x1b[2J"
    assert Names(["h1\n", "h2"]).human_readable() == r"h1\n, h2"


def test_history(json_of, openstack):
    command = f"memory history show {sample_rack.CONSUMERS[0]}"
    found = json_of(command)
    assert (found["flavor_name"], found["untouched_mib"], found["trains"]) == ("pond.large", 2560, False)
    assert found["remaining_median_seconds"] == pytest.approx(12 * 3600, rel=0.01)
    out = openstack(command)[1]
    for cell in ("all: 2560 MiB", "node 1: 2048 MiB", " h ", " min "):
        assert cell in out
    assert "pondstack.not_found" in openstack("memory history show 0635cccd-1e78-5473-b66a-bacffc430000")[2]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0, "0 s"), (119, "119 s"), (720, "12 min"), (12600, "3.5 h"), (181440, "2.1 d")],
)
def test_spans(seconds, text):
    assert Span(seconds).human_readable() == text
    assert Span(seconds).machine_readable() == seconds
