"""The third share of a guest's memory."""

import pytest

from pondstack.domain.errors import BadSpec
from pondstack.domain.remote_share import LEAST_LOCAL_MIB, Shares, check_percent, most_pool_percent, shares
from pondstack.domain.sizing import Policy, PondSpecs, parse_specs


def test_three_shares_are_all_of_a_guest() -> None:
    """The first node has what is local and what is remote; its mirror has as much."""
    found = shares(4096, 1024, 2048)
    assert found == Shares(local_mib=1024, pool_mib=1024, remote_mib=2048)
    assert (found.node_mib, found.mirror_mib) == (3072, 3072)
    assert shares(4096, 1024, 2048, 512).mirror_mib == 3072 + 512
    assert (shares(4096, 1024, 0).mirror_mib, shares(4096, 1024, 0, 512).mirror_mib) == (0, 512)
    assert shares(4096, 0, 0) == Shares(4096, 0, 0)


def test_a_share_that_is_on_disk_alone() -> None:
    """It is a part of the first node and of its mirror, and nobody's memory."""
    found = shares(4096, 0, 1024, 512, disk_mib=1024)
    assert (found.local_mib, found.node_mib, found.mirror_mib) == (2048, 4096, 4096 + 512)
    with pytest.raises(BadSpec, match="beside 1024 MiB on disk leaves 63 MiB"):
        shares(2048 + 63, 0, 1024, disk_mib=1024)
    check_percent(4096, 1024, 50, 1024)
    with pytest.raises(BadSpec, match=r"pond:remote_mb=1024 and pond:disk_mb=1088 are more than 50 % of"):
        check_percent(4096, 1024, 50, 1088)


@pytest.mark.parametrize(("pool_mib", "fits"), [(1024 - LEAST_LOCAL_MIB, True), (1025 - LEAST_LOCAL_MIB, False)])
def test_some_local_memory_is_left(pool_mib: int, fits: bool) -> None:
    """To the MiB; what is short is in the text, with the legal form."""
    if fits:
        assert shares(2048, pool_mib, 1024).local_mib == LEAST_LOCAL_MIB
        return
    with pytest.raises(BadSpec, match=f"beside {pool_mib} MiB of pool memory leaves 63 MiB") as refusal:
        shares(2048, pool_mib, 1024)
    assert "a positive multiple of 64" in refusal.value.message


def test_without_remote_memory_the_pool_may_have_all_but_one_mib() -> None:
    """That rule is the pool's (pondstack.domain.sizing)."""
    assert shares(2048, 2047, 0).local_mib == 1


@pytest.mark.parametrize(("remote_mib", "percent", "fits"), [(2048, 50, True), (2112, 50, False), (2112, 90, True)])
def test_no_more_than_the_operator_allows(remote_mib: int, percent: int, fits: bool) -> None:
    """Exactly that much is allowed; a refusal says how much it is."""
    if fits:
        check_percent(4096, remote_mib, percent)
        return
    with pytest.raises(BadSpec, match=r"more than 50 % of a flavor of 4096 MiB, 2048 MiB at most"):
        check_percent(4096, remote_mib, percent)


def test_what_an_automatic_pool_share_may_be_at_most() -> None:
    """So that local memory is left; without remote memory as the flavor says."""
    assert most_pool_percent(4096, 0, 100) == 100
    assert most_pool_percent(4096, 2048, 30) == 30
    most = most_pool_percent(4096, 2048, 100)
    assert most == 48
    assert shares(4096, 4096 * most // 100, 2048).local_mib >= LEAST_LOCAL_MIB
    assert most_pool_percent(64, 64, 100) == 0


def test_specs_of_remote_memory() -> None:
    """Alone, or beside a pool share; it is not all local then."""
    alone = parse_specs({"pond:remote_mb": "512"})
    assert alone == PondSpecs(policy=Policy.LOCAL, remote_mib=512)
    assert not alone.all_local
    assert parse_specs({"pond:policy": "auto", "pond:remote_mb": "64"}) == PondSpecs(Policy.AUTO, remote_mib=64)
    both = parse_specs({"pond:policy": "fixed", "pond:pool_mb": "1024", "pond:remote_mb": "512"})
    assert (both.pool_mib, both.remote_mib) == (1024, 512)
    assert PondSpecs(Policy.LOCAL).all_local
    ladder = parse_specs({"pond:remote_mb": "512", "pond:disk_mb": "64", "pond:swap_mb": "64"})
    assert ladder == PondSpecs(Policy.LOCAL, remote_mib=512, disk_mib=64, swap_mib=64)


@pytest.mark.parametrize(
    "specs",
    [
        {"disk_mb": "64"},
        {"disk_mb": "0", "remote_mb": "64"},
        {"disk_mb": "96", "remote_mb": "64"},
        {"disk_mb": "64", "remote_mb": "64", "policy": "auto"},
        {"disk_mb": "64", "remote_mb": "64", "policy": "fixed", "pool_mb": "1024"},
    ],
    ids=lambda specs: "-".join(specs),
)
def test_a_disk_share_stands_beside_remote_memory_alone(specs: dict[str, str]) -> None:
    """What neither claims of Placement nor a mitigation would know of is not mixed with pool memory."""
    with pytest.raises(BadSpec, match=r"pond:disk_mb.* must be a positive multiple of 64"):
        parse_specs({f"pond:{key}": value for key, value in specs.items()})


@pytest.mark.parametrize("value", ["0", "-64", "63", "96", "1e3", "٦٤", ""])
def test_malformed(value: str) -> None:
    """Buffers are whole."""
    with pytest.raises(BadSpec, match=r"pond:remote_mb=.* is wrong; it must be a positive multiple of 64"):
        parse_specs({"pond:remote_mb": value})


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        ({"policy": "local"}, "contradicts pond:policy=local"),
        ({"pool_mb": "1024"}, "pond:policy is missing"),
    ],
)
def test_contradictions(specs: dict[str, str], text: str) -> None:
    """policy=local guarantees local memory, and a pool share needs its policy."""
    with pytest.raises(BadSpec, match=text):
        parse_specs({"pond:remote_mb": "64"} | {f"pond:{key}": value for key, value in specs.items()})
