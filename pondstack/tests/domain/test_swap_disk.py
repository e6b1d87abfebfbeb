"""Swap disks in remote memory, as flavors ask for them."""

import pytest

from pondstack.domain.errors import BadSpec
from pondstack.domain.sizing import Policy, PondSpecs, parse_specs
from pondstack.domain.swap_disk import check_percent


@pytest.mark.parametrize(
    ("beside", "specs"),
    [
        ({}, PondSpecs(swap_mib=512)),
        ({"pond:remote_mb": "64"}, PondSpecs(remote_mib=64, swap_mib=512)),
        ({"pond:policy": "local"}, PondSpecs(swap_mib=512)),
        ({"pond:policy": "auto", "pond:remote_mb": "64"}, PondSpecs(Policy.AUTO, remote_mib=64, swap_mib=512)),
        ({"pond:policy": "fixed", "pond:pool_mb": "1024"}, PondSpecs(Policy.FIXED, pool_mib=1024, swap_mib=512)),
    ],
)
def test_it_goes_with_any_policy(beside: dict[str, str], specs: PondSpecs) -> None:
    """It is no part of the memory, so a guaranteed local guest may have one."""
    assert parse_specs({"pond:swap_mb": "512"} | beside) == specs
    assert specs.all_local is (specs.policy is Policy.LOCAL and not specs.remote_mib)


@pytest.mark.parametrize("value", ["0", "63", "65", "-64", "64.0", "", "1 GiB"])
def test_what_is_no_size(value: str) -> None:
    with pytest.raises(BadSpec, match="a positive multiple of 64"):
        parse_specs({"pond:swap_mb": value})


@pytest.mark.parametrize(("swap_mib", "percent", "fits"), [(8192, 200, True), (8256, 200, False), (8256, 202, True)])
def test_no_more_than_the_operator_allows(swap_mib: int, percent: int, fits: bool) -> None:
    if fits:
        check_percent(4096, swap_mib, percent)
        return
    with pytest.raises(BadSpec, match=r"more than 200 % of a flavor of 4096 MiB, 8192 MiB at most"):
        check_percent(4096, swap_mib, percent)
