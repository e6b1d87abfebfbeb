"""Slices that are there and not on record: the agent's state folder was lost, or it was killed long ago."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from pondstack.domain.backing import DEVDAX, NODE
from pondstack.domain.model import extents_of
from pondstack.domain.units import MIB
from pondstack_agent.drivers.cxl.dax import DEVDAX as CHARACTER_DEVICE
from pondstack_agent.drivers.cxl.dax import DaxDevice, Slices
from pondstack_agent.host import mapped_files, memory_users


@dataclass(frozen=True, slots=True)
class Stranger:
    """What would be the record of some slices, and whether somebody may be using them."""

    record: dict[str, Any]
    in_use: bool
    backing: str
    """As in pondstack.domain.backing."""


def strangers(
    pool: str,
    slices: Slices,
    slice_mib: int | None,
    recorded: Collection[int],
    tag: Callable[[int], str],
    consumers: Collection[str],
) -> list[Stranger]:
    """Return the slices of a pool that are not on record, by tag.

    In use is what is online while a process has pages on its node that is no guest of `consumers` (those on record),
    and what a process maps. Without `slice_mib` nobody knows whose a dax device is: those that are memory of this host,
    or of a process, must not look free.
    """
    by_index = slices.by_index(slice_mib and slice_mib * MIB)
    if slice_mib is None:
        by_index = {index: item for index, item in by_index.items() if slices.is_online(item) or _is_mapped(item)}
    groups: dict[str, list[int]] = {}
    for index in sorted(by_index.keys() - set(recorded)):
        groups.setdefault(tag(index), []).append(index)
    used: dict[int, bool] = {}
    found = []
    for name, indexes in groups.items():
        device = by_index[indexes[0]]
        node = slices.node(device)
        if node not in used:
            used[node] = _is_used(node, consumers)
        record = {
            "allocation_uuid": name,
            "consumer_uuid": "",
            "pool_uuid": pool,
            "slice_mib": slice_mib or device.size_bytes // MIB,
            "extents": [{"start": e.start, "count": e.count} for e in extents_of(indexes)],
        }
        devices = {by_index[index] for index in indexes}
        online = any(slices.is_online(item) for item in devices)
        mapped = any(_is_mapped(item) for item in devices)
        kind = DEVDAX if device.driver == CHARACTER_DEVICE else NODE
        found.append(Stranger(record, mapped or (online and used[node]), kind))
    return found


def _is_mapped(device: DaxDevice) -> bool:
    return device.driver == CHARACTER_DEVICE and mapped_files.is_mapped(f"/dev/{device.name}")


def _is_used(node: int, consumers: Collection[str]) -> bool:
    known = {pid for consumer, pid in memory_users.guests().items() if consumer in consumers}
    return bool(memory_users.pages_on_node(node).keys() - known)
