"""What slices are on a host, for the guest that has them: a kind of backing, and what is different with each."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from pondstack.domain.errors import DeviceFailed
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Backing, Grant
from pondstack_agent.drivers.cxl.dax import DaxDevice, FirstUse, Slices


class SliceBacking(ABC):
    """One kind; the driver asks it in this order. Errors are PondErrors, after which the driver undoes all of it."""

    kind: ClassVar[str]
    """As in pondstack.domain.backing."""

    @abstractmethod
    def prepare(self, grant: Grant) -> None:
        """Make of the host what a grant needs, before anything of it; raises HostUnusable."""

    @abstractmethod
    def spans(self, grant: Grant) -> Sequence[Extent]:
        """Return which slices of a grant are one device each."""

    def check(self, slices: Slices, grant: Grant, slice_bytes: int) -> None:
        """Look whether the devices can be made; raises HostUnusable, DeviceFailed."""
        slices.check(self.spans(grant), slice_bytes)

    @abstractmethod
    def up(
        self,
        slices: Slices,
        span: Extent,
        slice_bytes: int,
        *,
        first_use: FirstUse | None,
        dirty: Callable[[], None],
    ) -> DaxDevice:
        """Make one device, as Slices.up; idempotent."""

    @abstractmethod
    def complete(self, slices: Slices, record: Mapping[str, Any], device: DaxDevice, to_come: Collection[str]) -> None:
        """Look at what was made, its last `device` and all others, before a guest gets it; raises DeviceFailed.

        `to_come`: allocations that a boot took, and that come back after this one.
        """

    @abstractmethod
    def backings(self, slices: Slices, record: Mapping[str, Any]) -> tuple[Backing, ...]:
        """Return one backing for each extent of a record; raises DeviceFailed when one is not all there."""

    def drop_caches(self, slices: Slices, record: Mapping[str, Any]) -> None:
        """Have this host's CPU caches hold nothing of a record's slices, before its guest runs; raises DeviceFailed."""
        del slices
        raise DeviceFailed(
            f"allocation {record['allocation_uuid']} is memory of this host's kernel, which is not handed over"
        )

    def withdraw(self, record: Mapping[str, Any]) -> None:
        """Have no guest started on a record from now on; the caller keeps guests off it meanwhile."""
        del record
