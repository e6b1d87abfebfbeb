"""Weighers, for [filter_scheduler] weight_classes = pondstack_nova.weigher.all_weighers."""

from collections.abc import Mapping
from typing import Any

import nova.conf
from nova.scheduler import utils, weights
from nova.scheduler.weights.ram import RAMWeigher

from pondstack.domain.host_choice import local_ram_mib, pool_weight
from pondstack_nova.scheduler import groups, request_filter, snapshot
from pondstack_nova.scheduler.rack import Rack, comfort

CONF = nova.conf.CONF


class PondWeigher(weights.BaseHostWeigher):
    """Prefer hosts whose best pool keeps a comfortable free buffer; others prefer hosts without a pool when equal.

    Weights are absolute (0 to 1), so a small difference is not blown up by Nova's normalisation.
    """

    minval = 0.0
    maxval = 1.0

    def weight_multiplier(self, host_state: Any) -> float:
        """Return [pondstack] pool_weight_multiplier, or the aggregate's."""
        return float(
            utils.get_weight_multiplier(host_state, "pool_weight_multiplier", CONF.pondstack.pool_weight_multiplier)
        )

    def weigh_objects(self, weighed_obj_list: Any, weight_properties: Any) -> list[float]:
        """Weigh all hosts with one snapshot; without one all are equal."""
        rack = snapshot.cache().latest()[0]
        if rack is None:
            return [0.0] * len(weighed_obj_list)
        need_mib = request_filter.pool_mib_of(weight_properties)
        return [self._weigh(rack, weighed.obj.nodename, need_mib) for weighed in weighed_obj_list]

    def _weigh_object(self, host_state: Any, weight_properties: Any) -> float:
        rack = snapshot.cache().latest()[0]
        return (
            0.0
            if rack is None
            else self._weigh(rack, host_state.nodename, request_filter.pool_mib_of(weight_properties))
        )

    @staticmethod
    def _weigh(rack: Rack, host: str, need_mib: int) -> float:
        fitting = rack.fitting(host, need_mib) if need_mib else ()
        most = max((comfort(pool, need_mib) for pool in fitting), default=0.0)
        return pool_weight(need_mib, bool(rack.pools_of(host)), most)


class PondAntiAffinityWeigher(weights.BaseHostWeigher):
    """Prefer hosts with a pool that no, or fewer, members of the VM's anti-affinity group have memory of."""

    minval = -1.0
    maxval = 0.0

    def weight_multiplier(self, host_state: Any) -> float:
        """Return [pondstack] pool_anti_affinity_weight_multiplier, or the aggregate's."""
        name = "pool_anti_affinity_weight_multiplier"
        return float(utils.get_weight_multiplier(host_state, name, getattr(CONF.pondstack, name)))

    def weigh_objects(self, weighed_obj_list: Any, weight_properties: Any) -> list[float]:
        """Weigh all hosts with what PondFilter has found of the group."""
        return [self._weigh_object(weighed.obj, weight_properties) for weighed in weighed_obj_list]

    def _weigh_object(self, host_state: Any, weight_properties: Any) -> float:
        rack, members = snapshot.cache().latest()[0], groups.of(weight_properties).members
        need_mib = request_filter.pool_mib_of(weight_properties)
        if rack is None or not members or need_mib == 0:
            return 0.0
        return -self._fewest(rack, host_state.nodename, need_mib, members) / max(members.values())

    @staticmethod
    def _fewest(rack: Rack, host: str, need_mib: int, members: Mapping[str, int]) -> int:
        return min((members.get(pool.uuid, 0) for pool in rack.fitting(host, need_mib)), default=0)


class LocalRAMWeigher(RAMWeigher):
    """Nova's RAMWeigher by local RAM: HostState.free_ram_mb has each guest's whole memory off, pool memory included.

    The pool memory of the host's guests (from the snapshot) is added back; without a snapshot it is Nova's figure.
    """

    def weigh_objects(self, weighed_obj_list: Any, weight_properties: Any) -> list[float]:  # noqa: ARG002 - Nova's
        """Weigh all hosts with one snapshot."""
        rack = snapshot.cache().latest()[0]
        pool_mib = rack.pool_mib_by_host if rack is not None else {}
        return [
            local_ram_mib(weighed.obj.free_ram_mb, pool_mib.get(weighed.obj.nodename, 0))
            for weighed in weighed_obj_list
        ]


def all_weighers() -> list[type]:
    """Return Nova's weighers with RAMWeigher superseded by LocalRAMWeigher, and ours.

    Those that weight_classes names itself are left to it: nova-conductor lets soft server groups pass only where it
    names their weighers, or Nova's own list.
    """
    named = set(CONF.filter_scheduler.weight_classes)
    stock = [cls for cls in weights.all_weighers() if f"{cls.__module__}.{cls.__qualname__}" not in named]
    return [cls for cls in stock if cls is not RAMWeigher] + [LocalRAMWeigher, PondWeigher, PondAntiAffinityWeigher]
