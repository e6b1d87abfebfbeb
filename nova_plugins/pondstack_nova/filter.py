"""PondFilter, for [filter_scheduler] enabled_filters (available_filters += pondstack_nova.filter.PondFilter).

Importing this module checks Nova's internal hooks and installs request filter and retry (see its end).
"""

from collections.abc import Iterable
from typing import Any

import nova.conf
from nova.scheduler import filters
from oslo_log import log as logging

from pondstack.domain.units import RESOURCE_CLASS
from pondstack_nova import stats
from pondstack_nova.counters import HOST_REJECTS
from pondstack_nova.scheduler import aggregates, defaults, groups, hooks, request_filter, retry, snapshot, used_splits
from pondstack_nova.scheduler.defaults import Origin
from pondstack_nova.scheduler.rack import Rack

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

NO_SNAPSHOT = "no snapshot from pondstack-controller yet; requests without pool memory pass"


class PondFilter(filters.BaseHostFilter):
    """Pass hosts that can really get the pool memory of a request: usable, and reaching a pool with enough free slices.

    Where a default policy gave it, hosts of an aggregate that has none of that fail.

    One cached snapshot serves all hosts. Requests without pool memory pass everywhere. While no controller answers, the
    last snapshot decides; without any, hosts fail for requests with pool memory.
    """

    RUN_ON_REBUILD = False

    def filter_all(self, filter_obj_list: Iterable[Any], spec_obj: Any) -> Iterable[Any]:
        """Return the hosts that pass; the reason of each reject is logged."""
        # Once for each instance of a request, which the request filter sees but once.
        decision = used_splits.of(spec_obj)
        if decision is not None:
            used_splits.used_splits().note(spec_obj.instance_uuid, decision)
        need_mib = request_filter.pool_mib_of(spec_obj)
        if need_mib == 0:
            return filter_obj_list
        hosts = list(filter_obj_list)
        refusals = {id(host): _told(host, spec_obj) for host in hosts}
        able = [host for host in hosts if refusals[id(host)] is None]
        spread = groups.look(spec_obj)
        rack = snapshot.cache().first(CONF.pondstack.first_view_seconds)
        passed = _passing(able, rack, need_mib, spread) if rack is not None else {}
        if not passed and able:
            # The view may be one interval old: wait for a newer one, once, before nobody is left.
            rack = snapshot.cache().newer(CONF.pondstack.split_timeout_ms / 1000) or rack
            passed = _passing(able, rack, need_mib, spread) if rack is not None else {}
        kept = []
        for host in hosts:
            if id(host) in passed:
                host.allocation_candidates = passed[id(host)]
                kept.append(host)
                continue
            word, reason = refusals[id(host)] or _refusal(host, rack, need_mib)
            HOST_REJECTS.add(word)
            log = LOG.info if rack is None else LOG.debug
            log("Host %s fails for instance %s: %s", host.nodename, spec_obj.instance_uuid, reason)
        return kept


def _told(host: Any, spec: Any) -> tuple[str, str] | None:
    """Return why a host is out of the question, whatever its pools have; None when it is not."""
    told = stats.refusal(host)
    if told is not None:
        return "host_refuses", told
    if defaults.is_plain(spec) and not stats.by_claim(host):
        return "former_release", "its nova-compute is of a former release, and takes plain flavors for all local"
    decision = used_splits.of(spec)
    by = None if decision is None else decision.default_by
    if by in (Origin.AGGREGATE, Origin.OPTION) and aggregates.refuses(host):
        return "aggregate_refuses", aggregates.REFUSAL
    return None


def _refusal(host: Any, rack: Rack | None, need_mib: int) -> tuple[str, str]:
    """Return why a host fails: the word of the counter, and the text."""
    if rack is None:
        return "no_snapshot", NO_SNAPSHOT
    return "no_room", rack.refusal(host.nodename, need_mib)


def _passing(hosts: Iterable[Any], rack: Rack, need_mib: int, spread: groups.Spread) -> dict[int, list[Any]]:
    """Return, by id of each passing host, its allocation candidates: fitting pools only, the best first.

    That is the one with fewest members of an anti-affinity group, then the most comfortable one.
    """
    passed = {}
    for host in hosts:
        fitting = [pool.uuid for pool in rack.fitting(host.nodename, need_mib) if not spread.refuses(pool.uuid)]
        fitting.sort(key=lambda uuid: spread.members.get(uuid, 0))
        if not fitting:
            continue
        if not host.allocation_candidates:  # Placement was not asked (a legacy caller): the pool alone decides
            passed[id(host)] = host.allocation_candidates
            continue
        rank = {uuid: index for index, uuid in enumerate(fitting)}
        ranked = [(rank.get(_pool_of(candidate), -1), candidate) for candidate in host.allocation_candidates]
        keep = sorted((item for item in ranked if item[0] >= 0), key=lambda item: item[0])
        if keep:
            passed[id(host)] = [candidate for _, candidate in keep]
    return passed


def _pool_of(candidate: dict[str, Any]) -> str:
    """Return the provider that an allocation candidate takes pool memory from, "" for none."""
    for uuid, allocation in candidate["allocations"].items():
        if RESOURCE_CLASS in allocation["resources"]:
            return str(uuid)
    return ""


# Nova has no setting for request filters: nova-scheduler imports this module for PondFilter, and that installs ours.
hooks.check()
request_filter.install()
retry.install()
