"""Controllers and the fail-over between them, through the real API in process."""

import json
from dataclasses import replace

import pytest

from pondstack.domain.errors import GenerationConflict, NotLeader, Unavailable
from tests.fixtures import sample_rack


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
