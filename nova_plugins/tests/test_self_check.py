"""Each hook of Nova, changed away: refused, and named."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from nova.api.openstack import wsgi
from nova.api.openstack.compute import servers
from nova.api.validation.extra_specs import validators
from nova.compute import api as compute_api
from nova.compute import task_states
from nova.limit import placement as limits
from nova.limit import utils as limit_utils
from nova.objects import flavor as flavor_object
from nova.scheduler import filters, host_manager, manager, request_filter, utils, weights
from nova.scheduler.weights import ram

from pondstack_nova import self_check
from pondstack_nova.api import hooks as api_hooks
from pondstack_nova.scheduler import hooks as scheduler_hooks

Patch = tuple[Any, str, Any]


def nothing(*_args: Any, **_kwargs: Any) -> Any:
    """Do nothing."""


def without(owner: Any, field: str) -> Callable[..., None]:
    """Return an __init__ of `owner` that leaves a field out."""
    original = owner.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        delattr(self, field)

    return init


def ignore_groups(original: Any) -> Any:
    """Return a ResourceRequest._process_extra_specs that knows no suffixes."""

    def process(self: Any, flavor: Any) -> None:
        kept = {key: value for key, value in flavor.extra_specs.items() if "_POND" not in key}
        original(self, SimpleNamespace(extra_specs=kept, __contains__=lambda *_: True))

    return process


SCHEDULER: list[tuple[str, Patch]] = [
    ("nova.scheduler.request_filter.ALL_REQUEST_FILTERS", (request_filter, "ALL_REQUEST_FILTERS", ())),
    ("nova.scheduler.request_filter.ALL_REQUEST_FILTERS", (request_filter, "process_reqspec", nothing)),
    (
        "nova.scheduler.manager.SchedulerManager.select_destinations",
        (manager.SchedulerManager, "select_destinations", nothing),
    ),
    (
        "nova.scheduler.host_manager.HostManager.aggs_by_id",
        (host_manager.HostManager, "_update_aggregate", nothing),
    ),
    (
        "nova.scheduler.utils.ResourceRequest.from_request_spec",
        (utils.ResourceRequest, "XS_KEYPAT", utils.re.compile("never")),
    ),
    (
        "nova.filters.BaseFilter.filter_all",
        (filters.HostFilterHandler, "get_filtered_objects", lambda *_: ["host"]),
    ),
    (
        "nova.scheduler.host_manager.HostState",
        (host_manager.HostState, "__init__", without(host_manager.HostState, "allocation_candidates")),
    ),
    ("nova.weights.BaseWeigher.weigh_objects", (weights.HostWeightHandler, "get_weighed_objects", lambda *_: [])),
    ("nova.scheduler.weights.ram.RAMWeigher", (weights, "all_weighers", lambda: [])),
    ("nova.scheduler.weights.ram.RAMWeigher", (ram.RAMWeigher, "_weigh_object", lambda *_: 0)),
    (
        "nova.objects.Destination, Instance, Migration of a move",
        (task_states, "MIGRATING", "moving"),
    ),
    ("nova.scheduler.utils.get_weight_multiplier", (utils, "get_weight_multiplier", lambda *_: 1.0)),
    ("nova.limit.placement, usage of a project", (limits, "_get_enforcer", lambda *_: nothing)),
    ("nova.limit.placement, usage of a project", (limit_utils, "should_enforce", lambda _over: False)),
]

API: list[tuple[str, Patch]] = [
    ("nova.api.validation.extra_specs.validators.validate", (validators, "validate", nothing)),
    ("nova.api.validation.extra_specs.validators.validate", (validators, "VALIDATORS", [])),
    ("nova.objects.flavor.Flavor.save_extra_specs", (flavor_object.Flavor, "save", nothing)),
    (
        "nova.virt.hardware.numa_get_constraints",
        (compute_api.API, "_validate_flavor_image_numa_pci", staticmethod(nothing)),
    ),
    ("nova.api.openstack.wsgi.expected_errors", (wsgi, "expected_errors", lambda *_: lambda _method: nothing)),
    (
        "nova.api.openstack.compute.servers.INVALID_FLAVOR_IMAGE_EXCEPTIONS",
        (servers, "INVALID_FLAVOR_IMAGE_EXCEPTIONS", ()),
    ),
    ("nova.limit.placement, what a request counts", (limits, "_get_deltas", lambda *_: {"servers": 1})),
    ("nova.limit.placement, what a request counts", (limits, "enforce_num_instances_and_resources", nothing)),
]


def test_this_nova_fits() -> None:
    """All hooks are as expected."""
    scheduler_hooks.check()
    api_hooks.check()


@pytest.mark.parametrize(("hook", "patch"), SCHEDULER)
def test_changed_scheduler(monkeypatch: pytest.MonkeyPatch, hook: str, patch: Patch) -> None:
    """nova-scheduler refuses to load the filter, naming the hook."""
    monkeypatch.setattr(*patch)
    with pytest.raises(self_check.HookChanged) as refusal:
        scheduler_hooks.check()
    assert refusal.value.hook == hook
    assert hook in str(refusal.value)


@pytest.mark.parametrize(("hook", "patch"), API)
def test_changed_api(monkeypatch: pytest.MonkeyPatch, hook: str, patch: Patch) -> None:
    """nova-api refuses to load the validators, naming the hook."""
    monkeypatch.setattr(*patch)
    with pytest.raises(self_check.HookChanged) as refusal:
        api_hooks.check()
    assert refusal.value.hook == hook


def test_every_hook_has_a_test() -> None:
    """A new check needs a case above."""
    assert {hook for hook, _ in scheduler_hooks.CHECKS} == {hook for hook, _ in SCHEDULER}
    assert {hook for hook, _ in api_hooks.CHECKS} == {hook for hook, _ in API}


def test_probes_leave_nothing_behind() -> None:
    """What a check swaps in is swapped out again."""
    before = list(request_filter.ALL_REQUEST_FILTERS), dict(validators.VALIDATORS)
    scheduler_hooks.check()
    api_hooks.check()
    assert (list(request_filter.ALL_REQUEST_FILTERS), dict(validators.VALIDATORS)) == before
