"""Eq. 1 over the curves of the models that serve, for each PDM."""

from pondstack.prediction.choice import Limits, choose

UM = {
    "curve": [
        {"gain": 10.0, "loss": 0.5, "known": 0.2, "cold": 2.0, "measured_op": 0.1},
        {"gain": 20.0, "loss": 1.5, "known": 0.1, "cold": 2.0, "measured_op": 1.0},
        {"gain": 30.0, "loss": 6.0, "known": 0.0, "cold": 0.3, "measured_op": 5.0},
    ]
}
LI = {
    "curves": {
        "1": [],
        "5": [{"gain": 15.0, "loss": 0.5, "threshold": 2.0}, {"gain": 30.0, "loss": 1.5, "threshold": 4.0}],
    }
}


def test_both_models_share_one_budget():
    found = choose(UM, LI, Limits(98.0, 4.0, 4.0))
    assert list(found) == ["0", "1", "5"]
    five = found["5"]
    assert (five.insensitive.gain, five.untouched.gain) == (30.0, 10.0)
    assert five.loss == 2.0
    assert five.insensitive.setting["threshold"] == 4.0
    assert five.untouched.setting["known"] == 0.2


def test_where_no_curve_says_anything_the_untouched_memory_has_all_of_it():
    found = choose(UM, LI, Limits(98.0, 4.0, 4.0))
    assert found["0"] == found["1"]
    assert (found["0"].insensitive.gain, found["0"].untouched.gain) == (0.0, 20.0)


def test_its_own_cap_holds_for_the_untouched_memory_whatever_tp_leaves():
    assert choose(UM, None, Limits(90.0, 50.0, 4.0))["0"].untouched.gain == 30.0
    assert choose(UM, None, Limits(90.0, 4.0, 4.0))["0"].untouched.gain == 20.0
    assert choose(UM, LI, Limits(90.0, 4.0, 4.0))["5"].gain == 50.0


def test_its_own_cap_holds_for_the_latency_sensitivity():
    assert choose(UM, LI, Limits(90.0, 4.0, 1.0))["5"].insensitive.gain == 15.0


def test_without_models_nothing_is_risked():
    found = choose(None, None, Limits(98.0, 4.0, 4.0))
    assert (list(found), found["0"].gain, found["0"].loss) == (["0"], 0.0, 0.0)
    assert choose(None, LI, Limits(98.0, 4.0, 4.0))["5"].gain == 30.0
