"""Requests for flavors with pond:remote_mb: the third share, beside each kind of pool share, and refusals."""

from typing import Any

import nova.conf
import pytest
from nova import exception, objects
from nova.scheduler import utils

from pondstack.domain.known_split import KnownSplit
from pondstack.domain.room import PoolRoom
from pondstack.domain.sizing import Fallback, Split, corrected_split
from pondstack.prediction.serving import static_predictor
from pondstack.rpc.wire import SplitView
from pondstack_nova import migrations
from pondstack_nova.scheduler import request_filter, split_decision, used_splits

REMOTE = {"pond__remote_mb": "1024"}
MEMORY, POOL, LENT = "MEMORY_MB", "CUSTOM_POND_MEMORY_MB", "CUSTOM_POND_REMOTE_MB"
MIRROR = "CUSTOM_POND_MIRROR_MB"


@pytest.fixture(autouse=True)
def view(use_splits) -> None:
    """A pool with room, of which the static rule gives 75 %."""
    rooms = (PoolRoom("pool0", 65536, 65536),)
    use_splits(SplitView(1, 1, predictor=static_predictor(75), rooms=rooms))


def asked(spec: Any) -> dict[str, dict[str, int]]:
    """Filter a request; return what Nova asks Placement for, by group, "" for the un-numbered one."""
    assert request_filter.pond_split(None, spec)
    request = utils.ResourceRequest.from_request_spec(spec)
    classes = (MEMORY, POOL, LENT, MIRROR)
    found = {
        name or "": {key: value for key, value in group.resources.items() if key in classes}
        for name, group in request._rg_by_id.items()
    }
    assert request.group_policy == ("none" if len(found) > 2 else None)
    return found


def test_remote_memory_alone(make_spec, monkeypatch) -> None:
    """Nothing is to be decided: local memory and the mirror of the host, lent memory of whoever lends."""
    monkeypatch.setattr(split_decision, "decide", lambda *_: pytest.fail("decided"))
    spec = make_spec(**REMOTE)
    expected = {"": {MEMORY: 3072, MIRROR: 4096}, "_POND_REMOTE": {LENT: 1024}}
    assert asked(spec) == expected
    assert used_splits.of(spec) is None
    assert asked(spec) == expected, "a second pass starts from the flavor again"


def test_a_part_on_disk_alone(make_spec) -> None:
    """Nothing is claimed for it but the mirror."""
    spec = make_spec(pond__disk_mb="512", **REMOTE)
    assert asked(spec) == {"": {MEMORY: 2560, MIRROR: 4096}, "_POND_REMOTE": {LENT: 1024}}


def test_beside_a_fixed_pool_share(make_spec) -> None:
    """Three shares; the mirror has the first node only."""
    spec = make_spec(pond__policy="fixed", pond__pool_mb="1024", **REMOTE)
    assert asked(spec) == {
        "": {MEMORY: 2048, MIRROR: 3072},
        "_POND": {POOL: 1024},
        "_POND_REMOTE": {LENT: 1024},
    }
    assert used_splits.of(spec).split.local_mib == 3072, "the pool's share of the first node and the rest"


def test_beside_an_automatic_pool_share(make_spec) -> None:
    """The rule wants 3072 MiB of 4096; 2048 are what leaves local memory."""
    assert asked(make_spec(pond__policy="auto", **REMOTE)) == {
        "": {MEMORY: 1024, MIRROR: 2048},
        "_POND": {POOL: 2048},
        "_POND_REMOTE": {LENT: 1024},
    }


def test_an_automatic_share_that_is_none(make_spec, monkeypatch) -> None:
    """Without a view of the controller's there is no pool memory; remote memory is guaranteed."""

    def no_view(*_: Any) -> Split:
        raise split_decision.NoView(Fallback.NO_VIEW, "gone")

    monkeypatch.setattr(split_decision, "decide", no_view)
    spec = make_spec(pond__policy="auto", **REMOTE)
    assert asked(spec) == {"": {MEMORY: 3072, MIRROR: 4096}, "_POND_REMOTE": {LENT: 1024}}


def test_a_mitigated_guest_keeps_its_remote_memory(make_spec, use_splits) -> None:
    """Its pool memory is gone for good."""
    spec = make_spec(pond__policy="fixed", pond__pool_mb="1024", **REMOTE)
    known = (KnownSplit(spec.instance_uuid, None, "", corrected_split(4096)),)
    use_splits(SplitView(1, 1, full=True, predictor=static_predictor(25), splits=known))
    assert asked(spec) == {"": {MEMORY: 3072, MIRROR: 4096}, "_POND_REMOTE": {LENT: 1024}}


def test_a_flavors_own_group_policy_stays(make_spec) -> None:
    """It may have groups of its own."""
    spec = make_spec(pond__policy="fixed", pond__pool_mb="1024", group_policy="isolate", **REMOTE)
    request_filter.pond_split(None, spec)
    assert spec.flavor.extra_specs["group_policy"] == "isolate"


def test_more_than_the_operator_allows(make_spec) -> None:
    """By default half of the flavor."""
    spec = make_spec(pond__remote_mb="2112")
    with pytest.raises(exception.RequestFilterFailed, match="more than 50 % of a flavor of 4096 MiB"):
        request_filter.pond_split(None, spec)
    nova.conf.CONF.set_override("max_remote_percent", 60, group="pondstack")
    try:
        assert asked(spec)["_POND_REMOTE"] == {LENT: 2112}
    finally:
        nova.conf.CONF.clear_override("max_remote_percent", group="pondstack")


@pytest.mark.parametrize("pool", [{}, {"pond__policy": "auto"}])
def test_what_pins_memory_is_refused(make_spec, pool: dict[str, str]) -> None:
    """Also where an automatic pool share would be none: remote memory is guaranteed, and cannot be pinned."""
    spec = make_spec(**REMOTE, **pool)
    wanted = objects.InstancePCIRequest(count=1, alias_name="nic", spec=[])
    spec.pci_requests = objects.InstancePCIRequests(instance_uuid=spec.instance_uuid, requests=[wanted])
    with pytest.raises(exception.RequestFilterFailed, match=r"pond:remote_mb=1024 contradicts a PCI device"):
        request_filter.pond_split(None, spec)


def test_a_swap_disk_claims_its_mirror_only(make_spec, monkeypatch) -> None:
    """Lenders give it what there is: nothing of them is claimed."""
    monkeypatch.setattr(split_decision, "decide", lambda *_: pytest.fail("decided"))
    spec = make_spec(pond__swap_mb="512")
    assert asked(spec) == {"": {MEMORY: 4096, MIRROR: 512}}
    assert asked(spec) == {"": {MEMORY: 4096, MIRROR: 512}}
    assert asked(make_spec(pond__swap_mb="512", **REMOTE))[""] == {MEMORY: 3072, MIRROR: 4096 + 512}


def test_a_live_migration_is_refused_with_a_swap_disk(make_spec, monkeypatch) -> None:
    """With the way out; a move that starts it anew is not, and without such a disk none is."""
    spec = make_spec(pond__swap_mb="512")
    monkeypatch.setattr(migrations, "find", lambda *_: migrations.Move(running_local_mib=4096))
    with pytest.raises(exception.RequestFilterFailed, match=r"cannot be migrated live.*migrate it cold"):
        request_filter.pond_split(None, spec)
    monkeypatch.setattr(migrations, "find", lambda *_: migrations.Move())
    assert MIRROR in asked(spec)[""]
