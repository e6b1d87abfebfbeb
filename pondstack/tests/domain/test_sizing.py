"""The `pond:` specs and the split that they lead to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondstack.domain.errors import BadSpec, NotAligned
from pondstack.domain.sizing import Features, Policy, PondSpecs, StaticShare, decide, parse_specs


def features(memory_mib: int, specs: PondSpecs) -> Features:
    return Features(instance_uuid="i", memory_mib=memory_mib, vcpus=1, specs=specs)


def test_a_flavor_without_pond_specs_is_none_of_our_business() -> None:
    assert parse_specs({"hw:cpu_policy": "shared", "quota:vif": "1"}) is None


def test_fixed_and_auto_and_local_are_parsed() -> None:
    assert parse_specs({"pond:policy": "fixed", "pond:pool_mb": "2048"}) == PondSpecs(Policy.FIXED, 2048)
    assert parse_specs({"pond:policy": "auto", "pond:max_pool_percent": "40", "pond:pdm": "2"}) == PondSpecs(
        Policy.AUTO, 0, 40, 2
    )
    assert parse_specs({"pond:policy": "local"}) == PondSpecs(Policy.LOCAL)


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        ({"pond:polcy": "auto"}, "pond:polcy is unknown; legal: pond:policy"),
        ({"pond:pool_mb": "1024"}, "pond:policy is missing beside pond:pool_mb"),
        ({"pond:policy": "magic"}, "one of auto, fixed, local"),
        ({"pond:policy": "fixed"}, "needs pond:pool_mb"),
        ({"pond:policy": "fixed", "pond:pool_mb": "1000"}, "multiple of 1024"),
        ({"pond:policy": "fixed", "pond:pool_mb": "0"}, "multiple of 1024"),
        ({"pond:policy": "fixed", "pond:pool_mb": "-1024"}, "multiple of 1024"),
        ({"pond:policy": "fixed", "pond:pool_mb": "1_024"}, "multiple of 1024"),
        ({"pond:policy": "fixed", "pond:pool_mb": "1024", "pond:pdm": "5"}, "pond:pdm contradicts pond:policy=fixed"),
        ({"pond:policy": "auto", "pond:pool_mb": "1024"}, "pond:pool_mb contradicts pond:policy=auto"),
        ({"pond:policy": "auto", "pond:max_pool_percent": "101"}, "0 to 100"),
        ({"pond:policy": "auto", "pond:pdm": "0"}, "1 to 100"),
        ({"pond:policy": "local", "pond:max_pool_percent": "10"}, "contradicts pond:policy=local"),
    ],
)
def test_wrong_specs_show_the_legal_form(specs: dict[str, str], text: str) -> None:
    with pytest.raises(BadSpec, match=text):
        parse_specs(specs)


@given(st.integers(1, 2_000_000), st.integers(0, 100), st.integers(0, 100))
def test_the_static_share_is_whole_slices_and_leaves_local_memory(memory_mib: int, percent: int, cap: int) -> None:
    specs = PondSpecs(Policy.AUTO, max_pool_percent=cap)
    split = decide(features(memory_mib, specs), StaticShare(min(percent, 99)), 1024)
    assert split.local_mib + split.pool_mib == memory_mib
    assert split.local_mib > 0
    assert split.pool_mib % 1024 == 0
    assert split.pool_mib <= memory_mib * min(percent, cap) / 100


def test_fixed_takes_what_the_flavor_says() -> None:
    split = decide(features(3072, PondSpecs(Policy.FIXED, 2048)), StaticShare(), 1024)
    assert (split.local_mib, split.pool_mib, split.source) == (1024, 2048, "fixed")


def test_fixed_must_leave_local_memory() -> None:
    with pytest.raises(BadSpec, match="leaves no local memory in a flavor of 2048 MiB"):
        decide(features(2048, PondSpecs(Policy.FIXED, 2048)), StaticShare(), 1024)


def test_fixed_must_fit_the_racks_own_slice_size() -> None:
    with pytest.raises(NotAligned, match="slice size, 2048 MiB"):
        decide(features(8192, PondSpecs(Policy.FIXED, 1024)), StaticShare(), 2048)


def test_local_is_all_local() -> None:
    assert decide(features(65536, PondSpecs(Policy.LOCAL)), StaticShare(), 1024).pool_mib == 0
