"""What all pool devices promise that hand slices over (PoolDevice.hands_over)."""

import pytest

from pondstack.devices.base import Heir, Permission
from pondstack.domain.errors import InUse, NotFound, PermissionHeld, StaleEpoch
from pondstack.domain.model import Extent
from pondstack.tests.devices.test_contract import SLICES, Harness, harness

__all__ = ["harness"]


@pytest.fixture
def handed(harness: Harness) -> Harness:
    """A device where allocation a of host1 has the slices 0 and 1, and allocation b of host2 is the heir."""
    harness.device.grant("host1", [Extent(0, 2)], tag="a", epoch=1)
    harness.write(0, b"the guest's")
    for _ in range(2):
        harness.device.add_heir("host2", [Extent(0, 2)], tag="b", owner="a", epoch=1)
    return harness


HANDED, OWN = Permission("host1", "a", 1, Heir("host2", "b")), Permission("host1", "a", 1)


def test_an_heir_is_seen_by_everybody_and_its_owner_stays(handed: Harness) -> None:
    assert handed.reopen().permissions() == {0: HANDED, 1: HANDED}
    handed.device.grant("host1", [Extent(0, 2)], tag="a", epoch=1)
    assert handed.reopen().permissions() == {0: HANDED, 1: HANDED}


@pytest.mark.parametrize("end", ["revoke", "grant", "fence"])
def test_an_heir_has_what_its_owner_lets_go(handed: Harness, end: str) -> None:
    if end == "revoke":
        handed.device.revoke([0, 1], tag="a", epoch=2)
    elif end == "grant":
        handed.device.grant("host2", [Extent(0, 2)], tag="b", epoch=2)
    else:
        handed.device.fence("host1", [0, 1], epoch=2)
    assert handed.reopen().permissions() == {i: Permission("host2", "b", 2) for i in (0, 1)}
    assert handed.read(0).startswith(b"the guest's")
    with pytest.raises(PermissionHeld):
        handed.device.sanitize(0, epoch=2)
    handed.device.add_heir("host2", [Extent(0, 2)], tag="b", owner="a", epoch=2)  # a late one changes nothing
    assert handed.reopen().permissions() == {i: Permission("host2", "b", 2) for i in (0, 1)}


@pytest.mark.parametrize("end", ["revoke", "fence"])
def test_an_owner_keeps_what_its_heir_lets_go(handed: Harness, end: str) -> None:
    if end == "revoke":
        handed.device.revoke([0, 1], tag="b", epoch=1)
    else:
        handed.device.fence("host2", [], epoch=1)
    assert handed.reopen().permissions() == {0: OWN, 1: OWN}


def test_there_is_one_heir_at_most(handed: Harness) -> None:
    with pytest.raises(PermissionHeld):
        handed.device.add_heir("host3", [Extent(0, 2)], tag="c", owner="a", epoch=1)
    with pytest.raises(PermissionHeld):
        handed.device.grant("host3", [Extent(0, 2)], tag="c", epoch=1)
    assert handed.reopen().permissions() == {0: HANDED, 1: HANDED}


def test_an_heir_that_hands_over_has_inherited_before(handed: Harness) -> None:
    for _ in range(2):
        handed.device.add_heir("host1", [Extent(0, 2)], tag="c", owner="b", epoch=2)
    assert handed.reopen().permissions() == {i: Permission("host2", "b", 2, Heir("host1", "c")) for i in (0, 1)}
    with pytest.raises(PermissionHeld):
        handed.device.grant("host1", [Extent(0, 2)], tag="a", epoch=2)


def test_an_heir_inherits_from_the_owner_alone_and_all_or_nothing(handed: Harness) -> None:
    handed.device.revoke([0, 1], tag="b", epoch=1)
    for extents, owner in (([Extent(0, 2)], "c"), ([Extent(1, 2)], "a")):
        with pytest.raises(PermissionHeld):
            handed.device.add_heir("host2", extents, tag="b", owner=owner, epoch=1)
    with pytest.raises(StaleEpoch):
        handed.device.add_heir("host2", [Extent(0, 2)], tag="b", owner="a", epoch=0)
    with pytest.raises(NotFound):
        handed.device.add_heir("host2", [Extent(SLICES, 1)], tag="b", owner="a", epoch=1)
    assert handed.reopen().permissions() == {0: OWN, 1: OWN}


def test_an_heir_that_maps_its_slices_does_not_hold_a_fence_up(handed: Harness) -> None:
    if handed.map is None:
        handed.device.fence("host1", [0, 1], epoch=1)
        return
    with handed.map(1):
        handed.device.fence("host1", [0, 1], epoch=1)
        handed.device.fence("host2", [], epoch=1)
        with pytest.raises(InUse):
            handed.device.check_unmapped([1])
