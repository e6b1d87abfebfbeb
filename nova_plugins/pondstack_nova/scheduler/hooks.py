"""The internal hooks of nova-scheduler that pondstack relies on, each checked by behaviour on throw-away objects."""

import collections
import inspect
from typing import Any

from nova import exception, objects
from nova.compute import task_states
from nova.limit import placement as limits
from nova.limit import utils as limit_utils
from nova.scheduler import filters, host_manager, manager, request_filter, utils, weights
from nova.scheduler.client import report
from nova.scheduler.weights import ram
from oslo_limit import exception as limit_exceptions
from oslo_limit import limit as oslo_limit

from pondstack.domain.lending import REMOTE_CLASS
from pondstack.domain.remote_share import MIRROR_CLASS, Shares
from pondstack.domain.units import RESOURCE_CLASS
from pondstack_nova import self_check
from pondstack_nova.flavors import GROUP_POLICY_KEY, GROUP_SUFFIX, REMOTE_SUFFIX, sized
from pondstack_nova.self_check import Check, expect, swapped

UUID = "00000000-0000-0000-0000-000000000001"
HOST_STATE_FIELDS = (
    "host",
    "nodename",
    "uuid",
    "free_ram_mb",
    "aggregates",
    "allocation_candidates",
    "instances",
)


def request_filter_list() -> None:
    """ALL_REQUEST_FILTERS is a list that process_reqspec walks, calling each with (context, spec)."""
    seen: list[tuple[Any, ...]] = []

    def probe(*args: Any) -> bool:
        seen.append(args)
        return False

    expect(isinstance(request_filter.ALL_REQUEST_FILTERS, list), "it is no list")
    with swapped(request_filter, "ALL_REQUEST_FILTERS", [probe]):
        request_filter.process_reqspec("context", "spec")
    expect(seen == [("context", "spec")], f"process_reqspec called our probe with {seen}")


def request_filter_is_consulted() -> None:
    """select_destinations consults process_reqspec and turns RequestFilterFailed into NoValidHost with its text."""

    def refuse(*_: Any) -> None:
        raise exception.RequestFilterFailed("pondstack self-check")

    spec = objects.RequestSpec(scheduler_hints={})
    scheduler = object.__new__(manager.SchedulerManager)
    wrapped = inspect.unwrap(manager.SchedulerManager.select_destinations)
    with swapped(request_filter, "process_reqspec", refuse):
        try:
            wrapped(scheduler, None, spec_obj=spec, instance_uuids=[])
        except Exception as error:  # noqa: BLE001 - oslo.messaging wraps expected exceptions in its own class
            cause = error.exc_info[1] if hasattr(error, "exc_info") else error
            expect(isinstance(cause, exception.NoValidHost), f"it raised {type(cause).__name__}: {cause}")
            expect("pondstack self-check" in str(cause), f"the reason is lost: {cause}")
            return
    raise RuntimeError("a failing request filter did not end the request")


def suffixed_groups() -> None:
    """Extra specs of a RequestSpec's flavor become request groups: ours suffixed, MEMORY_MB overridden."""
    flavor = objects.Flavor(
        name="self-check", vcpus=1, memory_mb=4096, root_gb=0, ephemeral_gb=0, swap=0, extra_specs={}
    )
    flavor.extra_specs = {GROUP_POLICY_KEY: "none"} | sized(Shares(2048, 1024, 1024))
    spec = objects.RequestSpec(flavor=flavor, image=None, is_bfv=True, requested_resources=[])
    request = utils.ResourceRequest.from_request_spec(spec)
    own, *suffixed = (request._rg_by_id[name].resources for name in (None, GROUP_SUFFIX, REMOTE_SUFFIX))
    expect(own == {"VCPU": 1, "MEMORY_MB": 2048, MIRROR_CLASS: 3072}, f"the un-suffixed group is {own}")
    expect(suffixed == [{RESOURCE_CLASS: 1024}, {REMOTE_CLASS: 1024}], f"the suffixed groups are {suffixed}")
    expect(request.group_policy == "none", f"the policy of groups is {request.group_policy}")


def filter_all_signature() -> None:
    """The filter handler calls filter_all(hosts, spec), and goes on with what it returns."""

    class Probe(filters.BaseHostFilter):
        def filter_all(self, filter_obj_list: Any, spec_obj: Any) -> Any:
            return [(host, spec_obj.instance_uuid) for host in filter_obj_list]

    spec = objects.RequestSpec(instance_uuid=UUID)
    kept = filters.HostFilterHandler().get_filtered_objects([Probe()], ["host"], spec)
    expect(kept == [("host", UUID)], f"the handler went on with {kept}")


def host_state_fields() -> None:
    """HostState(host, node, cell) has the fields that filter and weighers read."""
    state = host_manager.HostState("host", "node", None)
    missing = [name for name in HOST_STATE_FIELDS if not hasattr(state, name)]
    expect(not missing, f"it has no {', '.join(missing)}")
    expect((state.host, state.nodename) == ("host", "node"), "it gave something else")


def weigh_objects_call() -> None:
    """The weight handler calls weigh_objects(weighed, spec) with .obj, honouring minval, maxval and the multiplier."""

    class Probe(weights.BaseHostWeigher):
        minval, maxval = 0.0, 1.0

        def weight_multiplier(self, _host_state: Any) -> float:
            return 2.0

        def weigh_objects(self, weighed_obj_list: Any, _weight_properties: Any) -> list[float]:
            return [0.5 if weighed.obj.host == "b" else 0.0 for weighed in weighed_obj_list]

        def _weigh_object(self, *_: Any) -> float:
            raise NotImplementedError

    hosts = [host_manager.HostState(name, name, None) for name in "ab"]
    result = weights.HostWeightHandler().get_weighed_objects([Probe()], hosts, None)
    got = [(weighed.obj.host, weighed.weight) for weighed in result]
    expect(got == [("b", 1.0), ("a", 0.0)], f"the handler weighed {got}")


def ram_weigher() -> None:
    """Nova's list of weighers holds RAMWeigher, which weighs free_ram_mb."""
    expect(ram.RAMWeigher in weights.all_weighers(), "RAMWeigher is not in all_weighers()")
    state = host_manager.HostState("host", "node", None)
    state.free_ram_mb = 42
    expect(ram.RAMWeigher()._weigh_object(state, None) == 42, "it does not weigh free_ram_mb")


def weight_multiplier_helper() -> None:
    """get_weight_multiplier(host_state, key, default) reads aggregates, else gives the default."""
    state = host_manager.HostState("host", "node", None)
    expect(utils.get_weight_multiplier(state, "pool_weight_multiplier", 1.5) == 1.5, "it gave something else")


def aggregates_are_known() -> None:
    """The manager's HostManager keeps all aggregates in aggs_by_id; Destination.aggregates has the required ones."""
    expect("host_manager" in manager.SchedulerManager.__init__.__code__.co_names, "the manager has no host_manager")
    known = object.__new__(host_manager.HostManager)
    known.aggs_by_id, known.host_aggregates_map = {}, collections.defaultdict(set)
    aggregate = objects.Aggregate(id=1, uuid=UUID, name="a", hosts=["host"], metadata={"key": "value"})
    known.update_aggregates([aggregate])
    found = [(item.uuid, item.metadata) for item in known.aggs_by_id.values()]
    expect(found == [(UUID, {"key": "value"})], f"aggs_by_id has {found}")
    destination = objects.Destination()
    destination.require_aggregates(["a", "b"])
    expect(destination.aggregates == ["a,b"], f"required are {destination.aggregates}")


def move_is_recognised() -> None:
    """What tells a move: the destination's cell, the instance's task and flavor, the holder of its claim."""
    expect("cell" in objects.Destination.fields, "a Destination has no cell")
    expect({"task_state", "uuid", "flavor"} <= set(objects.Instance.fields), "an Instance has no task_state or flavor")
    expect({"id", "uuid", "status", "migration_type"} <= set(objects.Migration.fields), "a Migration lacks fields")
    expect(task_states.MIGRATING == "migrating", f"the task is called {task_states.MIGRATING}")
    parameters = list(inspect.signature(report.SchedulerReportClient.get_allocs_for_consumer).parameters)
    expect(parameters == ["self", "context", "consumer"], f"get_allocs_for_consumer takes {parameters}")


def quota_enforcer() -> None:
    """An enforcer of Nova's asks Nova for a project's usage; should_enforce judges what is over a limit."""
    asked: list[Any] = []
    with (
        swapped(limits, "_get_usage", lambda *args: asked.append(args)),
        swapped(oslo_limit, "Enforcer", lambda usage: usage),
    ):
        limits._get_enforcer("context", "project")("project", ["class:A"])
    expect(asked == [("context", "project", ["class:A"])], f"usage was asked with {asked}")
    over = limit_exceptions.ProjectOverLimit("project", [limit_exceptions.OverLimitInfo("class:A", 1, 1, 1)])
    expect(limit_utils.should_enforce(over), "a limit that was set is not enforced")


CHECKS: list[Check] = [
    ("nova.scheduler.request_filter.ALL_REQUEST_FILTERS", request_filter_list),
    ("nova.scheduler.manager.SchedulerManager.select_destinations", request_filter_is_consulted),
    ("nova.scheduler.utils.ResourceRequest.from_request_spec", suffixed_groups),
    ("nova.filters.BaseFilter.filter_all", filter_all_signature),
    ("nova.scheduler.host_manager.HostState", host_state_fields),
    ("nova.weights.BaseWeigher.weigh_objects", weigh_objects_call),
    ("nova.scheduler.weights.ram.RAMWeigher", ram_weigher),
    ("nova.scheduler.utils.get_weight_multiplier", weight_multiplier_helper),
    ("nova.scheduler.host_manager.HostManager.aggs_by_id", aggregates_are_known),
    ("nova.objects.Destination, Instance, Migration of a move", move_is_recognised),
    ("nova.limit.placement, usage of a project", quota_enforcer),
]


def check() -> None:
    """Check what filter, weigher and request filter rely on; raises HookChanged."""
    self_check.run(CHECKS)
