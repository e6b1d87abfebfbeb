"""A verdict is of what a VM touched and of what its own counters say."""

from dataclasses import replace

import pytest

from pondstack.domain.qos import Unknown, Verdict
from pondstack.qos.judge import judge, to_mitigate
from pondstack.qos.sensitivity import Sensitivity, SlowdownModel

from .builders import LIMITS, guest, says

NOBODY = Sensitivity()


@pytest.mark.parametrize(
    ("touched", "verdict"),
    [(None, "unobserved"), (0, "fits"), (204, "fits"), (205, "sensitive"), (4096, "sensitive")],
)
def test_the_limit_is_a_share_of_the_pool_memory(touched, verdict):
    assert judge(guest(touched=touched), says({"vm": 20.0}), LIMITS).verdict == verdict


def test_the_limit_is_some_mib_in_any_case():
    small = {"pool_mib": 1024, "untouched_mib": 1024 - 60.0}
    assert judge(guest(**small), says({"vm": 20.0}), LIMITS).verdict is Verdict.FITS
    assert judge(guest(**small), says({"vm": 20.0}), replace(LIMITS, touched_mib=0)).verdict is Verdict.SENSITIVE


@pytest.mark.parametrize(("percent", "verdict"), [(5.0, "insensitive"), (5.01, "sensitive")])
def test_sensitive_is_what_is_slowed_down_beyond_the_threshold(percent, verdict):
    assert judge(guest(), says({"vm": percent}), LIMITS).verdict == verdict


def test_a_model_that_calls_nobody_insensitive_calls_all_sensitive():
    assert judge(guest(), says({"vm": 0.0}, threshold=None), LIMITS).verdict is Verdict.SENSITIVE


def test_the_threshold_is_that_of_the_vm_s_own_pdm():
    asked = []
    models = Sensitivity((SlowdownModel("li", {"vm": 1.0}, lambda pdm: asked.append(pdm) or 5.0),))
    judge(guest(pdm_percent=2.0), models, LIMITS)
    judge(guest(), models, LIMITS)
    assert asked == [2.0, 5.0]


def test_of_two_models_the_worst_word_counts():
    serving = SlowdownModel("li-forest", {"vm": 9.0}, lambda _: 10.0)
    light = SlowdownModel("li-light", {"vm": 6.0, "other": 1.0}, lambda _: 5.0)
    found = judge(guest(), Sensitivity((serving, light)), LIMITS)
    assert (found.verdict, found.slowdown.version) == (Verdict.SENSITIVE, "li-light")
    assert judge(guest("other"), Sensitivity((serving, light)), LIMITS).verdict is Verdict.INSENSITIVE


def test_the_expected_slowdown_is_of_the_share_that_it_touched_in_the_pool():
    whole = judge(guest(touched=1024), says({"vm": 20.0}), LIMITS)
    assert whole.expected_percent == 20.0, "what it touched in all is not known"
    part = judge(guest(touched=1024, memory_untouched_mib=8192 - 4096), says({"vm": 20.0}), LIMITS)
    assert part.expected_percent == pytest.approx(5.0)
    assert part.evidence()["touched_mib"] == 1024


@pytest.mark.parametrize(
    ("slowdown", "unknown", "source", "wanted"),
    [
        (20.0, "leave", "untouched", True),
        (1.0, "mitigate", "untouched", False),
        (None, "mitigate", "untouched", True),
        (None, "leave", "untouched", False),
        (20.0, "mitigate", "fixed", False),
        (20.0, "mitigate", "", True),
    ],
)
def test_who_is_mitigated(slowdown, unknown, source, wanted):
    limits = replace(LIMITS, unknown=Unknown(unknown))
    said = NOBODY if slowdown is None else says({"vm": slowdown})
    assert to_mitigate(judge(guest(split_source=source), said, limits), limits) is wanted
