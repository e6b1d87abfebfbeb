"""Remains: what is still there of a host or of a pool that an operator wants to remove. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

from pondstack.domain.errors import NotEmpty
from pondstack.domain.host_slices import Holding
from pondstack.domain.lending import Buffer
from pondstack.domain.model import Slice
from pondstack.domain.states import SliceState


def of_host(
    slices: Iterable[Slice],
    lent: Iterable[Buffer],
    borrowed: Iterable[Buffer],
    promised: Iterable[Buffer],
    holdings: Iterable[Holding] = (),
) -> list[str]:
    """Return what a host has or lends, for people; empty: nothing.

    `promised`: to it, by lenders that were to sleep: it may have their keys. `holdings`: what it is to hold for itself.
    """
    return [
        *_counted("slices", slices),
        *_counted("buffers that it lends", lent),
        *_counted("buffers that it borrows", borrowed),
        *_counted("buffers that are promised to it", promised),
        *_wanted(holdings),
    ]


def of_pool(slices: Iterable[Slice], holdings: Iterable[Holding] = ()) -> list[str]:
    """Return what of a pool is somebody's, or on its way back; empty: nothing.

    Slices that are aside and nobody's do not count: they are those of a broken device.
    """
    return [*_counted("slices", [item for item in slices if not _nobodys(item)]), *_wanted(holdings)]


def _wanted(holdings: Iterable[Holding]) -> list[str]:
    return [
        f"{item.wanted} {item.purpose} slices that {item.host} is to hold of pool {item.pool_uuid} "
        f"(`openstack memory host set --{item.purpose}-slices 0`)"
        for item in holdings
        if item.wanted
    ]


def refuse(what: str, left: Sequence[str]) -> None:
    """Raise NotEmpty with all that is left of `what`, unless nothing is."""
    if left:
        raise NotEmpty(f"{what} cannot be removed, this is still there: {'; '.join(left)}")


def _nobodys(item: Slice) -> bool:
    aside = item.state is SliceState.QUARANTINED and item.host is None and item.allocation_uuid is None
    return aside or item.state is SliceState.FREE


def _counted(what: str, items: Iterable[Slice] | Iterable[Buffer]) -> list[str]:
    counts = Counter(item.state for item in items)
    if not counts:
        return []
    states = ", ".join(f"{counts[state]} {state}" for state in SliceState if counts[state])
    return [f"{sum(counts.values())} {what} ({states})"]
