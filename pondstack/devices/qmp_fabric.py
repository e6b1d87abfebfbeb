"""A fabric manager that is a set of QEMU monitors, one per head: cxl-{add,release}-dynamic-capacity (QEMU 9.1 and up).

QMP has no query for extents, and all its errors are of one class. What a head has is asked by an offer that QEMU must
refuse, because it names the range twice: the reason is the answer (tests/hardware/test_dcd.py holds QEMU to it).

A command whose answer nobody waited for may still take effect, but never after an answer to a later call: a monitor
serves one client after the other. Hence one monitor per head, which all controllers use.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pondstack.devices.fabric import ByteRange, ExtentState
from pondstack.devices.heads import Head, machine_id, read_heads
from pondstack.devices.qmp import Monitor, NobodyListens, Refused
from pondstack.domain.errors import DeviceFailed, HostUnusable, InUse

ANSWER_SECONDS = 5.0
"""So long may a monitor take for all commands of one call; one takes milliseconds."""

_REGION = {"host-id": 0, "region": 0}
_STATES = {
    "duplicate or overlapped": ExtentState.ABSENT,
    "still pending": ExtentState.OFFERED,
    "already accessible": ExtentState.ACCEPTED,
}
_NOTHING_TO_ASK = ("non-existing", "pending DPA range")


class QmpFabric:
    """The heads of one device. Thread-safe: each call opens the monitor that it needs, and closes it."""

    def __init__(self, heads: Mapping[str, Head], answer_seconds: float = ANSWER_SECONDS) -> None:
        self._heads = heads
        self._answer_seconds = answer_seconds

    @classmethod
    def of(cls, folder: Path) -> "QmpFabric":
        """Return the fabric manager of a device folder, by its heads.json; raises DeviceFailed."""
        return cls(read_heads(folder))

    def heads(self) -> Collection[str]:
        """Return the hosts that have a head."""
        return tuple(self._heads)

    def add(self, host: str, ranges: Sequence[ByteRange], *, tag: str) -> None:
        """Offer the ranges to `host`; raises InUse, HostUnusable, DeviceFailed."""
        head = self._heads.get(host)
        if head is None:
            raise HostUnusable(f"host {host} has no head; list it with `pondstack-manage device head`")
        try:
            with self._open(head) as monitor:
                _add(monitor, head, ranges, tag)
        except NobodyListens as error:
            if not self._is_off(head):
                raise self._elsewhere(host, head) from error
            raise HostUnusable(f"the head of host {host} is off (monitor {head.monitor}); start its QEMU") from error
        except Refused as error:
            if _state_of(error) in (ExtentState.OFFERED, ExtentState.ACCEPTED):
                raise InUse(f"the head of host {host} already has a part of {_text(ranges)} ({error})") from error
            raise HostUnusable(
                f"the head of host {host} refuses {_text(ranges)} ({error.kind}: {error}); its QEMU (9.1 or newer) "
                f"needs the device {head.device} with volatile-dc-memdev of the pool's size and num-dc-regions=1, and "
                "slices that are multiples of 2 MiB"
            ) from error

    def release(self, host: str, ranges: Sequence[ByteRange]) -> None:
        """Ask `host` for the ranges; raises DeviceFailed."""
        head = self._head(host)
        try:
            with self._open(head) as monitor:
                for wanted in ranges:
                    self._ask_back(monitor, host, head, wanted)
        except NobodyListens as error:
            if not self._is_off(head):
                raise self._elsewhere(host, head) from error

    def states(self, host: str, ranges: Sequence[ByteRange]) -> list[ExtentState]:
        """Return what the head has of each range; raises DeviceFailed."""
        head = self._head(host)
        try:
            with self._open(head) as monitor:
                return [self._state(monitor, host, head, wanted) for wanted in ranges]
        except NobodyListens as error:
            if not self._is_off(head):
                raise self._elsewhere(host, head) from error
            # The extents lived in that process, and it has ended.
            return [ExtentState.ABSENT for _ in ranges]

    def _ask_back(self, monitor: Monitor, host: str, head: Head, wanted: ByteRange) -> None:
        try:
            monitor.execute(
                "cxl-release-dynamic-capacity",
                path=head.device,
                extents=_extents([wanted]),
                **{"removal-policy": "prescriptive"},
                **_REGION,
            )
        except Refused as error:
            if not any(text in str(error) for text in _NOTHING_TO_ASK):
                raise self._unexpected(host, head, error) from error

    def _state(self, monitor: Monitor, host: str, head: Head, wanted: ByteRange) -> ExtentState:
        try:
            _add(monitor, head, [wanted, wanted], tag="")
        except Refused as error:
            state = _state_of(error)
            if state is None:
                raise self._unexpected(host, head, error) from error
            return state
        raise DeviceFailed(
            f"the QEMU of host {host} took an offer that names {_text([wanted])} twice: with this version pondstack "
            "cannot ask what a head has; give nothing of this pool out, and report it as a bug"
        )

    def _head(self, host: str) -> Head:
        try:
            return self._heads[host]
        except KeyError:
            raise DeviceFailed(
                f"host {host} has no head any more, so that it cannot be asked; list it with `pondstack-manage "
                "device head`"
            ) from None

    def _open(self, head: Head) -> Monitor:
        return Monitor(head.monitor, self._answer_seconds)

    def _is_off(self, head: Head) -> bool:
        """A refused connection proves that QEMU has ended, but only on the machine that it ran on."""
        return head.machine == machine_id()

    def _elsewhere(self, host: str, head: Head) -> DeviceFailed:
        return DeviceFailed(
            f"nobody listens at {head.monitor}, the monitor of host {host}, and it belongs to another machine: run the "
            "controller there, or list the head again from here"
        )

    def _unexpected(self, host: str, head: Head, error: Refused) -> DeviceFailed:
        return DeviceFailed(
            f"the head of host {host} does not answer for {head.device} ({error.kind}: {error}); check the device's "
            "name in heads.json and that its QEMU is 9.1 or newer"
        )


def _add(monitor: Monitor, head: Head, ranges: Sequence[ByteRange], tag: str) -> Any:
    policy = {"selection-policy": "prescriptive"}
    return monitor.execute(
        "cxl-add-dynamic-capacity", path=head.device, tag=tag, extents=_extents(ranges), **policy, **_REGION
    )


def _extents(ranges: Sequence[ByteRange]) -> list[dict[str, int]]:
    return [{"offset": one.start_bytes, "len": one.size_bytes} for one in ranges]


def _state_of(error: Refused) -> ExtentState | None:
    return next((state for text, state in _STATES.items() if text in str(error)), None)


def _text(ranges: Sequence[ByteRange]) -> str:
    return ", ".join(f"{one.size_bytes} bytes at {one.start_bytes}" for one in ranges)
