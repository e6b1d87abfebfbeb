"""Buffers: DRAM that hosts lend to others (Zombieland, EuroSys'18, sections 4.1 to 4.4), as immutable values.

A buffer goes through the states of a slice (pondstack.domain.states) by the same rules (pondstack.domain.transitions).
What sanitises it is its lender: the borrower's key is revoked, then the memory is fresh. A slice is there for
ever; a buffer is the lender's own again once it was withdrawn, which only a FREE one can be.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pondstack.domain.causes import Cause
from pondstack.domain.errors import NotAligned, Unclaimed
from pondstack.domain.requests import BorrowRequest
from pondstack.domain.states import SliceState

DEFAULT_BUFFER_MIB = 64
"""BUFF_SIZE of the paper (section 4.3); uniform in a rack."""

REMOTE_CLASS = "CUSTOM_POND_REMOTE_MB"
"""Placement resource class of lent memory, in MiB, with step_size = one buffer."""

IN_USE = (SliceState.ASSIGNING, SliceState.ONLINE)
"""A buffer in these states is its borrower's, or about to be, and nobody wants it back."""


class LenderKind(StrEnum):
    """What a lender is besides (Zombieland, section 4.3)."""

    ACTIVE = "active"
    """A host with guests, awake: keys are made on demand."""
    ZOMBIE = "zombie"
    """A host that was emptied, and sleeps while its memory serves: keys are made before."""


@dataclass(frozen=True, slots=True)
class Lender:
    """A host that lends. `incarnation`: one life of its memory; with the next, all that it had lent is gone.

    `sequence`: of its newest word; a lower one is late.
    """

    host: str
    incarnation: str
    kind: LenderKind
    buffer_mib: int = DEFAULT_BUFFER_MIB
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Buffer:
    """One buffer of a lender. `host` and `allocation_uuid` are set exactly while somebody owns it, as with a slice.

    `lender` is the host that serves it, `host` the one that uses it. `generation` counts its owners and promises, and
    with them the keys: what is said of an older one is late. `promised_to`: the only host that can have it, because the
    lender was to sleep and exported it beforehand; None for whoever asks. `leaving`: the lender wants it back, so
    nobody gets it. `admitted`: it has left what Nova may place on its lender (pondstack.domain.admission); nobody gets
    it before. `cause`: why it is QUARANTINED. `heir`: the allocation of another host that it is being handed over
    to, which may read it; the first of both that lets go leaves it to the other one. `shared`: hosts besides its owner
    have keys, or had them; a lender that is awake ends those once there is no heir.
    """

    lender: str
    incarnation: str
    index: int
    offset_mib: int = 0
    size_mib: int = DEFAULT_BUFFER_MIB
    kind: LenderKind = LenderKind.ACTIVE
    state: SliceState = SliceState.FREE
    host: str | None = None
    allocation_uuid: str | None = None
    generation: int = 0
    promised_to: str | None = None
    leaving: bool = False
    epoch: int = 0
    reason: str = ""
    cause: Cause | None = None
    admitted: bool = True
    escrowed: bool = False
    heir: str | None = None
    shared: bool = False

    @property
    def is_free(self) -> bool:
        """Whether nobody has it."""
        return self.state is SliceState.FREE

    @property
    def name(self) -> str:
        """How findings and errors name it."""
        return f"buffer {self.lender}/{self.index}"


@dataclass(frozen=True, slots=True)
class RemoteAllocation:
    """Buffers of one consumer on one borrowing host.

    `guaranteed`: all of it was there at once and stays until released (RAM extension, GS_alloc_ext); otherwise it is as
    much as there was, and may be taken back (swap, GS_alloc_swap; section 4.4). `acknowledged`: its borrower has had
    its keys.
    """

    uuid: str
    consumer_uuid: str
    host: str
    guaranteed: bool
    project_id: str = ""
    user_id: str = ""
    acknowledged: bool = False


def present(items: Iterable[Buffer], lender: Lender) -> list[Buffer]:
    """Return the buffers of a lender's present life."""
    return [item for item in items if item.incarnation == lender.incarnation]


def buffers_for(mib: int, buffer_mib: int) -> int:
    """Return how many buffers so many MiB are; raises NotAligned."""
    if mib < 1 or mib % buffer_mib:
        raise NotAligned(f"{mib} MiB is no whole number of buffers of {buffer_mib} MiB")
    return mib // buffer_mib


def check_claim(request: BorrowRequest, claimed_mib: int, held_mib: int) -> None:
    """Raise Unclaimed unless a consumer's claim on the host covers what it has guaranteed and what it wants."""
    if held_mib + request.remote_mib > claimed_mib:
        raise Unclaimed(
            f"consumer {request.consumer_uuid} claims {claimed_mib} MiB of {REMOTE_CLASS} on host {request.host}, has "
            f"{held_mib} MiB and wants {request.remote_mib} more; claim it in Placement first"
        )


def withdrawable(item: Buffer) -> bool:
    """Return whether a lender may give a buffer back to its host: nobody has it, nor a key of it."""
    return item.is_free and item.leaving and item.promised_to is None and not item.escrowed


def given(item: Buffer, *, handed: bool = False) -> dict[str, Any]:
    """Return what a borrower is told of a buffer that becomes its own, or is handed over to it."""
    return {
        "lender": item.lender,
        "incarnation": item.incarnation,
        "index": item.index,
        "offset_mib": item.offset_mib,
        "size_mib": item.size_mib,
        "generation": item.generation + (not handed),
        **({"handed": True} if handed else {}),
    }


def waits_for_its_key(item: Buffer) -> bool:
    """Return whether a buffer is aside until its lender ends its key: its borrower was fenced, or the device failed."""
    return item.cause in (Cause.HOST_FENCED, Cause.REVOKE_FAILED)
