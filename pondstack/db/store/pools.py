"""Pools and hosts in SQL: registration, heartbeats, enabling. Called inside a transaction of the ledger."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, delete, insert, select, update
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import HostPoolRow, HostRow, PoolRow, SliceRow
from pondstack.domain.errors import Conflict, DeviceFailed, GenerationConflict, HostUnusable, NotFound
from pondstack.domain.model import Pool, PoolState
from pondstack.domain.states import SliceState

CHUNK = 500


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a report changed. `accepted` False: it came late and changed nothing."""

    accepted: bool
    reach_changed: bool = False


def register_pool(
    session: Session,
    *,
    uuid: str,
    name: str,
    serial: str,
    driver: str,
    address: Mapping[str, Any],
    slice_mib: int,
    slices_total: int,
) -> range:
    """Add a pool with all its slices free, or refresh name, driver and address of a known one.

    Returns the indexes of the slices that are new to the ledger: all of them, or those of a device that grew. Raises
    Conflict: it shrank, changed its slice size, or the name is taken.
    """
    other = session.execute(select(PoolRow.uuid).where(PoolRow.name == name, PoolRow.uuid != uuid)).scalar()
    if other is not None:
        raise Conflict(f"the pool name {name} belongs to another device ({other}); choose another in pool_devices")
    row = session.get(PoolRow, uuid)
    known = 0 if row is None else row.slices_total
    if row is not None and (row.slice_mib != slice_mib or slices_total < row.slices_total):
        raise Conflict(
            f"device {serial} now has {slices_total} slices of {slice_mib} MiB, the ledger knows {row.slices_total} of "
            f"{row.slice_mib} MiB: retire the pool first"
        )
    values = {"name": name, "driver": driver, "address": dict(address), "slices_total": slices_total}
    if row is None:
        session.execute(
            insert(PoolRow).values(
                uuid=uuid,
                serial=serial,
                slice_mib=slice_mib,
                state=PoolState.UP,
                generation=0,
                created_at=now_seconds(),
                **values,
            )
        )
    else:
        session.execute(update(PoolRow).where(PoolRow.uuid == uuid).values(state=PoolState.UP, **values))
    for start in range(known, slices_total, CHUNK):
        _insert_slices(session, uuid, range(start, min(start + CHUNK, slices_total)))
    return range(known, slices_total)


def _insert_slices(session: Session, pool_uuid: str, indexes: Iterable[int]) -> None:
    moment = session.execute(select(now_seconds())).scalar_one()
    session.execute(
        insert(SliceRow),
        [
            {
                "pool_uuid": pool_uuid,
                "index": index,
                "state": SliceState.FREE,
                "host": None,
                "allocation_uuid": None,
                "epoch": 0,
                "reason": "",
                "changed_at": moment,
            }
            for index in indexes
        ],
    )


def set_pool_state(session: Session, uuid: str, state: PoolState) -> bool:
    """Write down a pool's health; returns whether it changed."""
    row = session.get(PoolRow, uuid)
    if row is None:
        raise NotFound(f"there is no pool {uuid}; list the pools")
    if row.state == state:
        return False
    row.state = state
    row.generation += 1
    return True


def write_report(session: Session, report: Mapping[str, Any], down_seconds: float) -> Receipt:
    """Take an agent's report over as the host's state; the first one registers the host.

    A lower sequence is late, unless the host has been silent for so long that its agent must have started anew.
    """
    name = report["host"]
    row = session.get(HostRow, name)
    values = {
        "agent_version": report["version"][:64],
        "agent_epoch": report["epoch"],
        "sequence": report["sequence"],
        "attached": list(report["attached"]),
        "stuck": dict(report.get("stuck") or {}),
        "tiering": dict(report.get("tiering") or {}),
        "lending": report.get("lending"),
        "borrowed": report.get("borrowed"),
        "last_heartbeat": now_seconds(),
    }
    if row is None:
        extra = {"enabled": True, "disabled_reason": "", "generation": 0, "provider_uuid": None}
        session.execute(insert(HostRow).values(name=name, created_at=now_seconds(), **extra, **values))
    else:
        age = session.execute(select(now_seconds() - HostRow.last_heartbeat).where(HostRow.name == name)).scalar_one()
        if report["sequence"] < row.sequence and age <= down_seconds:
            return Receipt(accepted=False)
        session.execute(update(HostRow).where(HostRow.name == name).values(**values))
    return Receipt(accepted=True, reach_changed=_write_reach(session, name, set(report["pools"])))


def _write_reach(session: Session, host: str, reached: set[str]) -> bool:
    """Write down which of the known pools a host reaches; returns whether that is new."""
    known = set(session.execute(select(PoolRow.uuid).where(PoolRow.uuid.in_(sorted(reached)))).scalars())
    present = set(session.execute(select(HostPoolRow.pool_uuid).where(HostPoolRow.host == host)).scalars())
    for uuid in sorted(known - present):
        session.execute(insert(HostPoolRow).values(host=host, pool_uuid=uuid))
    if present - known:
        gone = sorted(present - known)
        session.execute(delete(HostPoolRow).where(HostPoolRow.host == host, HostPoolRow.pool_uuid.in_(gone)))
    return known != present


def set_host(session: Session, name: str, enabled: bool, reason: str, generation: int | None) -> int:
    """Enable or disable a host; returns its new generation. Raises NotFound, GenerationConflict."""
    row = session.get(HostRow, name)
    if row is None:
        raise NotFound(f"there is no host {name}; its agent has never reported")
    if generation is not None and generation != row.generation:
        raise GenerationConflict(f"host {name} is at generation {row.generation}, not {generation}; read it again")
    reason = "" if enabled else reason[:255]
    if (row.enabled, row.disabled_reason) != (enabled, reason):
        row.enabled, row.disabled_reason = enabled, reason
        row.generation += 1
    return row.generation


def fence_host(session: Session, name: str, reason: str, down_seconds: float | None) -> None:
    """Note that a host is fenced; `down_seconds` None: whether its agent lives or not. Raises NotFound, Conflict."""
    row, age = _host(session, name)
    if down_seconds is not None and row.fenced_at is None and age <= down_seconds:
        raise Conflict(
            f"host {name} is not dead: its agent reported {age:.1f} s ago. Fencing takes the memory from its running "
            "guests; power it off first, or force it if you are sure"
        )
    session.execute(
        update(HostRow)
        .where(HostRow.name == name)
        .values(fenced_at=now_seconds(), fenced_reason=reason[:255], generation=HostRow.generation + 1)
    )


def unfence_host(session: Session, name: str) -> None:
    """Note that a host is fenced no more. Raises NotFound, and Conflict unless its agent reported an empty host."""
    row, _age = _host(session, name)
    if row.fenced_at is None:
        return
    if row.last_heartbeat <= row.fenced_at:
        raise Conflict(f"the agent of host {name} has not reported since the host was fenced; start it first")
    if row.attached:
        held = ", ".join(sorted(item["allocation_uuid"] for item in row.attached))
        raise Conflict(
            f"host {name} still holds what was taken from it (allocations {held}); its agent drops them once no guest "
            "uses them: destroy the guests that still run there"
        )
    session.execute(
        update(HostRow)
        .where(HostRow.name == name)
        .values(fenced_at=None, fenced_reason="", generation=HostRow.generation + 1)
    )


def is_fenced(session: Session, name: str) -> bool:
    """Return whether a host is fenced."""
    query = select(HostRow.name).where(HostRow.name == name, HostRow.fenced_at.is_not(None))
    return session.execute(query).scalar_one_or_none() is not None


def _host(session: Session, name: str) -> tuple[HostRow, float]:
    """Return a host and the seconds since it was heard of; raises NotFound."""
    found = session.execute(
        select(HostRow, now_seconds() - HostRow.last_heartbeat).where(HostRow.name == name)
    ).one_or_none()
    if found is None:
        raise NotFound(f"there is no host {name}; its agent has never reported")
    return found[0], found[1]


def set_provider(session: Session, name: str, provider_uuid: str) -> None:
    """Remember the UUID of a host's Placement provider."""
    session.execute(update(HostRow).where(HostRow.name == name).values(provider_uuid=provider_uuid))


def usable_pool(session: Session, uuid: str, name: str) -> Pool:
    """Return the pool if the host may have slices of it; raises NotFound, HostUnusable, DeviceFailed."""
    found = session.execute(
        select(PoolRow, HostRow, HostPoolRow)
        .select_from(PoolRow)
        .outerjoin(HostRow, HostRow.name == name)
        .outerjoin(HostPoolRow, and_(HostPoolRow.host == HostRow.name, HostPoolRow.pool_uuid == PoolRow.uuid))
        .where(PoolRow.uuid == uuid)
    ).one_or_none()
    if found is None:
        raise NotFound(f"there is no pool {uuid}; list the pools")
    pool, host, link = found
    if host is None:
        raise HostUnusable(f"host {name} is unknown: its agent has never reported; look at its log")
    refuse_unusable(host, pool, reached=link is not None)
    return Pool(pool.uuid, pool.name, pool.slices_total, pool.slice_mib)


def check_host(session: Session, name: str) -> None:
    """Raise HostUnusable unless the host may have memory."""
    host = session.get(HostRow, name)
    if host is None:
        raise HostUnusable(f"host {name} is unknown: its agent has never reported; look at its log")
    refuse_host(host)


def refuse_host(host: Any) -> None:
    """Raise HostUnusable when this row, of whatever store, forbids to give the host memory."""
    if not host.enabled:
        raise HostUnusable(f"host {host.name} is disabled ({host.disabled_reason}); enable it first")
    if host.fenced_at is not None:
        raise HostUnusable(f"host {host.name} is fenced ({host.fenced_reason}); unfence it once it is in order")


def refuse_unusable(host: Any, pool: Any, *, reached: bool) -> None:
    """Raise HostUnusable or DeviceFailed when these rows, of whatever store, forbid to give the host slices."""
    refuse_host(host)
    if not reached:
        raise HostUnusable(f"host {host.name} does not reach pool {pool.name}; its agent reports other pools")
    if pool.state != PoolState.UP:
        raise DeviceFailed(f"pool {pool.name} has failed; look at the device")
