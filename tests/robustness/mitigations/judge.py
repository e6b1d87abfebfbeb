"""What has to hold of a server after its mitigation, done or undone, whoever was killed. Pure."""

from collections.abc import Mapping

from pondstack.domain.admission import MEMORY_CLASS
from pondstack.domain.mitigation import MitigationState
from pondstack.domain.units import RESOURCE_CLASS
from tests.robustness.mitigations.servers import Seen


def broken(before: Seen, after: Seen, state: MitigationState, provider: str, memory_mib: int) -> list[str]:
    """Return what is wrong, as text; nothing when all parts agree. `provider`: that of its host by Nova."""
    found = [f"the server is {after.status} {after.task}"] * ((after.status, after.task) != ("ACTIVE", ""))
    if after.cells is not None and set(after.cells) != {after.host}:
        found.append(f"Nova has it on {after.host}, libvirt has it on {sorted(after.cells)}")
    if state is MitigationState.DONE:
        return found + _local(after, provider, memory_mib)
    return found + _as_before(before, after)


def _local(after: Seen, provider: str, memory_mib: int) -> list[str]:
    """Return what is wrong with a server that is said to be off the pool."""
    found = []
    if after.allocations:
        found.append(f"the ledger still has {dict(after.allocations)} of it")
    if not after.corrected:
        found.append("its split is not marked as corrected")
    if _amounts(after.claims, MEMORY_CLASS) != {provider: memory_mib}:
        found.append(f"Placement has its memory as {dict(after.claims)}")
    if _amounts(after.claims, RESOURCE_CLASS):
        found.append(f"Placement has pool memory of it: {dict(after.claims)}")
    if after.cells is not None and "pool" in {kind for pair in after.cells.values() for kind in pair}:
        found.append(f"libvirt has it in pool memory: {dict(after.cells)}")
    return found


def _as_before(before: Seen, after: Seen) -> list[str]:
    """Return what is not as it was of a server whose mitigation was undone."""
    found = []
    if after.corrected:
        found.append("its split is marked as corrected")
    for name in ("host", "claims", "allocations", "cells"):
        was, now = getattr(before, name), getattr(after, name)
        if was != now:
            found.append(f"its {name}: {was} before, {now} after it was undone")
    return found


def _amounts(claims: Mapping[str, Mapping[str, int]], resource_class: str) -> dict[str, int]:
    return {uuid: item[resource_class] for uuid, item in claims.items() if item.get(resource_class)}
