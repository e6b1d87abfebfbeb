"""Pools: the pool devices of the rack."""

from typing import Any

from pondstack.ledger.records import PoolRecord
from pondstack_api import render
from pondstack_api.pagination import page
from pondstack_api.request import Reply, Request

FREE_BUFFERS_SINCE = (1, 8)


def body(pool: PoolRecord, version: tuple[int, int]) -> dict[str, Any]:
    """Return a pool as the API shows it in a microversion."""
    buffer = {"free_buffer": pool.free_buffer.to_record()} if version >= FREE_BUFFERS_SINCE else {}
    return {
        "uuid": pool.uuid,
        "name": pool.name,
        "serial": pool.serial,
        "driver": pool.driver,
        "state": pool.state,
        "slice_mib": pool.slice_mib,
        "slices_total": pool.slices_total,
        "slices": dict(pool.slices),
        **buffer,
        "hosts": list(pool.hosts),
        "generation": pool.generation,
        "created_at": render.time(pool.created_at),
    }


def list_pools(request: Request) -> Reply:
    """List the pools by uuid."""
    marker = request.query.get("marker")
    reader = request.services.reader
    return page(
        request,
        "pools",
        "/pools",
        lambda limit: reader.pools(limit=limit, marker=marker),
        lambda pool: pool.uuid,
        lambda pool: body(pool, request.version),
    )


def show_pool(request: Request) -> Reply:
    """Show a pool, found by uuid or name."""
    return Reply(body(request.services.reader.pool(request.args["pool"]), request.version))


def remove_pool(request: Request) -> Reply:
    """Remove a pool whose device is gone for good; refused, with the list of what is left, while guests have of it."""
    uuid = request.services.reader.pool(request.args["pool"]).uuid
    request.services.controller.remove_pool(uuid=uuid)
    return Reply(None)
