"""A server of policy auto that finds no host with its pool memory."""

from types import SimpleNamespace
from typing import Any

import oslo_messaging
import pytest
from nova import exception

from pondstack.domain.sizing import Features, Policy, PondSpecs, Split
from pondstack_nova.scheduler import retry, used_splits
from pondstack_nova.scheduler.defaults import Origin


def request(
    policy: Policy = Policy.AUTO, pool_mib: int = 1024, source: str = "static", default_by: Origin | None = None
) -> Any:
    """Return a request with a decision."""
    spec = SimpleNamespace(instance_uuid="vm")
    features = Features("vm", 8192, 2, specs=PondSpecs(policy, pool_mib))
    split = Split(8192 - pool_mib, pool_mib, source, 1.0, "")
    used_splits.put_on(spec, used_splits.Decision(features, split, default_by))
    return spec


class Nova:
    """A scheduler without a host for pool memory; counts its tries."""

    def __init__(self) -> None:
        self.tries: list[bool] = []

    def select(self, *, spec_obj: Any = None) -> str:
        """Return the host, as select_destinations does."""
        self.tries.append(retry.goes_all_local(spec_obj))
        if not self.tries[-1]:
            raise exception.NoValidHost(reason="")
        return "host"


def test_it_is_tried_all_local_once() -> None:
    """And the request is not marked for its next move."""
    nova, spec = Nova(), request()
    assert retry.wrap(nova.select)(spec_obj=spec) == "host"
    assert nova.tries == [False, True]
    assert not retry.goes_all_local(spec)


def test_a_plain_flavor_asked_for_nothing() -> None:
    """What it has is not binding either: hosts that it may move to may be of an aggregate without."""
    nova = Nova()
    assert retry.wrap(nova.select)(spec_obj=request(source="present", default_by=Origin.OPTION)) == "host"


def test_a_request_gets_to_know_novas_aggregates() -> None:
    """The manager is the first argument of its method."""
    spec, manager = request(), SimpleNamespace(host_manager=object())
    retry.wrap(lambda _manager, spec_obj: spec_obj)(manager, spec_obj=spec)
    assert spec._pondstack_host_manager is manager.host_manager


def test_as_oslo_messaging_raises_it() -> None:
    """NoValidHost is expected there, and comes wrapped."""
    nova = Nova()
    select = oslo_messaging.expected_exceptions(exception.NoValidHost)(nova.select)
    assert retry.wrap(select)(spec_obj=request()) == "host"


@pytest.mark.parametrize(
    "spec", [request(Policy.FIXED), request(pool_mib=0), request(source="present"), SimpleNamespace(), None]
)
def test_what_is_not_negotiable_is_refused(spec: Any) -> None:
    """Fixed by the flavor, all local anyway, what a server has, or none of ours."""
    nova = Nova()
    with pytest.raises(exception.NoValidHost):
        retry.wrap(nova.select)(spec_obj=spec)
    assert nova.tries == [False]


def test_other_failures_are_not_ours() -> None:
    """Only a lack of hosts says anything of room."""

    def select(**_: Any) -> None:
        raise exception.NovaException("something else")

    with pytest.raises(exception.NovaException, match="something else"):
        retry.wrap(select)(spec_obj=request())
