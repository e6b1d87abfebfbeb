"""Who is cut off from the broker, who leads instead, and what cannot be configured."""

import itertools

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.ha.broker import MIN_CHECKS_PER_OUTAGE, BrokerTerms, Peer, successor

TERMS = BrokerTerms(check_seconds=1.0, silent_seconds=10.0)
NEVER = BrokerTerms(check_seconds=1.0, silent_seconds=0.0)
REPORT_SECONDS = 1.0


@pytest.mark.parametrize(
    ("terms", "reached_seconds", "cut_off", "reaches"),
    [
        (TERMS, 0.0, False, True),
        (TERMS, 10.0, False, True),
        (TERMS, 10.1, True, False),
        (TERMS, 1e6, True, False),
        (NEVER, 1e6, False, False),
        (NEVER, 5.0, False, True),
    ],
)
def test_silence(terms: BrokerTerms, reached_seconds: float, cut_off: bool, reaches: bool) -> None:
    assert terms.cut_off(reached_seconds) is cut_off
    assert terms.reaches(reached_seconds) is reaches


def test_of_one_that_never_said_so_nothing_is_known() -> None:
    assert TERMS.reaches(None) is None


@pytest.mark.parametrize(
    ("peers", "chosen"),
    [
        pytest.param([], None, id="alone"),
        pytest.param([Peer("b", True, 1.0)], "b", id="one that reaches it"),
        pytest.param([Peer("b", True, 5.0)], "b", id="just lately enough"),
        pytest.param([Peer("b", True, 5.1)], None, id="the broker is down for all"),
        pytest.param([Peer("b", True, None)], None, id="a release that does not check itself"),
        pytest.param([Peer("b", False, 1.0)], None, id="down, or thinks that it leads"),
        pytest.param([Peer("b", True, 9.0), Peer("c", True, 1.0)], "c", id="not the one that is cut off too"),
        pytest.param([Peer("b", True, 1.0, lag=7), Peer("c", True, 4.0, lag=2)], "c", id="the least behind"),
        pytest.param([Peer("c", True, 1.0), Peer("b", True, 2.0)], "b", id="by name where all else is the same"),
    ],
)
def test_who_leads_instead(peers: list[Peer], chosen: str | None) -> None:
    assert successor(peers, TERMS) == chosen


def test_where_nobody_gives_way_nobody_is_chosen() -> None:
    assert successor([Peer("b", True, 0.1)], NEVER) is None


@pytest.mark.parametrize("check_seconds", [0.1, 1.0, 1.6])
def test_a_broker_that_fails_for_all_moves_no_lease(check_seconds: float) -> None:
    """Whatever the moments of their last checks: when the first is cut off no other one counts as fresh any more."""
    terms = BrokerTerms(check_seconds, 10.0)
    terms.validate(REPORT_SECONDS)
    # Asked just before the failure, or so long before it that the next answer was waited for in vain.
    apart = (0.0, check_seconds, check_seconds + terms.answer_seconds)
    for mine, other in itertools.product(apart, apart):
        noticed = terms.silent_seconds - mine
        assert successor([Peer("b", True, noticed + other)], terms) is None


@pytest.mark.parametrize("check_seconds", [0.1, 1.0, 1.6])
def test_one_that_reaches_the_broker_is_always_fresh(check_seconds: float) -> None:
    """However the checks and the entries in the list fall: its age is one of each at most, and a moment."""
    terms = BrokerTerms(check_seconds, 10.0)
    assert check_seconds + REPORT_SECONDS < 0.9 * terms.fresh_seconds
    assert successor([Peer("b", True, check_seconds + REPORT_SECONDS)], terms) == "b"


@pytest.mark.parametrize(
    ("check_seconds", "agent_down_seconds", "deaf"), [(1.0, 20.0, 10.0), (1.0, 5.0, 6.0), (10.0, 20.0, 60.0)]
)
def test_a_leader_is_deaf_before_agents_are_down_where_checks_allow(check_seconds, agent_down_seconds, deaf) -> None:
    assert BrokerTerms(check_seconds, 0.0).deaf_seconds(agent_down_seconds) == deaf


@pytest.mark.parametrize(("check_seconds", "report_seconds"), [(2.0, 1.0), (1.0, 2.0)])
def test_a_silence_that_is_too_short_is_refused(check_seconds: float, report_seconds: float) -> None:
    with pytest.raises(BadRequest, match=f"set it to {MIN_CHECKS_PER_OUTAGE * 2} or more"):
        BrokerTerms(check_seconds, 10.0).validate(report_seconds)
    BrokerTerms(check_seconds, 12.0).validate(report_seconds)
    BrokerTerms(check_seconds, 0.0).validate(report_seconds)
