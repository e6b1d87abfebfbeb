"""A host with dynamic capacity, as no released kernel is: it answers a cxl-type3 device by its mailbox, through qtest.

Registers and commands: CXL 3.1 sections 8.2.8 (device registers), 8.2.9.2 (events), 8.2.9.9.9 (dynamic capacity).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from .qtest import Qtest

HOST_BUS = 12
"""Bus number of the pxb-cxl; the device behind its port n is on the bus n + 1 further on."""

WINDOW_BYTES = 16 * 2**20
MEMORY_AND_MASTER = 0x6
MAILBOX_CAPABILITY = 2
GET_EVENTS, CLEAR_EVENTS = 0x0100, 0x0101
GET_EXTENTS, ADD_RESPONSE, RELEASE = 0x4801, 0x4802, 0x4803
DYNAMIC_CAPACITY_LOG = b"\x04"
ADD_EVENT, RELEASE_EVENT = 0, 1
RECORD_BYTES, HEADER_BYTES, EXTENT_BYTES = 128, 32, 40

Range = tuple[int, int]
"""Start and size in bytes."""


@dataclass(frozen=True)
class Event:
    """One record of the dynamic capacity log; `more` are to follow that belong to it."""

    handle: int
    kind: int
    more: bool
    extent: Range


class DcdHost:
    """The host behind root port `port`. It does nothing by itself: a test tells it to look at its events."""

    def __init__(self, qtest: Qtest, port: int, window: int) -> None:
        self._qtest = qtest
        bus = HOST_BUS + 1 + port
        qtest.configure(HOST_BUS, port, 0x18, HOST_BUS | bus << 8 | bus << 16)
        qtest.configure(HOST_BUS, port, 0x20, (window + WINDOW_BYTES - 1) & 0xFFF00000 | window >> 16)
        qtest.configure(HOST_BUS, port, 0x04, MEMORY_AND_MASTER)
        # BAR 0 has the component's registers (64 KiB), BAR 2 the device's (4 KiB).
        self.component, device = window, window + 0x10000
        for offset, value in ((0x10, self.component), (0x14, 0), (0x18, device), (0x1C, 0), (0x04, MEMORY_AND_MASTER)):
            qtest.configure(bus, 0, offset, value)
        self._mailbox = device + self._capability(device)

    def answer(self, *, accept: bool = True) -> None:
        """Do what the events ask for: accept (or decline) what is added, give back what is to be released."""
        group: list[Range] = []
        while events := self.events():
            for event in events:
                if event.kind == ADD_EVENT:
                    group.append(event.extent)
                    if not event.more:
                        self._run(ADD_RESPONSE, _extents(group if accept else ()))
                        group = []
                elif event.kind == RELEASE_EVENT:
                    self._give_back_of(event.extent)
            self._forget(events)

    def events(self) -> list[Event]:
        """Return what is in the log."""
        found = self._run(GET_EVENTS, DYNAMIC_CAPACITY_LOG)
        (count,) = struct.unpack_from("<H", found, 20)
        return [_event(found[HEADER_BYTES + i * RECORD_BYTES :][:RECORD_BYTES]) for i in range(count)]

    def extents(self) -> list[Range]:
        """Return what the host has accepted, as the device has it on its list."""
        found = self._run(GET_EXTENTS, struct.pack("<II", 512, 0))
        (count,) = struct.unpack_from("<I", found)
        return [struct.unpack_from("<QQ", found, 16 + i * EXTENT_BYTES) for i in range(count)]

    def give_back(self, *ranges: Range) -> None:
        """Release extents, asked or not; it may be a part of one."""
        self._run(RELEASE, _extents(ranges))

    def _give_back_of(self, asked: Range) -> None:
        """Give back what the host has of a range: an event may be a repetition."""
        for start, size in self.extents():
            first, end = max(start, asked[0]), min(start + size, sum(asked))
            if first < end:
                self.give_back((first, end - first))

    def _forget(self, events: Sequence[Event]) -> None:
        handles = b"".join(event.handle.to_bytes(2, "little") for event in events)
        self._run(CLEAR_EVENTS, struct.pack("<BBB3x", DYNAMIC_CAPACITY_LOG[0], 0, len(events)) + handles)

    def _run(self, opcode: int, payload: bytes) -> bytes:
        """Run a command by the mailbox; raises RuntimeError with the device's return code."""
        qtest, mailbox = self._qtest, self._mailbox
        for at in range(0, len(payload), 8):
            qtest.put(mailbox + 0x20 + at, int.from_bytes(payload[at : at + 8], "little"), "q")
        qtest.put(mailbox + 0x08, opcode | len(payload) << 16, "q")
        qtest.put(mailbox + 0x04, 1)
        code = qtest.number(mailbox + 0x10, "q") >> 32 & 0xFFFF
        if code:
            raise RuntimeError(f"mailbox command {opcode:#06x}: return code {code}")
        size = qtest.number(mailbox + 0x08, "q") >> 16 & 0x1FFFFF
        return qtest.read(mailbox + 0x20, size) if size else b""

    def _capability(self, device: int) -> int:
        """Return the offset of the mailbox in the device's registers."""
        count = self._qtest.number(device, "q") >> 32 & 0xFFFF
        for header in range(device + 16, device + 16 * (count + 1), 16):
            if self._qtest.number(header) & 0xFFFF == MAILBOX_CAPABILITY:
                return self._qtest.number(header + 4)
        raise RuntimeError("the device has no mailbox")


def _event(record: bytes) -> Event:
    (handle,) = struct.unpack_from("<H", record, 20)
    kind, flags = record[48], record[53]
    start, size = struct.unpack_from("<QQ", record, 56)
    return Event(handle, kind, bool(flags & 1), (start, size))


def _extents(ranges: Sequence[Range]) -> bytes:
    return struct.pack("<I4x", len(ranges)) + b"".join(struct.pack("<QQ8x", *one) for one in ranges)
