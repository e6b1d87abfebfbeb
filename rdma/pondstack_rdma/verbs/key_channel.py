"""The borrower's TCP connection to the lender's process, which turns keys into addresses and rkeys.

No access uses it. librdmacm cannot do this: it sends private data only while it connects, and a key may be opened at
any later time.
"""

import socket
import threading
import time
from contextlib import suppress
from typing import Any

from pondstack_rdma import wire_errors
from pondstack_rdma.errors import TransportGone, TransportTimeout
from pondstack_rdma.tcp import messages


class KeyChannel:
    """A connection to a host; raises TransportGone. It carries one request at a time; a time-out ends it."""

    def __init__(self, host: str, timeout_seconds: float) -> None:
        self._host = host
        self._name = f"the link to {host}"
        self._seconds = timeout_seconds
        self._request_lock = threading.Lock()
        self._broken = ""
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)

    def connect(self, port: int) -> None:
        """Connect, before the first request."""
        address = f"{self._host}:{port}"
        self._name = f"the link to {address}"
        try:
            self._socket.settimeout(self._seconds)
            self._socket.connect((self._host, port))
        except TimeoutError as error:
            raise TransportTimeout(
                f"{self._name}: no connection within {self._seconds:g} s; see whether the lender's host is suspended "
                "or its processes are frozen"
            ) from error
        except OSError as error:
            raise TransportGone(f"there is no lender at {address}: {error}; see whether its agent runs") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        """Return the descriptor; it is hung up when the lender's process ends."""
        return self._socket.fileno()

    def request(self, request: dict[str, Any], ends: float | None = None) -> dict[str, Any]:
        """Send a request, and return the answer by the monotonic time `ends`, or within the time-out.

        Raises the lender's refusal, and TransportGone.
        """
        if ends is None:
            ends = time.monotonic() + self._seconds
        with self._request_lock:
            if self._broken:
                raise TransportGone(self._broken)
            try:
                messages.send(self._socket, request, b"", ends)
                answer, _ = messages.receive(self._socket, ends, 0)
            except TimeoutError as error:
                # A late answer would be taken for the answer to the next request.
                self._broken = f"{self._name} shows no more keys, as its lender did not answer before; connect again"
                raise TransportTimeout(
                    f"{self._name}: no answer within {self._seconds:g} s; see whether the lender is frozen"
                ) from error
            except (OSError, ValueError) as error:
                self._broken = f"{self._name} is broken ({error}); see whether the lender's agent runs"
                raise TransportGone(self._broken) from error
        if "error" in answer:
            raise wire_errors.from_wire(answer["error"])
        return answer

    def hang_up(self) -> None:
        """Wake a thread that waits for an answer; it gets TransportGone."""
        with suppress(OSError):  # the lender has hung up before
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket, after a request that is under way; idempotent."""
        with self._request_lock:
            self._broken = f"{self._name} is closed"
            self._socket.close()
