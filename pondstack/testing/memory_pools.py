"""Pools and hosts in a MemoryStore; what pondstack.db.pools is in SQL."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pondstack.db.pools import Receipt, refuse_host, refuse_unusable
from pondstack.domain.errors import Conflict, GenerationConflict, HostUnusable, NotFound
from pondstack.domain.model import Pool, PoolState, Slice
from pondstack.testing.memory_store import HostRow, PoolRow, SliceRow, Transaction


def register_pool(
    tx: Transaction,
    *,
    uuid: str,
    name: str,
    serial: str,
    driver: str,
    address: Mapping[str, Any],
    slice_mib: int,
    slices_total: int,
) -> range:
    """Add a pool with all its slices free, or refresh a known one; returns the new slices' indexes. Raises Conflict."""
    rows = tx.tables.pools
    other = next((row.uuid for row in rows.values() if row.name == name and row.uuid != uuid), None)
    if other is not None:
        raise Conflict(f"the pool name {name} belongs to another device ({other}); choose another in pool_devices")
    row = rows.get(uuid)
    if row is not None and (row.slice_mib != slice_mib or slices_total < row.slices_total):
        raise Conflict(f"device {serial} now has {slices_total} slices of {slice_mib} MiB: retire the pool first")
    known = 0 if row is None else row.slices_total
    values: dict[str, Any] = {"name": name, "driver": driver, "address": dict(address), "slices_total": slices_total}
    if row is None:
        row = PoolRow(uuid=uuid, serial=serial, slice_mib=slice_mib, created_at=tx.now(), **values)
    tx.put(rows, uuid, replace(row, state=str(PoolState.UP), **values))
    for index in range(known, slices_total):
        tx.put(tx.tables.slices, (uuid, index), SliceRow(Slice(uuid, index), tx.now()))
    return range(known, slices_total)


def set_pool_state(tx: Transaction, uuid: str, state: PoolState) -> bool:
    """Write down a pool's health; returns whether it changed."""
    row = tx.tables.pools.get(uuid)
    if row is None:
        raise NotFound(f"there is no pool {uuid}; list the pools")
    if row.state == state:
        return False
    tx.put(tx.tables.pools, uuid, replace(row, state=str(state), generation=row.generation + 1))
    return True


def write_report(tx: Transaction, report: Mapping[str, Any], down_seconds: float) -> Receipt:
    """Take an agent's report over as the host's state; a lower sequence is late, unless the host was silent."""
    name, now = report["host"], tx.now()
    row = tx.tables.hosts.get(name)
    if row is None:
        row = HostRow(name, created_at=now, last_heartbeat=now)
    elif report["sequence"] < row.sequence and now - row.last_heartbeat <= down_seconds:
        return Receipt(accepted=False)
    reached = frozenset(report["pools"]) & frozenset(tx.tables.pools)
    after = replace(
        row,
        agent_version=report["version"][:64],
        agent_epoch=report["epoch"],
        sequence=report["sequence"],
        attached=tuple(report["attached"]),
        stuck=dict(report.get("stuck") or {}),
        tiering=dict(report.get("tiering") or {}),
        lending=report.get("lending"),
        borrowed=report.get("borrowed"),
        last_heartbeat=now,
        pools=reached,
    )
    tx.put(tx.tables.hosts, name, after)
    return Receipt(accepted=True, reach_changed=reached != row.pools)


def set_host(tx: Transaction, name: str, enabled: bool, reason: str, generation: int | None) -> int:
    """Enable or disable a host; returns its new generation. Raises NotFound, GenerationConflict."""
    row = tx.tables.hosts.get(name)
    if row is None:
        raise NotFound(f"there is no host {name}; its agent has never reported")
    if generation is not None and generation != row.generation:
        raise GenerationConflict(f"host {name} is at generation {row.generation}, not {generation}; read it again")
    reason = "" if enabled else reason[:255]
    if (row.enabled, row.disabled_reason) != (enabled, reason):
        row = replace(row, enabled=enabled, disabled_reason=reason, generation=row.generation + 1)
        tx.put(tx.tables.hosts, name, row)
    return row.generation


def fence_host(tx: Transaction, name: str, reason: str, down_seconds: float | None) -> None:
    """Note that a host is fenced; `down_seconds` None: whether its agent lives or not. Raises NotFound, Conflict."""
    row = _host(tx, name)
    if down_seconds is not None and row.fenced_at is None and tx.now() - row.last_heartbeat <= down_seconds:
        raise Conflict(f"host {name} is not dead: its agent reports; power it off first, or force it")
    after = replace(row, fenced_at=tx.now(), fenced_reason=reason[:255], generation=row.generation + 1)
    tx.put(tx.tables.hosts, name, after)


def unfence_host(tx: Transaction, name: str) -> None:
    """Note that a host is fenced no more. Raises NotFound, and Conflict unless its agent reported an empty host."""
    row = _host(tx, name)
    if row.fenced_at is None:
        return
    if row.last_heartbeat <= row.fenced_at:
        raise Conflict(f"the agent of host {name} has not reported since the host was fenced; start it first")
    if row.attached:
        held = ", ".join(sorted(item["allocation_uuid"] for item in row.attached))
        raise Conflict(f"host {name} still holds what was taken from it (allocations {held})")
    tx.put(tx.tables.hosts, name, replace(row, fenced_at=None, fenced_reason="", generation=row.generation + 1))


def is_fenced(tx: Transaction, name: str) -> bool:
    """Return whether a host is fenced."""
    row = tx.tables.hosts.get(name)
    return row is not None and row.fenced_at is not None


def _host(tx: Transaction, name: str) -> HostRow:
    row = tx.tables.hosts.get(name)
    if row is None:
        raise NotFound(f"there is no host {name}; its agent has never reported")
    return row


def set_provider(tx: Transaction, name: str, provider_uuid: str) -> None:
    """Remember the UUID of a host's Placement provider."""
    row = tx.tables.hosts.get(name)
    if row is not None:
        tx.put(tx.tables.hosts, name, replace(row, provider_uuid=provider_uuid))


def usable_pool(tx: Transaction, uuid: str, name: str) -> Pool:
    """Return the pool if the host may have slices of it; raises NotFound, HostUnusable, DeviceFailed."""
    pool, host = tx.tables.pools.get(uuid), tx.tables.hosts.get(name)
    if pool is None:
        raise NotFound(f"there is no pool {uuid}; list the pools")
    if host is None:
        raise HostUnusable(f"host {name} is unknown: its agent has never reported; look at its log")
    refuse_unusable(host, pool, reached=uuid in host.pools)
    return Pool(pool.uuid, pool.name, pool.slices_total, pool.slice_mib)


def check_host(tx: Transaction, name: str) -> None:
    """Raise HostUnusable unless the host may have memory."""
    host = tx.tables.hosts.get(name)
    if host is None:
        raise HostUnusable(f"host {name} is unknown: its agent has never reported; look at its log")
    refuse_host(host)
