"""Hosts: set, fence, delete, and pools that go, through the real API in process."""

import json

import pytest

from tests.fixtures import sample_rack


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
    assert json_of("--os-memory-api-version 1.16 memory host fence host-3 --reason heat --force")["fenced"] is True


def test_a_fence_is_of_the_host_as_it_was_read(api, openstack, monkeypatch):
    """Somebody fences it and lets it take part again in between: it is not fenced, and the message says what to do."""
    real = api.controller.fence_host

    def late(**arguments):
        api.ledger.failures.fence_host("host-1", "an earlier request", force=True)
        return real(**arguments)

    monkeypatch.setattr(api.controller, "fence_host", late)
    status, _, err = openstack("memory host fence host-1 --reason cut --force")
    assert (status, "pondstack.generation_conflict" in err, "Look at the host" in err) == (1, True, True)


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
