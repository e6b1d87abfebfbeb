"""The nouns of the ledger as immutable values. No I/O, no clock."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pondstack.domain.causes import Cause
from pondstack.domain.purpose import Purpose
from pondstack.domain.states import SliceState
from pondstack.domain.units import DEFAULT_SLICE_MIB


@dataclass(frozen=True, slots=True, order=True)
class Extent:
    """A run of adjacent slices of one pool device, `start` to `start + count - 1` (a DC extent of CXL 3.1)."""

    start: int
    count: int

    def __post_init__(self) -> None:
        if self.start < 0 or self.count < 1:
            raise ValueError(f"no such extent: start {self.start}, count {self.count}")

    @property
    def indexes(self) -> range:
        """The slice indexes of the extent."""
        return range(self.start, self.start + self.count)


def extents_of(indexes: Iterable[int]) -> tuple[Extent, ...]:
    """Return the fewest extents that cover exactly `indexes`, in order."""
    runs: list[list[int]] = []
    for index in sorted(set(indexes)):
        if runs and index == runs[-1][0] + runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([index, 1])
    return tuple(Extent(start, count) for start, count in runs)


def indexes_of(extents: Iterable[Extent]) -> tuple[int, ...]:
    """Return the slice indexes of `extents` in extent order."""
    return tuple(index for extent in extents for index in extent.indexes)


class PoolState(StrEnum):
    """Health of a pool device as the controller last saw it."""

    UP = "up"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice of a pool device. `host` and `allocation_uuid` are set exactly while somebody owns it.

    `cause`: why it is QUARANTINED; `failure`: with DEVICE_FAILED, which failure of its device it was.
    """

    pool_uuid: str
    index: int
    state: SliceState = SliceState.FREE
    host: str | None = None
    allocation_uuid: str | None = None
    epoch: int = 0
    reason: str = ""
    cause: Cause | None = None
    failure: int | None = None

    @property
    def name(self) -> str:
        """How findings and errors name it."""
        return f"slice {self.pool_uuid}/{self.index}"


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool device. `uuid` is also the UUID of its Placement resource provider."""

    uuid: str
    name: str
    slices_total: int
    slice_mib: int = DEFAULT_SLICE_MIB
    state: PoolState = PoolState.UP


@dataclass(frozen=True, slots=True)
class Allocation:
    """Pool memory of one consumer (a Nova instance, or a host slice) on one host, from one pool device.

    There is no interleaving (Pond 4.2).

    `guest_mib` is all the memory that the guest sees (local and pool). `heir`: the allocation of another host that its
    slices are being handed over to (pondstack.domain.inheritance).
    """

    uuid: str
    consumer_uuid: str
    host: str
    pool_uuid: str
    extents: tuple[Extent, ...]
    slice_mib: int = DEFAULT_SLICE_MIB
    guest_mib: int = 0
    project_id: str = ""
    user_id: str = ""
    purpose: Purpose = Purpose.GUEST
    heir: str | None = None

    @property
    def pool_mib(self) -> int:
        """Pool memory in MiB."""
        return sum(extent.count for extent in self.extents) * self.slice_mib

    @property
    def shape(self) -> tuple[int, ...]:
        """Slices per extent: one CPU-less guest node each."""
        return tuple(extent.count for extent in self.extents)
