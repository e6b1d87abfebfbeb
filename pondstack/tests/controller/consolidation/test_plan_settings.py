"""What plans are decided by: a plan's own setting, else what was set at run time, else the option."""

import pytest
from oslo_config import cfg

from pondstack.conf import consolidation, sleep
from pondstack.controller.consolidation.plan_settings import PlanSettings
from pondstack.domain.consolidation_limits import NOTHING_SET, ConsolidationLimits
from pondstack.domain.errors import BadRequest


@pytest.fixture
def conf():
    conf = cfg.ConfigOpts()
    consolidation.register_opts(conf)
    sleep.register_opts(conf)
    conf([])
    conf.set_override("reserve_percent", 10.0, "consolidation")
    conf.set_override("least_awake", 4, "consolidation")
    return conf


def test_options_hold_where_nothing_is_set(conf):
    settings = PlanSettings(conf, lambda: NOTHING_SET)
    assert (settings.of({}).reserve_percent, settings.of({}).least_awake, settings.least_awake()) == (10.0, 4, 4)


def test_what_is_set_at_run_time_holds_at_once_even_if_it_is_zero(conf):
    limits = [ConsolidationLimits(25.0)]
    settings = PlanSettings(conf, lambda: limits[0])
    assert (settings.of({}).reserve_percent, settings.of({}).least_awake) == (25.0, 4)
    limits[0] = ConsolidationLimits(0.0, 0)
    assert (settings.of({}).reserve_percent, settings.of({}).least_awake, settings.least_awake()) == (0.0, 0, 0)


def test_a_plan_may_leave_more_hosts_awake_and_not_fewer(conf):
    settings = PlanSettings(conf, lambda: ConsolidationLimits(25.0, 3))
    assert settings.of({"least_awake": 5}).least_awake == 5
    with pytest.raises(BadRequest, match="cannot leave 2 hosts awake where 3 are to stay so"):
        settings.of({"least_awake": 2})


def test_an_unknown_setting_is_refused(conf):
    with pytest.raises(BadRequest, match="no setting step_seconds"):
        PlanSettings(conf, lambda: NOTHING_SET).of({"step_seconds": 1.0})
