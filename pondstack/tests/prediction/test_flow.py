"""The steps of Pond 4.4, one after the other, on figures that are given."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondstack.domain.allowance import Allowance
from pondstack.domain.sizing import Features, Policy, PondSpecs, Split, decide
from pondstack.prediction import table
from pondstack.prediction.balance import OFF, Balance, Point
from pondstack.prediction.serving import make_predictor, version_of, within_budget

UM, LI = "um-1", "li-1"
SAFE = Point(15.0, 1.0, {"known": 0.1, "cold": 0.3})
LESS = Point(10.0, 0.5, {"known": 0.2, "cold": 2.0})
POINTS = {
    "0": Balance(OFF, SAFE),
    "5": Balance(Point(20.0, 1.0, {"threshold": 3.0}), LESS),
    "10": Balance(Point(40.0, 1.5, {"threshold": 8.0}), LESS),
}
UNTOUCHED = {"version": UM, "projects": {"": {"16384/4": [0.5, 0, None]}, "p": {"16384/4": [0.75, 12, 0.6]}}}
SENSITIVITY = {"version": LI, "projects": {"p": {"16384/4": [4.0, 9]}, "q": {"16384/4": [3.0, 9]}}}


def about(untouched=UNTOUCHED, sensitivity=SENSITIVITY, points=POINTS, **options):
    made = table.join(untouched, sensitivity, points, **{"percent": 25, "min_local_percent": 10, **options})
    return json.loads(json.dumps(made))


def split(project, described=None, allowance=None, memory_mib=16384, slice_mib=1024, **specs) -> Split:
    features = Features("i", memory_mib, 4, project, specs=PondSpecs(**{"policy": Policy.AUTO, **specs}))
    return decide(features, within_budget(make_predictor(described or about()), allowance), slice_mib)


def test_an_insensitive_project_gets_all_but_a_minimum_from_the_pool():
    got = split("q")
    assert (got.source, got.model_version) == ("insensitive", LI)
    assert (got.local_mib, got.pool_mib) == (2048, 14336)  # 10 % of 16 GiB, up to a whole slice
    assert got.inputs == {"pdm": 5, "history": 9, "slowdown": 3.0, "threshold": 3.0}
    assert "insensitive up to 3.00 % at a PDM of 5 %" in got.reason


def test_the_pdm_of_the_flavor_decides_who_is_insensitive():
    assert split("p").source == "untouched"  # 4 % slower, and 3 % are allowed
    assert split("p", pdm_percent=10).source == "insensitive"
    assert split("q", pdm_percent=9).inputs["threshold"] == 3.0  # of the next smaller curve
    assert split("q", pdm_percent=4).source == "untouched"  # no curve: nobody is


def test_a_sensitive_project_gets_a_znuma_node_of_what_stays_untouched():
    got = split("p")
    # 0.75 less 20 % of the memory and of 4 GiB more: 0.5, 8 GiB.
    assert (got.pool_mib, got.model_version) == (8192, UM)
    assert got.inputs == {"pdm": 5, "history": 12, "share": 0.75, "margin": 0.2}
    assert got.confidence == pytest.approx(0.995)


def test_the_margin_is_that_of_the_flavors_pdm():
    assert split("p", pdm_percent=1).inputs["margin"] == 0.1  # without LI there is more for the untouched memory
    assert split("p", pdm_percent=1).pool_mib > split("p").pool_mib


def test_without_history_its_size_decides_and_without_that_the_static_share():
    assert split("new", pdm_percent=1).reason.endswith("by size alone: its project has no history")
    assert split("new").pool_mib == 0  # no share keeps to the budget
    assert split("new", memory_mib=8192).source == "static"


def test_caps_and_opt_outs_of_the_flavor_are_obeyed_by_both_models():
    for project in ("p", "q"):
        assert split(project, max_pool_percent=20).pool_mib == 3072
        assert split(project, max_pool_percent=0).pool_mib == 0
        assert split(project, policy=Policy.LOCAL).pool_mib == 0
        assert split(project, policy=Policy.LOCAL).source == "local"


@pytest.mark.parametrize(("percent", "local_mib"), [(1, 1024), (50, 8192), (51, 9216)])
def test_the_minimum_is_a_slice_at_least(percent, local_mib):
    assert split("q", about(min_local_percent=percent)).local_mib == local_mib


def test_where_nothing_is_left_beside_the_minimum_nobody_is_treated_as_insensitive():
    assert split("q", about(min_local_percent=100)).source == "untouched"
    small = {"version": LI, "projects": {"q": {"1024/4": [0.0, 9]}}}
    assert split("q", about(sensitivity=small), memory_mib=1024).source == "static"


def test_either_model_may_be_missing():
    assert split("q", about(untouched=None)).source == "insensitive"
    assert split("p", about(untouched=None)).source == "static"
    assert split("q", about(sensitivity=None)).source == "untouched"


def test_a_used_up_budget_leaves_all_memory_local():
    used_up = Allowance(0.0, {UM: 0.1, LI: 0.1})
    for project, size in (("p", 16384), ("q", 16384), ("new", 8192)):
        got = split(project, allowance=used_up, memory_mib=size)
        assert (got.pool_mib, got.source, got.model_version) == (0, "model_budget", "")
        assert "model show" in got.reason
    assert split("new", allowance=used_up).source == "untouched"  # it gives nothing anyway


def test_a_new_model_that_may_risk_nothing_leaves_the_other_one():
    allowance = Allowance(0.5, {UM: 0.1, LI: 1.0})
    assert split("p", allowance=allowance, pdm_percent=10).source == "untouched"
    got = split("q", allowance=allowance)
    assert (got.pool_mib, got.source) == (0, "model_budget")
    assert f"model {LI} may risk no more" in got.reason


def test_its_version_tells_a_table_from_another():
    assert version_of(about()) == version_of(about())
    assert version_of(about()) != version_of(about(percent=24))
    assert version_of({"kind": "static", "percent": 15}) == ""


@given(
    share=st.floats(0, 1),
    slowdown=st.floats(0, 20),
    memory_mib=st.integers(1, 1 << 20),
    slice_mib=st.sampled_from([1, 512, 1024, 4096]),
    pdm=st.integers(1, 100),
    cap=st.integers(0, 100),
)
def test_whatever_it_decides_is_whole_slices_within_the_cap(share, slowdown, memory_mib, slice_mib, pdm, cap):
    size = f"{memory_mib}/4"
    made = about(
        {"version": UM, "projects": {"p": {size: [share, 3, share]}}},
        {"version": LI, "projects": {"p": {size: [slowdown, 9]}}},
    )
    got = split("p", made, memory_mib=memory_mib, slice_mib=slice_mib, pdm_percent=pdm, max_pool_percent=cap)
    assert got.local_mib + got.pool_mib == memory_mib
    assert got.pool_mib % slice_mib == 0
    assert 0 <= got.pool_mib <= memory_mib * cap / 100
    assert got.local_mib >= 1
    if got.source == "insensitive":
        assert got.local_mib >= min(memory_mib, max(slice_mib, memory_mib * 0.1))
