"""What a flavor with pond:remote_mb or pond:swap_mb adds to the split of pool memory: what it claims, or a refusal."""

from dataclasses import replace
from typing import Any

from nova import exception

from pondstack.domain.errors import BadSpec
from pondstack.domain.live_move import why_it_stays
from pondstack.domain.remote_share import most_pool_percent, shares
from pondstack.domain.sizing import PondSpecs
from pondstack_nova import flavors, migrations, pins


def check(ctxt: Any, spec: Any, specs: PondSpecs) -> None:
    """Raise RequestFilterFailed when a request cannot have what is remote: something pins it, or its disk moves."""
    if not specs.remote_mib and not specs.swap_mib:
        return
    try:
        pins.check(specs, pins.of_request(spec))
    except BadSpec as error:
        raise exception.RequestFilterFailed(error.message) from error
    stays = why_it_stays(specs, ())  # what its pool memory is, its host knows
    move = migrations.find(ctxt, spec) if stays else None
    if move is not None and move.running_local_mib is not None:
        raise exception.RequestFilterFailed(stays)


def leave_local(specs: PondSpecs, memory_mib: int) -> PondSpecs:
    """Return the specs with no more pool memory than leaves some local memory beside the remote share."""
    most = most_pool_percent(memory_mib, specs.remote_mib, specs.max_pool_percent)
    return specs if most == specs.max_pool_percent else replace(specs, max_pool_percent=most)


def size(memory_mib: int, pool_mib: int, specs: PondSpecs | None, original: dict[str, str]) -> dict[str, str]:
    """Return a flavor's extra specs with what Nova is to ask Placement for; raises RequestFilterFailed."""
    try:
        wanted = specs if specs is not None else PondSpecs()
        found = shares(memory_mib, pool_mib, wanted.remote_mib, wanted.swap_mib, wanted.disk_mib)
    except BadSpec as error:
        raise exception.RequestFilterFailed(error.message) from error
    # Placement wants to hear how several suffixed groups relate: they come from providers of different kinds.
    related = {flavors.GROUP_POLICY_KEY: "none"} if pool_mib and found.remote_mib else {}
    return related | original | flavors.sized(found)
