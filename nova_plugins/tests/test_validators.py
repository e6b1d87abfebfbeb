"""The extra-spec validators, as Nova loads and calls them."""

import pytest
from nova import exception
from nova.api.validation.extra_specs import validators as nova_validators

from pondstack.domain.sizing import LEGAL
from pondstack_nova import validators


def test_nova_has_loaded_them() -> None:
    """By entry point; each legal key has its own."""
    for key in LEGAL:
        assert isinstance(nova_validators.VALIDATORS[f"pond:{key}"], validators.PondValidator)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pond:policy", "auto"),
        ("pond:policy", "fixed"),
        ("pond:policy", "local"),
        ("pond:pool_mb", "3072"),
        ("pond:max_pool_percent", "0"),
        ("pond:pdm", "100"),
        ("pond:remote_mb", "64"),
        ("pond:disk_mb", "64"),
        ("pond:swap_mb", "1024"),
    ],
)
def test_legal(name: str, value: str) -> None:
    """Legal alone: what stands beside is not seen here."""
    nova_validators.validate(name, value)


@pytest.mark.parametrize(
    ("name", "value", "legal"),
    [
        ("pond:policy", "", LEGAL["policy"]),
        ("pond:policy", "Auto", LEGAL["policy"]),
        ("pond:pool_mb", "1023", LEGAL["pool_mb"]),
        ("pond:pool_mb", "-1024", LEGAL["pool_mb"]),
        ("pond:pool_mb", "0", LEGAL["pool_mb"]),
        ("pond:max_pool_percent", "1.5", LEGAL["max_pool_percent"]),
        ("pond:pdm", "101", LEGAL["pdm"]),
        ("pond:remote_mb", "63", LEGAL["remote_mb"]),
        ("pond:disk_mb", "63", LEGAL["disk_mb"]),
        ("pond:swap_mb", "63", LEGAL["swap_mb"]),
        ("pond:swap_mb", "0", LEGAL["swap_mb"]),
        ("pond:colour", "1", "legal: pond:policy, pond:pool_mb, pond:max_pool_percent, pond:pdm, pond:remote_mb"),
        ("pond:", "1", "legal: pond:policy"),
    ],
)
def test_illegal(name: str, value: str, legal: str) -> None:
    """Every refusal shows the legal form."""
    with pytest.raises(exception.ValidationError) as refusal:
        nova_validators.validate(name, value)
    assert legal in refusal.value.format_message()


def test_registering_twice_wraps_once() -> None:
    """Nova may load entry points more than once in a process."""
    from nova.virt import hardware

    validators.register()
    wrapped = hardware.numa_get_constraints
    validators.register()
    assert hardware.numa_get_constraints is wrapped
