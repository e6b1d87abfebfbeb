"""Which hosts are underloaded."""

from dataclasses import replace

from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.underload import ALGORITHMS

from .builders import host, server

SETTINGS = Settings(underload_percent=25.0, readings=3, worth_seconds=3600.0)


def judge(name, *load, servers=()):
    return ALGORITHMS[name].judge(host("a", *load), servers, SETTINGS)


def test_static_looks_at_the_newest_reading():
    assert judge("static", 90.0, 25.0) == ""
    assert "25.1 %" in judge("static", 10.0, 25.1)


def test_average_looks_at_the_last_readings():
    assert judge("average", 90.0, 30.0, 25.0, 20.0) == ""
    assert "26.7 %" in judge("average", 0.0, 35.0, 25.0, 20.0)


def test_a_host_that_empties_itself_is_left_alone():
    soon = server("one", "a", remaining_seconds=3599.0)
    assert "by themselves" in judge("lifetime", 10.0, servers=[soon])
    assert judge("lifetime", 10.0, servers=[soon, server("two", "a", remaining_seconds=3600.0)]) == ""
    assert judge("lifetime", 10.0, servers=[soon, replace(soon, remaining_seconds=None)]) == ""
    assert judge("lifetime", 10.0) == ""
    assert "30.0 %" in judge("lifetime", 30.0)
