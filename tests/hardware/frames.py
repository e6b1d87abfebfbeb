"""Requests and answers over a byte stream, in both directions at once; the same file runs on both sides.

A frame is two lengths, a JSON header and raw bytes. A request carries an id and an operation, its answer the same id:
many may be under way at once, from any thread. Standard library only: a host needs nothing else to be talked to.
"""

import itertools
import json
import os
import struct
import threading
import traceback
from collections.abc import Callable
from queue import Empty, Queue
from typing import Any

Header = dict[str, Any]
Answer = tuple[Header, bytes]
Operation = Callable[[Header, bytes], Answer]

_LENGTHS = struct.Struct(">II")
AFTER_SILENCE_SECONDS = 20.0
"""Whoever let a whole deadline pass is given no second one: what tidies up would hide the error that tells of it."""


class StreamClosed(Exception):
    """The other side is gone: a host that was switched off, a process that was killed."""


class RequestFailed(Exception):
    """The other side could not do it; `header` is its answer."""

    def __init__(self, header: Header) -> None:
        super().__init__(f"{header.get('error')}\n{header.get('traceback', '')}".rstrip())
        self.header = header


class Frames:
    """Frames over one descriptor, which is theirs from now on. Reading is one thread's, writing anybody's."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._writing = threading.Lock()
        self._open = True

    def send(self, header: Header, blob: bytes = b"") -> None:
        """Write one frame; raises StreamClosed."""
        text = json.dumps(header).encode()
        left = memoryview(_LENGTHS.pack(len(text), len(blob)) + text + blob)
        with self._writing:
            if not self._open:
                raise StreamClosed("closed")
            try:
                while left:
                    left = left[os.write(self._descriptor, left) :]
            except OSError as error:
                raise StreamClosed(str(error)) from error

    def close(self) -> None:
        """Close the descriptor: for the thread that reads, which alone knows that nobody reads any more."""
        with self._writing:
            self._open = False
            os.close(self._descriptor)

    def receive(self) -> Answer:
        """Wait for one frame; raises StreamClosed."""
        text_size, blob_size = _LENGTHS.unpack(self._read(_LENGTHS.size))
        header: Header = json.loads(self._read(text_size))
        return header, self._read(blob_size)

    def _read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            try:
                part = os.read(self._descriptor, min(size, 1 << 20))
            except OSError as error:
                raise StreamClosed(str(error)) from error
            if not part:
                raise StreamClosed("end of the stream")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class Client:
    """Asks the other side. A thread of its own reads the answers; `about()` is said of a side that gives none."""

    def __init__(self, frames: Frames, about: Callable[[], str] = str) -> None:
        self._frames = frames
        self._about = about
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, Queue[Answer | None]] = {}
        self._silent = False
        self._closed = ""
        self.hello: Queue[Header] = Queue()
        """Headers that answer no request: what the other side says of itself when it starts."""
        self._reader = threading.Thread(target=self._receive, name="frames", daemon=True)
        self._reader.start()

    def request(self, operation: str, blob: bytes = b"", *, within: float | None, **header: Any) -> Answer:
        """Return the answer; raises RequestFailed, StreamClosed, TimeoutError after `within` seconds.

        After one TimeoutError the others come soon, until there is an answer again.
        """
        if self._silent:
            within = AFTER_SILENCE_SECONDS if within is None else min(within, AFTER_SILENCE_SECONDS)
        answers: Queue[Answer | None] = Queue()
        number = next(self._ids)
        with self._lock:
            if not self._closed:
                self._waiting[number] = answers
        if self._closed:
            raise StreamClosed(f"{self._closed}\n{self._about()}")
        try:
            self._frames.send({"id": number, "op": operation, **header}, blob)
            answer = answers.get(timeout=within)
        except Empty:
            self._silent = True
            raise TimeoutError(f"no answer to {operation} within {within} s\n{self._about()}") from None
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if answer is None:
            raise StreamClosed(f"{self._closed}\n{self._about()}")
        self._silent = False
        if "error" in answer[0]:
            raise RequestFailed(answer[0])
        return answer

    def ended(self) -> None:
        """Wait until the stream has ended and its descriptor is closed."""
        self._reader.join()

    def _receive(self) -> None:
        try:
            while True:
                header, blob = self._frames.receive()
                if "id" not in header:
                    self.hello.put(header)
                    continue
                with self._lock:
                    waiting = self._waiting.get(header["id"])
                if waiting is not None:
                    waiting.put((header, blob))
        except StreamClosed as error:
            with self._lock:
                self._closed = str(error) or "closed"
                for waiting in self._waiting.values():
                    waiting.put(None)
        finally:
            self._frames.close()


class Server:
    """Does what the other side asks for, each request in a thread of its own."""

    def __init__(self, frames: Frames, operations: dict[str, Operation], failed: Callable[[Exception], Header]) -> None:
        self._frames, self._operations, self._failed = frames, operations, failed

    def serve(self) -> None:
        """Answer until the stream ends."""
        while True:
            try:
                header, blob = self._frames.receive()
            except StreamClosed:
                return
            threading.Thread(target=self._answer, args=(header, blob), daemon=True).start()

    def _answer(self, header: Header, blob: bytes) -> None:
        number = header.pop("id")
        try:
            answer, data = self._operations[header.pop("op")](header, blob)
        except Exception as error:  # noqa: BLE001 - everything is told to the one who asked
            answer, data = self._failed(error), b""
        try:
            self._frames.send({"id": number, **answer}, data)
        except StreamClosed:
            return  # nobody is left to be told


def described(error: Exception) -> Header:
    """Return an error as the header of an answer: its class by name, its text, where it came from."""
    cls = type(error)
    return {
        "error": f"{cls.__name__}: {error}",
        "class": f"{cls.__module__}:{cls.__qualname__}",
        "message": str(error),
        "traceback": "".join(traceback.format_exception(error)),
    }
