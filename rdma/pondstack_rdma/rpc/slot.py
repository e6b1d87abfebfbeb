"""The server's state of one slot: what was taken of a request, what is to be fetched of its reply. No I/O."""

from pondstack.domain.errors import BadRequest
from pondstack_rdma.rpc.frame import ReplyHeader, RequestHeader
from pondstack_rdma.rpc.layout import HEADER_BYTES, Layout

_WITHDRAWN = 2**32 - 1
"""Shown as `taken` of a call that is never to be taken: no fragment follows it."""


class Slot:
    """One call at a time; a higher sequence ends the one before, whose client waits no more."""

    def __init__(self, layout: Layout) -> None:
        self.shown = ReplyHeader()
        """What the client sees; number, part and length are given to it when it is written."""
        self.done = bytes(HEADER_BYTES)
        """The request header of which nothing is left to do, as bytes: a look that finds it again is over."""
        self.moved_seconds = 0.0
        """When something was taken or fetched last, by the server's clock."""
        self._layout = layout
        self._parts: list[bytes] = []
        self._announced_bytes = 0
        self._reply = memoryview(b"")

    @property
    def reserved_bytes(self) -> int:
        """Memory that a request on its way, or a reply, takes."""
        return self._announced_bytes + len(self._reply)

    def wants(self, header: RequestHeader) -> bool:
        """Return whether this is the next fragment of a request. Raises BadRequest for what no client writes."""
        layout = self._layout
        if header.length > layout.slot_bytes or not header.fragment < header.fragments <= layout.fragments(
            layout.max_message_bytes
        ):
            raise BadRequest(f"a client of this server's calls writes {header}")
        if header.sequence > self.shown.sequence:
            return header.fragment == 0
        return header.sequence == self.shown.sequence and header.fragment == len(self._parts) == self.shown.taken

    def take(self, header: RequestHeader, payload: bytes) -> bytes | None:
        """Take a fragment; the request with the last one, else None."""
        if header.sequence > self.shown.sequence:
            self.forget()
        self._parts.append(payload)
        self._announced_bytes = header.fragments * self._layout.slot_bytes
        # All of the former reply's fields go: this is another call.
        self.shown = ReplyHeader(sequence=header.sequence, taken=header.fragment + 1)
        if header.fragment + 1 < header.fragments:
            return None
        whole = payload if len(self._parts) == 1 else b"".join(self._parts)
        self.forget()
        return whole

    def withdraw(self, header: RequestHeader) -> None:
        """The client waits no more: what was not taken wholly never is, however late its header comes."""
        if header.sequence > self.shown.sequence or self._parts:
            self.forget()
            self.shown = ReplyHeader(sequence=header.sequence, taken=_WITHDRAWN, closing=self.shown.closing)

    def answer(self, data: bytes) -> bytes:
        """Have the reply fetched; its first fragment."""
        self._reply = memoryview(data)
        return self._show(0)

    def fetched(self, count: int) -> bytes | None:
        """So many fragments of the reply were fetched: return the next one, None when there is none or it is there."""
        shown = self.shown
        if not shown.fragments or count != shown.fragment + 1:
            return None
        if count == shown.fragments:
            self._reply = memoryview(b"")
            return None
        return self._show(count)

    @property
    def unfetched(self) -> bool:
        """Whether a reply waits for its client."""
        return len(self._reply) > 0

    def beat(self) -> None:
        """Show that the call is carried out still."""
        self.shown = self.shown._replace(beats=self.shown.beats + 1)

    def shut(self) -> None:
        """Show that nothing is taken any more."""
        self.shown = self.shown._replace(closing=1)

    def forget(self) -> None:
        """Drop what there is of a request or a reply."""
        self._parts = []
        self._announced_bytes = 0
        self._reply = memoryview(b"")

    def _show(self, fragment: int) -> bytes:
        size = self._layout.part_bytes
        self.shown = self.shown._replace(fragment=fragment, fragments=self._layout.fragments(len(self._reply)))
        return bytes(self._reply[fragment * size : (fragment + 1) * size])
