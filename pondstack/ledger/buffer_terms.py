"""Small questions about buffers that pondstack.ledger.buffers asks. Pure."""

from collections.abc import Iterable
from typing import Any

from pondstack.domain.errors import NotAligned
from pondstack.domain.lending import Buffer, Lender
from pondstack.domain.states import SliceState


def present(items: Iterable[Buffer], lender: Lender) -> list[Buffer]:
    """Return the buffers of a lender's present life."""
    return [item for item in items if item.incarnation == lender.incarnation]


def buffers_for(mib: int, buffer_mib: int) -> int:
    """Return how many buffers so many MiB are; raises NotAligned."""
    if mib < 1 or mib % buffer_mib:
        raise NotAligned(f"{mib} MiB is no whole number of buffers of {buffer_mib} MiB")
    return mib // buffer_mib


def withdrawable(item: Buffer) -> bool:
    """Return whether a lender may give a buffer back to its host: nobody has it, nor a key of it."""
    return item.state is SliceState.FREE and item.leaving and item.promised_to is None


def given(item: Buffer) -> dict[str, Any]:
    """Return what a borrower is told of a buffer that becomes its own."""
    return {
        "lender": item.lender,
        "incarnation": item.incarnation,
        "index": item.index,
        "offset_mib": item.offset_mib,
        "size_mib": item.size_mib,
        "generation": item.generation + 1,
    }
