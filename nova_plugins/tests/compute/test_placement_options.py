"""nova-compute says at its start that Nova's options for Placement lose claims that meet at a pool."""

from types import SimpleNamespace

import pytest
from nova.conf import CONF

from nova_plugins.tests.compute.virt_rig import Driver, h1, rack
from pondstack_nova.compute import placement_options

__all__ = ["h1", "rack"]


@pytest.mark.parametrize(
    ("codes", "retries", "named"),
    [
        (None, None, "lacks 409"),
        ([], 5, "lacks 409"),
        ([503], 5, "lacks 409"),
        ([409, 503], None, "status_code_retries is 0"),
        ([409, 503], 0, "status_code_retries is 0"),
        ([409, 503], 5, ""),
        (["409"], 1, ""),
    ],
)
def test_what_is_wrong_with_options(codes: list[object] | None, retries: int | None, named: str) -> None:
    found = placement_options.wrong(SimpleNamespace(retriable_status_codes=codes, status_code_retries=retries))
    assert (named in found) if named else not found


def test_a_start_warns_once_as_nova_is_installed(h1: Driver, caplog: pytest.LogCaptureFixture) -> None:
    h1.init_host("h1")
    told = [record.getMessage() for record in caplog.records if record.name == placement_options.__name__]
    assert len(told) == 1
    assert "retriable_status_codes lacks 409" in told[0]
    assert "retriable_status_codes = 409,503 and status_code_retries = 5" in told[0]


def test_a_start_with_the_options_says_nothing(h1: Driver, caplog: pytest.LogCaptureFixture) -> None:
    CONF.set_override("retriable_status_codes", [409, 503], "placement")
    CONF.set_override("status_code_retries", 5, "placement")
    try:
        h1.init_host("h1")
    finally:
        CONF.clear_override("retriable_status_codes", "placement")
        CONF.clear_override("status_code_retries", "placement")
    assert not [record for record in caplog.records if record.name == placement_options.__name__]
