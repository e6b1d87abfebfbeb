"""Admission of lent memory: what a host lends leaves what Nova may place on it before anybody gets it. Pure; MiB.

Placement knows a host's DRAM as MEMORY_MB of the host's provider. Its consumers, with what is `reserved`, are all that
may be placed there. Placement takes an inventory that is below its usage, so `reserved` alone admits nothing: first a
consumer of ours claims the memory, which Placement refuses when instances have it.

The virt driver reports what the host lends in one request: `reserved` of MEMORY_MB, and a record of LENT_CLASS that
says how much of it is lent (`total`) and which buffers these are (`max_unit`, their `mark`). A number alone would prove
nothing: it may be the report of what the host lent before, with a lower one of the time in between still under way.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from pondstack.domain.lending import LenderKind

MEMORY_CLASS = "MEMORY_MB"
LENT_CLASS = "CUSTOM_POND_LENT_MB"
"""Placement resource class of what a host lends, on the host's own provider. Nobody can claim it."""

_CLAIMS = UUID("b6a4f9a3-1c0d-5b52-9c53-5a2f0e7f4d10")
_MOST_CLAIMS = 64
_MARKS = 2**31 - 2
NOBODY_SAYS = 2**31 - 1
"""The mark of a record that reserves a whole host: nobody has said yet which buffers it lends, if any."""


class LendStage(StrEnum):
    """How far a host is with what an operator has it lend."""

    WAITING = "waiting"
    """Placement has not admitted the claim: instances have the memory, or Nova does not know the host."""
    LENDING = "lending"
    """The memory is claimed. The host registers it, its virt driver reserves it, and it is admitted."""
    RETURNING = "returning"
    """Instances got it although it was claimed: the host takes back what was not admitted."""


@dataclass(frozen=True, slots=True)
class Lend:
    """What an operator has a host lend: `mib` in all. One at a time per host. `reason`: what it waits for."""

    host: str
    operation_id: str
    mib: int
    kind: LenderKind
    stage: LendStage = LendStage.WAITING
    reason: str = ""

    def progress(self, admitted_mib: int) -> dict[str, Any]:
        """Return how far it is, as agents tell of their operations; `admitted_mib`: what may be borrowed by now."""
        return {**told(self.operation_id, self.mib, admitted_mib, self.reason), "state": "pending"}


def told(operation_id: str, mib: int, done_mib: int, reason: str) -> dict[str, Any]:
    """Return what callers are told of a lend that has ended with so much lent."""
    return {
        "operation_id": operation_id,
        "verb": "lend",
        "state": "done",
        "mib": mib,
        "done_mib": done_mib,
        "reason": reason,
    }


class Verdict(StrEnum):
    """What Placement says of a host's buffers that are not admitted yet."""

    ADMITTED = "admitted"
    """They are reserved, and everybody's claims fit beside them."""
    NOT_RESERVED = "not_reserved"
    """The virt driver has not reported exactly them yet."""
    SOLD = "sold"
    """They are reserved, and instances have claimed part of them."""


class LentReport(NamedTuple):
    """All that a host lends, as its agent tells its virt driver: how much, and which buffers (`mark`)."""

    mib: int
    mark: int


@dataclass(frozen=True, slots=True)
class HostMemory:
    """A host's DRAM as Placement has it. `used_mib`: claimed by others than us. `lent_mib`, `mark`: as reported."""

    total_mib: int
    reserved_mib: int
    ratio: float
    max_unit_mib: int
    used_mib: int
    lent_mib: int = 0
    mark: int = 0

    @property
    def capacity_mib(self) -> float:
        """Return what may be claimed in all."""
        return (self.total_mib - self.reserved_mib) * self.ratio


def mark(buffers: Iterable[tuple[str, int]]) -> int:
    """Return a number that names a set of buffers, (incarnation, index) each: other buffers, another number.

    From 1 to 2^31 - 2, as Placement takes it. An index is never used again within an incarnation.
    """
    text = "\n".join(f"{incarnation}/{index}" for incarnation, index in sorted(buffers))
    return 1 + int.from_bytes(sha256(text.encode()).digest()[:8], "big") % _MARKS


def judge(memory: HostMemory, lent_mib: int, wanted: int) -> Verdict:
    """Return whether a host's buffers, `lent_mib` with the mark `wanted` in all, may be borrowed."""
    if (memory.lent_mib, memory.mark) != (lent_mib, wanted):
        return Verdict.NOT_RESERVED
    return Verdict.ADMITTED if memory.used_mib <= memory.capacity_mib else Verdict.SOLD


def claims(host: str, memory: HostMemory, mib: int) -> Mapping[str, int]:
    """Return what to claim so that `mib` can leave a host: amount by consumer; {} for nothing.

    With an allocation ratio, memory that leaves takes that many times as much from what may be claimed. No consumer
    may claim more than max_unit, so that there are several then.
    """
    left, parts = math.ceil(max(mib, 0) * memory.ratio), []
    while left > 0:
        parts.append(min(left, max(memory.max_unit_mib, 1)))
        left -= parts[-1]
    return dict(zip(consumers(host), parts, strict=False))


def consumers(host: str) -> list[str]:
    """Return all consumers by which memory of a host is ever claimed."""
    return [str(uuid5(_CLAIMS, f"{host} {number}")) for number in range(_MOST_CLAIMS)]
