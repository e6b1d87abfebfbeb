"""Offsets and limits of the parts of a client's region at the server. Pure.

A region begins with the request header of each slot, so that one look shows all; then each slot has its reply header,
with the reply behind it (a short one comes with its header), and room for its request.
"""

from dataclasses import asdict, dataclass
from typing import Any, Self

from pondstack.domain.errors import BadRequest

HEADER_BYTES = 64
TAG_BYTES = 16
BELL_BYTES = 8
PAGE_BYTES = 4096
MAX_SLOTS = 64
MIN_SLOT_BYTES = 512
MAX_SLOT_BYTES = 2**20


def pages(size_bytes: int) -> int:
    """Return so many bytes as whole pages have."""
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES


@dataclass(frozen=True, slots=True)
class Layout:
    """`slots`: calls of one client at once. `slot_bytes`: room for one fragment as it is sealed.

    A longer message crosses in fragments, one at a time.
    """

    slots: int = 8
    slot_bytes: int = 16384
    max_message_bytes: int = 16 * 2**20

    def __post_init__(self) -> None:
        good = 1 <= self.slots <= MAX_SLOTS and MIN_SLOT_BYTES <= self.slot_bytes <= MAX_SLOT_BYTES
        if not good or self.slot_bytes % HEADER_BYTES or self.max_message_bytes < self.slot_bytes:
            raise BadRequest(f"no region for requests can be laid out as {self}")

    @property
    def part_bytes(self) -> int:
        """Of a message that cross in one fragment."""
        return self.slot_bytes - TAG_BYTES

    @property
    def region_bytes(self) -> int:
        """Size of a client's region."""
        return pages(self.slots * (2 * HEADER_BYTES + 2 * self.slot_bytes))

    @property
    def headers_bytes(self) -> int:
        """Size of the request headers together."""
        return self.slots * HEADER_BYTES

    def header(self, slot: int) -> int:
        """Offset of a slot's request header."""
        return slot * HEADER_BYTES

    def reply(self, slot: int) -> int:
        """Offset of a slot's reply header; the reply follows it."""
        return self.headers_bytes + slot * (HEADER_BYTES + 2 * self.slot_bytes)

    def request(self, slot: int) -> int:
        """Offset of a slot's request."""
        return self.reply(slot) + HEADER_BYTES + self.slot_bytes

    def fragments(self, message_bytes: int) -> int:
        """Return in how many fragments a message crosses; an empty one in one."""
        return max(-(-message_bytes // self.part_bytes), 1)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can carry it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Undo to_dict; raises BadRequest."""
        try:
            return cls(*(int(data[name]) for name in ("slots", "slot_bytes", "max_message_bytes")))
        except (KeyError, TypeError, ValueError) as error:
            raise BadRequest("this is no layout of a server's region; ask the server again") from error
