"""Unified limits of pool memory: what nova-api counts, and what nova-scheduler asks."""

from collections.abc import Callable
from typing import Any

import pytest
from keystoneauth1 import exceptions as keystone_exceptions
from nova import objects
from nova.limit import placement
from nova.limit import utils as limit_utils
from oslo_limit import exception as limit_exceptions

from pondstack_nova import quota, validators


def deltas(count: int = 1, **specs: str) -> dict[str, int]:
    """Return what Nova counts for instances of a flavor of 4096 MiB; extra specs with __ for a colon."""
    extra_specs = {key.replace("__", ":"): value for key, value in specs.items()}
    flavor = objects.Flavor(
        vcpus=1, memory_mb=4096, root_gb=1, ephemeral_gb=0, swap=0, flavorid="f", extra_specs=extra_specs
    )
    validators.register()
    return placement._get_deltas(objects.RequestSpec(flavor=flavor, is_bfv=False), count)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_fixed_share_is_counted_as_pool_memory(count: int) -> None:
    """As what it becomes in Placement: so much of the class, and so much less of MEMORY_MB."""
    counted = deltas(count, pond__policy="fixed", pond__pool_mb="1024")
    assert counted == {
        "servers": count,
        "class:VCPU": count,
        "class:DISK_GB": count,
        "class:MEMORY_MB": 3072 * count,
        "class:CUSTOM_POND_MEMORY_MB": 1024 * count,
    }


def test_remote_memory_is_counted_as_such() -> None:
    """Alone, and beside a fixed share: all of it is the flavor's RAM."""
    alone = deltas(2, pond__remote_mb="512")
    assert (alone[quota.LOCAL], alone[quota.REMOTE], quota.POOL in alone) == (7168, 1024, False)
    both = deltas(2, pond__policy="fixed", pond__pool_mb="1024", pond__remote_mb="512")
    assert (both[quota.LOCAL], both[quota.REMOTE], both[quota.POOL]) == (5120, 1024, 2048)


def test_a_swap_disk_is_counted_as_its_mirror() -> None:
    """It is none of the flavor's RAM."""
    alone = deltas(2, pond__swap_mb="512")
    assert (alone[quota.LOCAL], alone[quota.MIRROR], quota.REMOTE in alone) == (8192, 1024, False)
    both = deltas(2, pond__remote_mb="512", pond__swap_mb="1024")
    assert (both[quota.LOCAL], both[quota.REMOTE], both[quota.MIRROR]) == (7168, 1024, 2048)


@pytest.mark.parametrize(
    "specs",
    [
        {},
        {"pond__policy": "local"},
        {"pond__policy": "auto", "pond__max_pool_percent": "50"},
        {"pond__policy": "fixed"},  # without its pool_mb: refused elsewhere
    ],
)
def test_others_are_counted_as_nova_does(specs: dict[str, str]) -> None:
    """All of the RAM, nothing of the class."""
    counted = deltas(2, **specs)
    assert counted["class:MEMORY_MB"] == 8192
    assert quota.POOL not in counted


def test_before_nova_34_a_flavor_is_counted() -> None:
    """The wrapped function is handed the flavor itself."""
    flavor = objects.Flavor(memory_mb=4096, extra_specs={"pond:policy": "fixed", "pond:pool_mb": "1024"})
    counted = quota.count(lambda _flavor, _bfv, n: {"servers": n, quota.LOCAL: 4096 * n}, flavor, False, 2)
    assert counted == {"servers": 2, quota.LOCAL: 6144, quota.POOL: 2048}


@pytest.fixture
def enforced(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception | None], list[Any]]:
    """Have Nova use unified limits whose enforcer passes or raises; return what it was asked for."""

    def use(outcome: Exception | None) -> list[Any]:
        asked: list[Any] = []

        class Enforcer:
            def enforce(self, project_id: str, wanted: dict[str, int]) -> None:
                asked.append((project_id, wanted))
                if outcome is not None:
                    raise outcome

        monkeypatch.setattr(limit_utils, "use_unified_limits", lambda: True)
        monkeypatch.setattr(placement, "_get_enforcer", lambda *_: Enforcer())
        return asked

    return use


def over(limit: int) -> limit_exceptions.ProjectOverLimit:
    """Return oslo.limit's refusal."""
    info = limit_exceptions.OverLimitInfo(quota.POOL, limit, 1024, 1024)
    return limit_exceptions.ProjectOverLimit("project", [info])


def test_within_the_limit(enforced) -> None:
    """Asked for the class alone: the rest was nova-api's to ask."""
    asked = enforced(None)
    quota.check(None, "project", 2048)
    assert asked == [("project", {"class:CUSTOM_POND_MEMORY_MB": 2048})]


def test_over_the_limit(enforced) -> None:
    """The text has limit and usage."""
    enforced(over(1024))
    with pytest.raises(quota.OverQuota, match="limit of 1024"):
        quota.check(None, "project", 1024)


def test_without_a_registered_limit_nova_decides(enforced, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its [quota] unified_limits_resource_strategy."""
    enforced(over(0))
    monkeypatch.setattr(limit_utils, "should_enforce", lambda _over: False)
    quota.check(None, "project", 1024)
    monkeypatch.setattr(limit_utils, "should_enforce", lambda _over: True)
    with pytest.raises(quota.OverQuota):
        quota.check(None, "project", 1024)


@pytest.mark.parametrize(
    "failure",
    [
        keystone_exceptions.ConnectFailure("gone"),
        limit_exceptions.SessionInitError("no [oslo_limit]"),
        ValueError("Endpoint not found"),
    ],
)
def test_no_answer(enforced, failure: Exception) -> None:
    """Whatever the reason."""
    enforced(failure)
    with pytest.raises(quota.Unknown, match="is not known"):
        quota.check(None, "project", 1024)


def test_other_drivers_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their quotas know no classes."""
    monkeypatch.setattr(placement, "_get_enforcer", lambda *_: pytest.fail("asked"))
    quota.check(None, "project", 1024)
