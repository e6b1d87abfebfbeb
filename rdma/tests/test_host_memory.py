"""What a host can give: read from the kernel, and never all of it."""

import pytest

from pondstack_rdma.errors import RegistrationFailed
from pondstack_rdma.host_memory import RESERVE_SHARE, check_room, host_room

TOTAL = RESERVE_SHARE * 100


def test_the_kernel_tells() -> None:
    available, total = host_room()
    assert 0 < available <= total
    assert total % 1024 == 0


@pytest.mark.parametrize(("size", "available"), [(1, 101), (900, 1000), (0, 100)])
def test_what_leaves_the_reserve_is_given(size: int, available: int) -> None:
    check_room(size, available, TOTAL)


@pytest.mark.parametrize(("size", "available"), [(1, 100), (901, 1000), (2**62, 1000), (2**64, 1000), (1, 0)])
def test_what_takes_of_the_reserve_is_refused(size: int, available: int) -> None:
    with pytest.raises(RegistrationFailed, match=f"{size} bytes are too much"):
        check_room(size, available, TOTAL)
