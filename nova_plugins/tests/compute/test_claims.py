"""What a guest may use of a pool, read from its Placement allocations."""

import pytest

from pondstack.domain.errors import Conflict
from pondstack.domain.model import Extent
from pondstack_nova.compute.claims import PoolClaim, Unclaimed, check_move, claim_of, shape_of

HOST, OTHER, POOL, POOL2 = "host-rp", "other-rp", "pool-rp", "pool2-rp"


def _held(**amounts: int) -> dict[str, dict[str, dict[str, int]]]:
    names = {"host": HOST, "other": OTHER, "pool": POOL, "pool2": POOL2}
    return {
        names[name]: {"resources": {"CUSTOM_POND_MEMORY_MB" if name.startswith("pool") else "MEMORY_MB": mib}}
        for name, mib in amounts.items()
    }


def test_the_split_is_read_off_the_hosts_own_memory() -> None:
    assert claim_of(_held(host=3072, pool=1024), HOST, 4096) == PoolClaim((POOL,), 1024)


def test_all_local() -> None:
    assert claim_of(_held(host=4096), HOST, 4096) is None


def test_evacuated_guest_holds_two_hosts_but_the_shared_pool_once() -> None:
    assert claim_of(_held(host=3072, other=3072, pool=1024), HOST, 4096) == PoolClaim((POOL,), 1024)


def test_evacuated_guest_that_became_all_local_leaves_the_old_pool_alone() -> None:
    assert claim_of(_held(host=4096, other=3072, pool=1024), HOST, 4096) is None


def test_of_two_pools_the_one_that_fits_exactly_comes_first_and_a_small_one_not_at_all() -> None:
    assert claim_of(_held(host=2048, pool=4096, pool2=2048), HOST, 4096) == PoolClaim((POOL2, POOL), 2048)
    assert claim_of(_held(host=2048, pool=1024, pool2=2048), HOST, 4096) == PoolClaim((POOL2,), 2048)


def test_remote_memory_is_no_pool_memory() -> None:
    """Which host it is for does not matter: it is as much on each."""
    lent = {"lenders-rp": {"resources": {"CUSTOM_POND_REMOTE_MB": 1024}}}
    assert claim_of(_held(host=3072) | lent, HOST, 4096) is None
    assert claim_of(_held(host=2048, pool=1024) | lent, HOST, 4096) == PoolClaim((POOL,), 1024)
    assert claim_of(_held(host=2048, other=2048, pool=1024) | lent, HOST, 4096) == PoolClaim((POOL,), 1024)
    with pytest.raises(Conflict, match="1024 MiB of remote memory and 0 MiB of pool memory"):
        claim_of(_held(host=2048) | lent, HOST, 4096)


@pytest.mark.parametrize(
    ("held", "text"),
    [
        (_held(other=3072, pool=1024), "holds no MEMORY_MB of this host"),
        ({}, "holds no MEMORY_MB of this host"),
        (_held(host=3072), "0 MiB of pool memory"),
        (_held(host=8192, pool=1024), "schedule it again"),
    ],
)
def test_what_does_not_add_up_is_refused(held: dict[str, dict[str, dict[str, int]]], text: str) -> None:
    with pytest.raises(Conflict, match=text):
        claim_of(held, HOST, 4096)


def test_nobody_says_how_a_guest_without_any_claim_is_split() -> None:
    """Not the same as a claim of another host, which a broken migration leaves."""
    for held in ({}, _held(other=4096)):
        with pytest.raises(Unclaimed):
            claim_of(held, HOST, 4096)
    with pytest.raises(Conflict) as caught:
        claim_of(_held(other=3072, pool=1024), HOST, 4096)
    assert not isinstance(caught.value, Unclaimed)


def test_an_amount_that_is_no_split() -> None:
    """A flavor may set its MEMORY_MB; an old resize in place may have left too much."""
    assert claim_of(_held(host=512), HOST, 4096, own_amount=True) is None
    assert claim_of({}, HOST, 4096, own_amount=True) is None
    assert claim_of(_held(host=8192), HOST, 4096) is None


def test_a_live_migration_needs_the_same_split_or_local_memory() -> None:
    claim = PoolClaim((POOL,), 1024)
    check_move(1024, claim)
    check_move(None, None)
    check_move(1024, None)
    with pytest.raises(Conflict, match="has no pool memory"):
        check_move(None, claim)
    with pytest.raises(Conflict, match="has 2048 MiB of pool memory, but the destination claims 1024"):
        check_move(2048, claim)


def test_a_guest_whose_pool_share_is_kept_until_its_mitigation_ends_is_all_local() -> None:
    assert claim_of(_held(host=4096, pool=1024), HOST, 4096) is None


def test_shape() -> None:
    assert shape_of([Extent(0, 2), Extent(8, 1)]) == (2, 1)
