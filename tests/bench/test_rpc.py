"""`make bench-rpc` without its measurement: where it measures, and what it says of what it found."""

import pytest

from bench.rpc import Found, arguments_of, report


def found(call: float, parallel: float) -> Found:
    """Return rounds of these microseconds."""
    return Found(calls=[[call] * 10] * 3, lone=[[1.0]] * 3, parallel=[parallel] * 3)


def test_verbs_is_measured_in_emulated_hosts_unless_said_otherwise() -> None:
    assert arguments_of(["--driver", "verbs"]).hosts
    assert not arguments_of(["--driver", "verbs", "--here"]).hosts
    assert not arguments_of([]).hosts
    assert arguments_of(["--driver", "verbs", "--calls", "7"]).calls == 7
    assert arguments_of(["--driver", "verbs"]).calls < arguments_of([]).calls


@pytest.mark.parametrize(("call", "parallel", "held"), [(0.5, 0.5, True), (1.1, 0.5, False), (0.5, 1.1, False)])
def test_a_missed_target_is_told(call: float, parallel: float, held: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert report("verbs", found(call, parallel), found(1.0, 1.0), threads=8) is held
    assert ("MISSED" in capsys.readouterr().out) is not held
