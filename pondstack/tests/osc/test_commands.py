"""Each command through OpenStackClient's own shell against the real API in process."""

import json
from dataclasses import replace

import pytest

from pondstack.domain.errors import GenerationConflict, NotLeader, Unavailable
from pondstack.osc.client import ApiError, MemoryClient
from pondstack.osc.v1.columns import FreeBuffer, Names, Span, Tiering
from tests.fixtures import sample_rack

COLUMNS = {
    "memory pool list": ["UUID", "Name", "State", "Slice MiB", "Total", "Slices", "Hosts"],
    "memory slice list pool0": ["Pool", "Slices", "State", "Host", "Consumer", "Allocation", "Reason", "Cause"],
    "memory host list": ["Name", "Enabled", "Up", "Pool MiB", "Pools", "Disabled Reason"],
    "memory agent list": ["Host", "Up", "Version", "Epoch", "Last Heartbeat", "Heartbeat Age Seconds"],
    "memory lender list": ["Host", "Kind", "Lent MiB", "Lendable MiB", "Buffer MiB", "Buffers"],
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


def test_host_set(json_of, openstack):
    status, out, _ = openstack(["memory", "host", "set", "host-1", "--disable", "--reason", "new memory", "-f", "json"])
    assert status == 0
    host = json.loads(out)
    assert (host["enabled"], host["disabled_reason"]) == (False, "new memory")
    assert json_of("memory host set host-1 --enable")["enabled"] is True
    assert json_of("memory host show host-1")["generation"] == 2


def test_host_set_has_a_host_hold_slices_for_itself(api, json_of, openstack):
    shown = json_of("memory host set host-2 --tier-slices 2 --base-slices 1 --pool pool0")["host_slices"]
    assert [(item["purpose"], item["wanted"], item["online"]) for item in shown] == [("base", 1, 0), ("tier", 2, 0)]
    base = next(item for item in api.ledger.holdings.find() if item.purpose == "base")
    api.ledger.holdings.note(base, "its agent is silent for 30 s")
    text = openstack("memory host show host-2")[1]
    assert f"base: 0 of 1 online, pool {sample_rack.POOL}: its agent is silent for 30 s" in text
    assert json_of("memory host set host-2 --enable --base-slices 0")["host_slices"][0]["wanted"] == 0
    assert json_of("--os-memory-api-version 1.10 memory host show host-2")["host_slices"] is None
    status, _, err = openstack("memory host set host-2 --tier-slices 99")
    assert status == 1
    assert "has 8 slices" in err


def test_host_set_switches_tiering(json_of, openstack):
    assert json_of("memory host show host-3")["tiering_on"] is None
    status, _, err = openstack("memory host set host-3 --tiering on")
    assert status == 1
    assert "has no slices for tiering" in err
    assert json_of("memory host set host-3 --tier-slices 1 --tiering on")["tiering_on"] is True
    assert json_of("memory host set host-3 --tiering off")["tiering_on"] is False
    assert json_of("memory host set host-3 --tiering default")["tiering_on"] is None
    status, _, err = openstack("memory host set host-1 --tier-slices 1 --tiering on")
    assert status == 1
    assert "pondstack.purpose_conflict" in err


def test_host_delete_gives_host_slices_back_first(api, openstack):
    openstack("memory host set host-3 --tier-slices 1 --base-slices 1")
    openstack("memory host delete host-3 --wait --timeout 0.1")
    assert [item.wanted for item in api.ledger.holdings.find()] in ([], [0, 0])


def test_host_show_tells_how_the_kernel_tiers(json_of, openstack):
    assert json_of("memory host show host-1")["tiering"] == sample_rack.TIERING
    rows = [
        line.split("|")[2].strip() for line in openstack("memory host show host-1 -c tiering")[1].splitlines()[3:-1]
    ]
    assert rows == ["demotion true", "promotion 2", "watermark_scale_factor 100", "tier 4: node 0", "tier 22: node 1"]
    assert "| tiering | -     |" in openstack("memory host show host-2 -c tiering")[1]
    assert json_of("--os-memory-api-version 1.2 memory host show host-1")["tiering"] is None


def test_what_a_host_lends_and_waits_for(openstack, json_of):
    assert json_of("memory host show host-1")["lending"] == {"lent_mib": 512, "admitted_mib": 512, "operation": None}
    assert "512 MiB, 512 of them to be borrowed" in openstack("memory host show host-1 -c lending")[1]
    waits = "lend 0 of 2048 MiB, pending: 2048 MiB are to leave the host, and instances leave 512 MiB: move some away"
    assert waits in openstack("memory host show host-2 -c lending")[1]
    assert json_of("--os-memory-api-version 1.8 memory host show host-1")["lending"] is None


def test_host_set_wants_one_direction(openstack):
    with pytest.raises(SystemExit):
        openstack("memory host set host-1 --enable --disable")
    status, _, err = openstack("memory host set host-1")
    assert status == 1
    assert "say what to change" in err
    status, _, err = openstack("memory host set host-1 --enable --reason because")
    assert status == 1
    assert "--disable only" in err


def test_host_set_says_when_somebody_else_was_faster(api, openstack):
    real = api.controller.set_host

    def faster(**arguments):
        api.ledger.hosts.set("host-1", False, "the other operator", None)
        return real(**arguments)

    api.controller.set_host = faster
    status, _, err = openstack("memory host set host-1 --disable")
    assert status == 1
    assert "pondstack.generation_conflict" in err
    assert "read it again" in err


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


def test_controllers(json_of):
    rows = json_of("memory controller list")
    assert [(row["Name"], row["Role"]) for row in rows] == [
        ("controller-1", "leader"),
        ("controller-2", "standby"),
        ("controller-3", "down"),
    ]
    controller = json_of("memory controller show controller-3")
    assert (controller["role"], controller["lag"], controller["holder"]) == ("down", 4, "controller-3:103:5f0a11b2")
    assert [row["Reaches Broker"] for row in rows] == [True, True, False]
    assert controller["reaches_broker"] is False
    assert controller["reached_seconds"] >= sample_rack.SILENT_SECONDS


def test_whether_a_controller_reaches_the_broker_for_people(api, openstack, json_of):
    with api.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE controllers SET reached_at = NULL WHERE name = 'controller-2'")
    _, out, _ = openstack("memory controller list -f value -c Name -c Role")
    assert out.splitlines()[1] == "controller-2 standby"
    _, out, _ = openstack("memory controller list")
    assert [line.split("|")[-2].strip() for line in out.splitlines()[3:-1]] == ["yes", "-", "no"]
    former = "--os-memory-api-version 1.1 memory controller"
    assert json_of(f"{former} list")[0]["Reaches Broker"] is None
    assert json_of(f"{former} show controller-1")["reached_seconds"] is None


def test_failover(api, json_of, openstack):
    assert json_of("memory controller failover --to controller-2") == {
        "from": "controller-1",
        "to": "controller-2",
        "epoch": 1,
    }
    assert api.controller.failovers == [("controller-1", "controller-2")]
    assert [row["Role"] for row in json_of("memory controller list")] == ["standby", "leader", "down"]
    status, _, err = openstack("memory controller failover --to controller-3")
    assert status == 1
    assert "controller controller-3 is down" in err


def test_failover_is_followed_until_another_one_leads(api, openstack, monkeypatch):
    looks = []
    read = api.reader.controllers

    def slow():
        """Show no leader, then a database that fails over, then the successor."""
        if not api.controller.failovers:
            return read()
        looks.append(len(looks))
        if len(looks) == 3:
            raise Unavailable("the database does not answer")
        return read() if len(looks) > 3 else [replace(node, role="standby") for node in read()]

    monkeypatch.setattr(api.reader, "controllers", slow)
    status, out, err = openstack("memory controller failover --wait -f json")
    assert status == 0
    done = json.loads(out)
    assert (done["from"], done["to"], done["leader"]) == ("controller-1", None, "controller-2")
    assert 0 <= done["away_seconds"] < 30
    assert "controller-2 leads with epoch 2; changes had to wait for" in err
    assert len(looks) > 3
    assert api.reader.host("host-1").generation == 0


@pytest.mark.parametrize("trouble", [NotLeader("not yet"), GenerationConflict("the other operator was faster")])
def test_failover_is_over_when_a_change_works(api, openstack, monkeypatch, trouble):
    tried = []
    real = api.controller.set_host

    def not_ready(**arguments):
        """Not work at first."""
        tried.append(arguments["enabled"])
        if len(tried) == 1:
            raise trouble
        return real(**arguments)

    monkeypatch.setattr(api.controller, "set_host", not_ready)
    api.ledger.hosts.set("host-1", False, "new memory", None)
    status, _, err = openstack("memory controller failover --wait")
    assert status == 0, err
    assert tried == ([False, False] if isinstance(trouble, NotLeader) else [False])
    assert api.reader.host("host-1").disabled_reason == "new memory"


def test_failover_that_nobody_takes_up_fails_in_time(api, openstack, monkeypatch):
    monkeypatch.setattr(api.controller, "failover", lambda **_: None)
    status, _, err = openstack("memory controller failover --wait --timeout 0.1")
    assert status == 1
    assert "controller-1 hands over, and no other controller leads" in err
    assert "openstack memory controller list" in err


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


def test_fence_and_unfence(api, json_of, openstack):
    status, _, err = openstack(["memory", "host", "fence", "host-1", "--reason", "a guess"])
    assert status == 1
    assert "not dead" in err
    status, out, _ = openstack(["memory", "host", "fence", "host-3", "--reason", "power supply", "-f", "json"])
    host = json.loads(out)
    assert (status, host["fenced"], host["fenced_reason"], host["pool_mib"]) == (0, True, "power supply", 0)
    assert json_of("memory host fence host-1 --reason cut --force")["fenced"] is True
    status, _, err = openstack("memory host unfence host-3")
    assert status == 1
    assert "not reported since" in err
    report = {"host": "host-3", "sequence": 2, "epoch": 1, "version": "0", "pools": [], "attached": []}
    api.ledger.hosts.heartbeat(report)
    assert json_of("memory host unfence host-3")["fenced"] is False


def test_host_delete_is_refused_with_the_list_of_what_is_left(openstack, api):
    status, _, err = openstack("memory host delete host-1")
    assert status == 1
    assert "pondstack.not_empty" in err
    assert "slices (1 assigning, 2 online)" in err
    assert api.reader.host("host-1").enabled


def test_host_delete_waits_until_nothing_is_left(openstack, api):
    _empty(api, "host-3")
    assert openstack("memory host delete host-3")[0] == 0
    status, _, err = openstack("memory host show host-3")
    assert (status, "pondstack.not_found" in err) == (1, True)
    assert openstack("memory host delete host-3")[0] == 1


def test_host_delete_wait_drains_first(openstack, api, monkeypatch):
    removed, tries = api.controller.remove_host, []

    def remove(**arguments):
        tries.append(api.reader.host("host-2").enabled)
        if len(tries) == 3:
            _empty(api, "host-2")
        removed(**arguments)

    monkeypatch.setattr(api.controller, "remove_host", remove)
    status, _, err = openstack("memory host delete host-2 --wait --timeout 60")
    assert (status, tries) == (0, [False] * 3)
    assert "this is still there" in err


def test_host_delete_wait_gives_up_with_what_is_left(openstack, api):
    status, _, err = openstack("memory host delete host-1 --wait --timeout 0.1")
    assert status == 1
    assert "not removed after 0.1 s" in err
    assert "slices (" in err
    host = api.reader.host("host-1")
    assert (host.enabled, host.disabled_reason) == (False, "it is being removed")


def test_pool_delete(openstack, api):
    status, _, err = openstack("memory pool delete pool0")
    assert status == 1
    assert "5 slices (1 assigning, 3 online, 1 quarantined)" in err
    assert openstack("memory pool delete pool0 --wait --timeout 0.1")[0] == 1
    _free_slices(api)
    assert openstack("memory pool delete pool0")[0] == 0
    assert api.reader.pools() == []


def _free_slices(api):
    with api.database.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE slices SET state = 'free', host = NULL, allocation_uuid = NULL, cause = NULL"
        )
        connection.exec_driver_sql("DELETE FROM allocations")


def _empty(api, name):
    """Let a host end, with nothing left of it."""
    _free_slices(api)
    with api.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE buffers SET promised_to = NULL WHERE promised_to = ?", (name,))
        connection.exec_driver_sql("DELETE FROM buffers WHERE lender = ? OR host = ?", (name, name))
        connection.exec_driver_sql("UPDATE hosts SET last_heartbeat = 0 WHERE name = ?", (name,))


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
