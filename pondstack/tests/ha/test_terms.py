"""Terms that cannot work are refused, with what to change."""

import pytest
from oslo_config import cfg

from pondstack.conf import ha
from pondstack.domain.errors import BadRequest
from pondstack.ha.broker import BrokerTerms
from pondstack.ha.lease import LONGEST_LEASE_SECONDS, Terms
from pondstack.ha.terms import broker_terms_of, terms_of


def conf_with(**values: float) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    ha.register_opts(conf)
    for name, value in values.items():
        conf.set_override(name, value, group=ha.GROUP)
    return conf


def test_the_defaults_work_and_are_those_of_the_code() -> None:
    assert terms_of(conf_with()) == Terms()
    assert broker_terms_of(conf_with()) == BrokerTerms()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"lease_seconds": 0.8}, r"renew_seconds \(0.3\) must be less than a third .* below 0.267"),
        ({"renew_seconds": 0.4}, "below 0.4"),
        ({"poll_seconds": 0.45}, "a leader renews when it looks"),
        ({"margin_seconds": 0.6}, "less than half"),
    ],
)
def test_refused(values: dict[str, float], says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        terms_of(conf_with(**values))


def test_a_silence_too_short_for_its_checks_is_refused() -> None:
    assert broker_terms_of(conf_with(broker_silent_seconds=0.0)).silent_seconds == 0
    with pytest.raises(BadRequest, match=r"broker_silent_seconds \(5\) must be 0, or .* set it to 6 or more"):
        broker_terms_of(conf_with(broker_silent_seconds=5.0))
    with pytest.raises(BadRequest, match="set it to 12 or more"):
        broker_terms_of(conf_with(node_report_seconds=2.0))


def test_no_lease_is_longer_than_a_clock_jump_is_told_by() -> None:
    with pytest.raises(ValueError, match="30"):
        conf_with(lease_seconds=LONGEST_LEASE_SECONDS + 1)
