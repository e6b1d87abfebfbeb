"""Host side of a pool: slices that the controller granted come online, are handed to a guest, go offline again.

Drivers register under the entry point group `pondstack.host_pools`; each passes agent/tests/drivers contract tests.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self

from oslo_config import cfg

from pondstack.domain.backing import UNKNOWN
from pondstack.domain.errors import BadRequest, DeviceFailed, NotFound
from pondstack.domain.zeroing import HostZeroing
from pondstack.rpc.wire import Attached, Backing, Grant


class SliceNotZero(DeviceFailed):
    """Slices of a grant have somebody's bytes, and nobody zeroed them: the controller sets `indexes` aside.

    It does not leave the agent: others get a DeviceFailed with its text.
    """

    def __init__(self, message: str, indexes: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.indexes = tuple(indexes)


class HostPoolDriver(ABC):
    """All pool devices that one host reaches through one kind of hardware.

    What is attached survives the agent: a new driver object finds it again. The host's own answer is the truth.
    """

    @classmethod
    @abstractmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Self:
        """Build the driver from the agent's configuration (pondstack.conf.agent)."""

    @abstractmethod
    def pools(self) -> tuple[str, ...]:
        """Return the UUIDs of the pools that this host reaches."""

    def zeroing(self) -> HostZeroing:
        """Return what this host does with slices before it gives them back; by default it relies on the device."""
        return HostZeroing.DEVICE

    @abstractmethod
    def attach(self, grant: Grant) -> tuple[Backing, ...]:
        """Online a grant: one backing per extent, in order. Idempotent by grant.allocation_uuid.

        Raises PermissionHeld when the device does not let this host in, SliceNotZero, DeviceFailed.
        """

    @abstractmethod
    def detach(self, allocation_uuid: str) -> bool:
        """Offline an allocation; False when it was not there. Raises InUse while a process maps it."""

    hands_over: bool = False
    """Whether it attaches slices that are handed over, with what their guest has in them, and knows heirs in tables."""

    backing: str = UNKNOWN
    """What a guest's slices are from now on, as in pondstack.domain.backing."""

    nodes = False
    """Whether its memory is nodes of the host's kernel, which can demote pages to them."""

    slow_detach = False
    """Whether `detach` may take seconds: then it is `begin_detach` that callers wait for."""

    def begin_detach(self, allocation_uuid: str) -> bool:
        """Keep everybody off an allocation that is about to be detached; False when it was not there.

        Of a driver with `slow_detach`: returns at once, so that `detach` may follow in the background. Raises InUse.
        """
        return any(item.allocation_uuid == allocation_uuid for item in self.attached())

    def heir(self, allocation_uuid: str) -> str:
        """Return the host that an attached allocation is being handed over to, "" for none; raises DeviceFailed.

        Of a driver that `hands_over`.
        """
        del allocation_uuid
        return ""

    def lost_caches(self, allocation_uuid: str) -> bool:
        """Tell whether this host restarted, and its CPU caches went, while an allocation was being handed over.

        Then what its guest wrote may be in no memory, whatever is written back from now on. Raises DeviceFailed.
        """
        del allocation_uuid
        return False

    def take_up(self, allocation_uuid: str) -> bool:
        """Return whether the guest that slices were handed over with may run here: no other host has them any more.

        Then what its former host wrote is what this host's CPUs read. Of a driver that `hands_over`; False for now.
        Raises NotFound, DeviceFailed.
        """
        raise NotFound(f"allocation {allocation_uuid} was not handed over to this host; attach it first")

    def vacate(self, allocation_uuid: str) -> None:
        """Note that the guest of an allocation runs on without it, and hence does not hold it; a restart of it would.

        Of drivers whose memory is a node of the host. Raises InUse while the guest has pages there, or may get some.
        """
        raise BadRequest(f"the guest of allocation {allocation_uuid} cannot run on without it; live-migrate it instead")

    def evacuations(self) -> Mapping[int, int | None]:
        """Return by node of the host how often memory of it was taken offline, which moves pages of guests that stay.

        None while that goes on. A new driver object counts one for each node with allocations: the former may have been
        killed in the middle. Without entries of drivers whose memory is no node.
        """
        return {}

    def stuck(self) -> Mapping[str, str]:
        """Return the allocations that did not go offline within the driver's bound: UUID to reason."""
        return {}

    @abstractmethod
    def attached(self) -> tuple[Attached, ...]:
        """Return what is really attached, `in_use` included."""

    @abstractmethod
    def backings(self, allocation_uuid: str) -> tuple[Backing, ...]:
        """Return the backings of an attached allocation; raises NotFound."""
