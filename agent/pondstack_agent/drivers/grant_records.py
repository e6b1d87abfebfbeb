"""What drivers share about a grant: whether the device lets it in, and how its record is read."""

from collections.abc import Iterable, Mapping
from typing import Any

from pondstack.devices.base import Heir, Permission
from pondstack.domain.errors import PermissionHeld
from pondstack.domain.model import Extent, indexes_of
from pondstack.domain.purpose import Purpose, check_node
from pondstack.rpc.wire import Attached, Grant


def check_permission(table: Mapping[int, Permission], host: str, grant: Grant) -> None:
    """Raise PermissionHeld unless the device's table lets this host and allocation use every slice of a grant.

    The heir of a slice may use it by a grant that says that it is handed over.
    """
    own = Heir(host, grant.allocation_uuid)
    for index in indexes_of(grant.extents):
        entry = table.get(index)
        inherits = grant.handed and entry is not None and entry.heir == own
        if entry is None or not (inherits or Heir(entry.host, entry.tag) == own):
            holder = f"allocation {entry.tag} of host {entry.host}" if entry else "nobody"
            raise PermissionHeld(
                f"the device lets {holder} use slice {index} of pool {grant.pool_name}, not allocation "
                f"{grant.allocation_uuid} of host {host}; have the controller assign again"
            )


def tags(entry: Permission, host: str) -> set[str]:
    """Return the allocations for which a permission lets a host in, as its holder or as its heir."""
    holders = [(entry.host, entry.tag), *([(entry.heir.host, entry.heir.tag)] if entry.heir else [])]
    return {tag for name, tag in holders if name == host}


def extents_in(record: Mapping[str, Any]) -> tuple[Extent, ...]:
    """Return the extents of a record."""
    return tuple(Extent(item["start"], item["count"]) for item in record["extents"])


def describe(record: Mapping[str, Any], *, in_use: bool, backing: str) -> Attached:
    """Return what a report says of a record; `backing`: the kind of its driver's backings."""
    return Attached(
        allocation_uuid=record["allocation_uuid"],
        consumer_uuid=record["consumer_uuid"],
        pool_uuid=record["pool_uuid"],
        extents=extents_in(record),
        in_use=in_use,
        purpose=record.get("purpose", Purpose.GUEST),
        backing=backing,
    )


def check_purpose(grant: Grant, records: Iterable[Mapping[str, Any]]) -> None:
    """Raise PurposeConflict when other records have slices of the grant's pool for what excludes it."""
    others = (item for item in records if item["allocation_uuid"] != grant.allocation_uuid)
    present = {Purpose(item.get("purpose", Purpose.GUEST)) for item in others if item["pool_uuid"] == grant.pool_uuid}
    check_node(Purpose(grant.purpose), present, grant.host, grant.pool_name)
