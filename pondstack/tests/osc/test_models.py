"""openstack memory model."""

import pytest

from pondstack.db.models import ModelRow
from tests.fixtures import sample_models, sample_rack


def test_list(json_of, openstack):
    assert [row["State"] for row in json_of("memory model list")] == ["candidate", "running"]
    assert [row["Version"] for row in json_of("memory model list --limit 1")] == [sample_models.CANDIDATE]
    assert "| um   | candidate |" in openstack("memory model list")[1]


def test_show_prints_what_pondstack_manage_prints(openstack):
    out = openstack(f"memory model show {sample_models.CANDIDATE}")[1]
    for text in (
        "UM  21.5  OP   1.2 (bound   1.8)  margins +10 % / no pool  <- chosen",
        "budget 2 % of the instances (TP 98 %)",
        "expected pool share 21.5 % of the memory, mispredictions 1.8 % of the instances",
        "500 measured, 40 synthetic",
        "static UM 15.0 % at OP 9.0 %",
        "300 to learn, 120 to set margins, 120 to judge",
    ):
        assert text in out
    assert out.count("<- chosen") == 1


def test_show_without_a_version_is_of_the_one_that_runs(json_of):
    shown = json_of("memory model show")
    assert (shown["version"], shown["state"]) == (sample_models.RUNNING, "running")
    assert shown["manifest"] == sample_models.MANIFEST


def test_nothing_is_made_up_of_what_a_manifest_does_not_have(api, json_of, openstack):
    with api.database.engine.begin() as connection:
        connection.execute(ModelRow.__table__.update().values(manifest={"kind": "other"}, kind="other"))
    shown = json_of("memory model show")
    assert (shown["pool_percent"], shown["synthetic_labels"], shown["untouched_percent"]) == (None, None, None)
    status, out, _ = openstack("memory model show")
    assert (status, "chosen" in out) == (0, False)


def test_of_none(api, openstack):
    with api.database.engine.begin() as connection:
        connection.execute(ModelRow.__table__.update().values(state="candidate"))
    status, _, err = openstack("memory model show")
    assert (status, "no model runs: the static share serves" in err) == (1, True)


@pytest.mark.parametrize("verb", ["show", "promote", "rollback"])
def test_an_unknown_one(openstack, verb):
    status, _, err = openstack(f"memory model {verb} um-9")
    assert (status, "pondstack.not_found" in err) == (1, True)


def test_promote_and_rollback(json_of, openstack):
    newer, older = sample_models.CANDIDATE, sample_models.RUNNING
    assert json_of(f"memory model promote {newer}") == {"running": newer, "former": older}
    status, _, err = openstack(f"memory model rollback {older}")
    assert (status, "pondstack.conflict" in err) == (1, True)
    assert json_of("memory model rollback") == {"running": older, "former": newer}
    assert json_of(f"memory model rollback {older}") == {"running": None, "former": older}
    status, _, err = openstack("memory model rollback")
    assert (status, "no model runs" in err) == (1, True)


def test_a_project_may_not(openstack):
    for words in ("list", "show", f"promote {sample_models.CANDIDATE}", "rollback"):
        status, out, err = openstack(f"memory model {words}", token=f"joe:{sample_rack.BLUE}")
        assert (status, "pondstack.forbidden" in err) == (1, True), words
        assert "um-" not in out
