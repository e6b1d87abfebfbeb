"""Hosts: who reaches which pool, and who may get new pool memory."""

from dataclasses import asdict
from typing import Any

from pondstack.domain.errors import BadRequest
from pondstack.domain.host_sleep import HostSleep
from pondstack.domain.lending import LenderKind
from pondstack.domain.power import mode_of
from pondstack.ledger.records import HostRecord
from pondstack_api import render
from pondstack_api.handlers import lender
from pondstack_api.pagination import page
from pondstack_api.request import Reply, Request
from pondstack_api.services import Services

FENCES_SINCE = (1, 1)
TIERING_SINCE = (1, 3)
LENDING_SINCE = (1, 10)
SLICES_SINCE = (1, 11)
FENCED_GENERATION_SINCE = (1, 17)
BORROWING_SINCE = (1, 18)
SLEEP_SINCE = (1, 19)
POWER_SINCE = (1, 21)


def body(host: HostRecord, version: tuple[int, int], services: Services) -> dict[str, Any]:
    """Return a host as the API shows it in a microversion. `pool_mib` is what the host holds now."""
    fence = {"fenced": host.fenced, "fenced_reason": host.fenced_reason} if version >= FENCES_SINCE else {}
    tiering = {"tiering": host.tiering} if version >= TIERING_SINCE else {}
    lending = {"lending": _lending(host)} if version >= LENDING_SINCE else {}
    borrowing = {"borrowing": _borrowing(host)} if version >= BORROWING_SINCE else {}
    sleep = {"sleep": _sleep(host.sleep)} if version >= SLEEP_SINCE else {}
    power = {"power": _power(host, services)} if version >= POWER_SINCE else {}
    own = {"host_slices": list(host.holdings), "tiering_on": host.tiering_on} if version >= SLICES_SINCE else {}
    return {
        "name": host.name,
        "enabled": host.enabled,
        "disabled_reason": host.disabled_reason,
        **fence,
        "up": host.up,
        "provider_uuid": host.provider_uuid,
        "pools": list(host.pools),
        "pool_mib": host.pool_mib,
        **tiering,
        **lending,
        **borrowing,
        **sleep,
        **power,
        **own,
        "generation": host.generation,
        "created_at": render.time(host.created_at),
    }


def _lending(host: HostRecord) -> dict[str, Any]:
    operation = lender.operation(host.lend) if host.lend else None
    return {"lent_mib": host.lent_mib, "admitted_mib": host.admitted_mib, "operation": operation}


def _borrowing(host: HostRecord) -> dict[str, Any]:
    return {"guaranteed_mib": host.guaranteed_mib, "best_effort_mib": host.best_effort_mib}


def _sleep(sleep: HostSleep | None) -> dict[str, Any] | None:
    if sleep is None:
        return None
    mode = mode_of(sleep.driver)
    return {
        "state": str(sleep.state),
        "driver": sleep.driver,
        "serves": mode.serves,
        "emulated": mode.emulated,
        "lent_mib": sleep.lent_mib,
        "reason": sleep.reason,
        "created_at": render.time(sleep.created_at),
        "updated_at": render.time(sleep.updated_at),
        "ended_at": None if sleep.ended_at is None else render.time(sleep.ended_at),
    }


def _power(host: HostRecord, services: Services) -> dict[str, Any]:
    """Return whether its memory is reachable, and what it is thought to take; by its own driver while it sleeps."""
    sleep = host.sleep if host.sleep is not None and host.sleep.is_open else None
    driver = sleep.driver if sleep is not None else str(services.conf.sleep.driver)
    return {
        "driver": driver,
        "memory_reachable": host.up if sleep is None else sleep.reachable,
        "estimate": asdict(services.energy(driver)),
    }


def list_hosts(request: Request) -> Reply:
    """List the hosts by name."""
    marker = request.query.get("marker")
    reader = request.services.reader
    return page(
        request,
        "hosts",
        "/hosts",
        lambda limit: reader.hosts(limit=limit, marker=marker),
        lambda host: host.name,
        lambda host: body(host, request.version, request.services),
    )


def show_host(request: Request) -> Reply:
    """Show a host."""
    return _shown(request)


def update_host(request: Request) -> Reply:
    """Enable or disable a host for new pool memory; what it has stays with it."""
    name, wanted = request.args["name"], request.body
    reason = wanted.get("disabled_reason", "")
    request.services.reader.host(name)
    request.services.controller.set_host(
        name=name, enabled=wanted["enabled"], reason=reason, generation=wanted["generation"]
    )
    return _shown(request)


def remove_host(request: Request) -> Reply:
    """Remove a host that is gone for good; refused, with the list of what is left, while anything of it is there."""
    request.services.reader.host(request.args["name"])
    request.services.controller.remove_host(name=request.args["name"])
    return Reply(None)


def fence_host(request: Request) -> Reply:
    """Take the pool memory from a host that is dead: `pool_mib` is what its devices have not confirmed yet."""
    name, wanted = request.args["name"], request.body
    known = request.services.reader.host(name)
    request.services.controller.fence_host(
        name=name,
        reason=wanted["reason"],
        force=wanted.get("force", False),
        generation=_fenced_generation(request, known),
    )
    return _shown(request)


def _fenced_generation(request: Request, known: HostRecord) -> int:
    """Return which generation of a host is to be fenced: the client says it, one of before 1.17 means that of now."""
    told: int | None = request.body.get("generation")
    if request.version < FENCED_GENERATION_SINCE:
        if told is not None:
            raise BadRequest("body generation: it came with memory 1.17; leave it out, or ask for that microversion")
        return known.generation
    if told is None:
        raise BadRequest(
            "body: 'generation' is required since memory 1.17; legal: the generation that GET /hosts/{name} showed, an "
            "integer"
        )
    return told


def unfence_host(request: Request) -> Reply:
    """Let a fenced host take part again, once its agent has reported that it holds nothing."""
    request.services.reader.host(request.args["name"])
    request.services.controller.unfence_host(name=request.args["name"])
    return _shown(request)


def delegate_host(request: Request) -> Reply:
    """Have a host lend so much in all, up to what it can spare; the lender's `operations` tell its progress."""
    name, wanted = request.args["name"], request.body
    request.services.reader.host(name)
    told = request.services.controller.delegate_host(
        name=name,
        mib=int(wanted["mib"]),
        kind=wanted.get("kind", LenderKind.ACTIVE.value),
        operation_id=wanted.get("operation_id"),
    )
    return Reply(lender.operation(told))


def reclaim_host(request: Request) -> Reply:
    """Have a host take back what it lends, by force when its borrowers take too long; progress as of delegate."""
    name, wanted = request.args["name"], request.body
    request.services.reader.host(name)
    told = request.services.controller.reclaim_host(
        name=name, mib=int(wanted["mib"]), seconds=wanted.get("seconds"), operation_id=wanted.get("operation_id")
    )
    return Reply(lender.operation(told))


def suspend_host(request: Request) -> Reply:
    """Begin to put an empty host to sleep, which lends its memory meanwhile; its `sleep` tells the progress."""
    name, wanted = request.args["name"], request.body
    request.services.reader.host(name)
    mib = wanted.get("mib")
    request.services.controller.suspend_host(
        name=name,
        driver=wanted.get("driver"),
        mib=None if mib is None else int(mib),
        operation_id=wanted.get("operation_id"),
    )
    return _shown(request)


def wake_host(request: Request) -> Reply:
    """Have a host wake, or not fall asleep; its `sleep` tells the progress."""
    name = request.args["name"]
    request.services.reader.host(name)
    request.services.controller.wake_host(name=name, operation_id=request.body.get("operation_id"))
    return _shown(request)


def set_slices(request: Request) -> Reply:
    """Have a host hold so many slices of a pool for itself; `host_slices` tells how far it is, and why no further."""
    name, wanted = request.args["name"], request.body
    known = request.services.reader.host(name)
    request.services.controller.set_host_slices(
        name=name,
        pool_uuid=wanted.get("pool_uuid") or _only_pool(known),
        purpose=wanted["purpose"],
        count=int(wanted["count"]),
        generation=wanted["generation"],
    )
    return _shown(request)


def set_tiering(request: Request) -> Reply:
    """Have a host's kernel demote and promote pages, or not; `tiering` tells what it has by its next report."""
    name, wanted = request.args["name"], request.body
    request.services.reader.host(name)
    request.services.controller.set_tiering(name=name, on=wanted["on"], generation=wanted["generation"])
    return _shown(request)


def _only_pool(host: HostRecord) -> str:
    if len(host.pools) != 1:
        pools = ", ".join(host.pools) or "none"
        raise BadRequest(f"host {host.name} reaches the pools {pools}; name the one that is meant (pool_uuid)")
    return host.pools[0]


def _shown(request: Request) -> Reply:
    return Reply(body(request.services.reader.host(request.args["name"]), request.version, request.services))
