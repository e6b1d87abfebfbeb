"""openstack memory model."""

import pytest
from sqlalchemy import update

from pondstack.db.models import ModelRow
from tests.fixtures import sample_models, sample_rack

POINT = {"gain": 24.0, "loss": 1.9, "threshold": 1.25, "measured_fp": 0.5}
LATENCY = {
    "kind": "li",
    "predictor": "forest",
    "features": ["dram_bound_percent"],
    "source": "synthetic",
    "opset": 15,
    "parity": 1e-6,
    "data": {
        "samples": {"synthetic": 158},
        "workloads": [105, 53],
        "left_out": 0,
        "window": ["2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"],
        "cpus": ["made up"],
    },
    "budget_percent": 2.0,
    "target_percent": 98.0,
    "curves": {"1": [], "5": [POINT, {"gain": 40.0, "loss": 5.0, "threshold": 4.0, "measured_fp": 4.0}]},
    "chosen": {"1": {"gain": 0.0, "loss": 0.0}, "5": POINT},
    "newest": {"candidate": {"li": 26.0, "fp": 0.0}},
    "verdict": {"better": True, "not_better_than": [], "text": "better"},
    "trained_at": "2026-11-23T02:00:00+00:00",
}


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


def test_a_model_of_latency_is_shown_with_its_chosen_points_and_says_that_it_is_made_up(api, json_of, openstack):
    with api.database.engine.begin() as connection:
        mine = ModelRow.version == sample_models.RUNNING
        connection.execute(update(ModelRow).where(mine).values(manifest=LATENCY, kind="li"))
    shown = json_of("memory model show --kind li")
    assert (shown["version"], shown["kind"], shown["synthetic_labels"]) == (sample_models.RUNNING, "li", 158)
    out = openstack("memory model show --kind li")[1]
    for text in (
        "SYNTHETIC: made-up samples, which say nothing of real guests; runs: 158 synthetic; counted on made up",
        "105 workloads to learn, 53 others to judge",
        "PDM   5 %: LI  24.0  FP  0.50 (bound  1.90)  predicted slowdown up to 1.25 %, of 2 points",
        "PDM   1 %: off, of 0 points none is within the budget",
    ):
        assert text in out
    status, _, err = openstack("memory model show --kind um")
    assert (status, "no model of kind um runs" in err) == (1, True)


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
