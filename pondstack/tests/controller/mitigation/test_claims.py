"""What a claim becomes while its guest is mitigated."""

import pytest

from pondstack.controller.mitigation import claims
from pondstack.domain.errors import Conflict

SPLIT = {"host": {"MEMORY_MB": 2048, "VCPU": 2}, "pool": {"CUSTOM_POND_MEMORY_MB": 2048}, "disk": {"DISK_GB": 1}}


def test_local_memory_comes_first_and_the_pool_share_goes_last() -> None:
    both = claims.with_local(SPLIT, 4096)
    assert both == SPLIT | {"host": {"MEMORY_MB": 4096, "VCPU": 2}}
    assert claims.without_pool(both, 4096) == {"host": {"MEMORY_MB": 4096, "VCPU": 2}, "disk": {"DISK_GB": 1}}
    assert claims.with_local(both, 2048) == SPLIT


def test_what_is_remote_stays_remote() -> None:
    """Local memory covers the rest, and the mirror has room for what becomes the guest's first node."""
    lent = {"lenders": {"CUSTOM_POND_REMOTE_MB": 1024}}
    split = {"host": {"MEMORY_MB": 1024, "CUSTOM_POND_MIRROR_MB": 2048}, "pool": SPLIT["pool"]} | lent
    both = claims.with_local(split, 4096)
    assert both == split | {"host": {"MEMORY_MB": 3072, "CUSTOM_POND_MIRROR_MB": 4096}}
    assert (claims.covers_all(split, 4096), claims.covers_all(both, 4096)) == (False, True)
    assert claims.without_pool(both, 4096) == {"host": both["host"]} | lent
    assert claims.with_local(both, 2048) == split, "as it was"


def test_the_mirror_of_a_swap_disk_stays() -> None:
    """Beside that of the first node, and alone."""
    lent = {"lenders": {"CUSTOM_POND_REMOTE_MB": 1024}}
    split = {"host": {"MEMORY_MB": 1024, "CUSTOM_POND_MIRROR_MB": 2048 + 512}, "pool": SPLIT["pool"]} | lent
    both = claims.with_local(split, 4096)
    assert both["host"] == {"MEMORY_MB": 3072, "CUSTOM_POND_MIRROR_MB": 4096 + 512}
    assert claims.with_local(both, 2048) == split, "as it was"
    alone = {**SPLIT, "host": {**SPLIT["host"], "CUSTOM_POND_MIRROR_MB": 512}}
    assert claims.with_local(alone, 4096)["host"] == {"MEMORY_MB": 4096, "VCPU": 2, "CUSTOM_POND_MIRROR_MB": 512}


def test_it_covers_all() -> None:
    assert not claims.covers_all(SPLIT, 4096)
    assert claims.covers_all(claims.with_local(SPLIT, 4096), 4096)
    assert not claims.covers_all({}, 4096)


@pytest.mark.parametrize("held", [{}, {"pool": SPLIT["pool"]}, {"a": {"MEMORY_MB": 1}, "b": {"MEMORY_MB": 1}}])
def test_a_server_of_no_host_or_two_is_left_alone(held: claims.Held) -> None:
    for change in (claims.with_local, claims.without_pool):
        with pytest.raises(Conflict, match="Nova starts, moves or deletes it"):
            change(held, 4096)
