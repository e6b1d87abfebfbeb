"""Guests that are about to come to this host by a live migration: each is waited for by a thread of its own.

| who | does |
|---|---|
| QEMU, which libvirt starts for the guest | gives the agent a monitor (qemu/arrival_door.py), before it has memory |
| the agent | has the data plane attach remote memory, which is empty, and then lets QEMU leave shared files out |
| QEMU | refuses a migration whose source leaves memory out while it does not: so none is taken in too early |
| the agent | once it has come, has QEMU leave nothing out any more: what is saved to a file has to have its memory |
"""

import socket
import threading
import time
from collections.abc import Callable

from oslo_log import log

from pondstack.domain.errors import Conflict, PondError
from pondstack_agent.qemu import arrival_door
from pondstack_agent.qemu.monitor import Monitor, MonitorError

LOG = log.getLogger(__name__)

_LOOK_SECONDS = 0.5
_MONITOR_SECONDS = 60.0
_JOIN_SECONDS = 5.0

Attach = Callable[[str, int], None]
"""Have a guest's process served, by its UUID and number; raises PondError."""


def unattached(_guest: str, _process: int) -> None:
    """Leave a guest alone that has no remote memory: its slices have its content already."""


class Arrivals:
    """Of one host, by the agent's name of it. `wanted(guest)`: whether it is still to come. Thread-safe."""

    def __init__(self, host: str, attach: Attach, wanted: Callable[[str], bool], seconds: float) -> None:
        """`seconds`: how long each may take until it is here."""
        self._host, self._attach, self._wanted, self._seconds = host, attach, wanted, seconds
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[threading.Thread, threading.Event]] = {}

    def expect(self, guest: str) -> None:
        """Wait for a guest from now on, instead of an earlier time; raises Conflict where that does not end."""
        with self._lock:
            thread, stop = self._waiting.pop(guest, (None, None))
            if thread is not None and stop is not None:
                stop.set()
                thread.join(_JOIN_SECONDS)
            try:
                listener = arrival_door.listen(self._host, guest)
            except OSError as error:
                raise Conflict(f"guest {guest} is expected already: {error.strerror}; try again later") from error
            stop = threading.Event()
            name, told = f"arrival-{guest[:8]}", (guest, listener, stop)
            thread = threading.Thread(target=self._run, args=told, name=name, daemon=True)
            self._waiting[guest] = thread, stop
            thread.start()

    def _run(self, guest: str, listener: socket.socket, stop: threading.Event) -> None:
        ends = time.monotonic() + self._seconds
        try:
            with listener:
                link = self._await_process(guest, listener, stop, ends)
            if link is None:
                LOG.info("Guest %s is not expected any more", guest)
                return
            with link:
                self._take_in(guest, link, stop, ends)
        except (PondError, MonitorError, OSError) as error:
            LOG.warning("Guest %s does not come to this host: %s", guest, error)

    def _await_process(
        self, guest: str, listener: socket.socket, stop: threading.Event, ends: float
    ) -> socket.socket | None:
        listener.settimeout(_LOOK_SECONDS)
        while not stop.is_set() and time.monotonic() < ends and self._wanted(guest):
            try:
                link, _ = listener.accept()
            except TimeoutError:
                continue
            return link
        return None

    def _take_in(self, guest: str, link: socket.socket, stop: threading.Event, ends: float) -> None:
        self._attach(guest, arrival_door.peer(link)[0])
        with Monitor(link, _MONITOR_SECONDS) as monitor:
            monitor.ignore_shared(on=True)
            LOG.info("Guest %s may come: its memory is attached", guest)
            while not monitor.has_come():
                if stop.wait(_LOOK_SECONDS) or time.monotonic() > ends:
                    raise MonitorError("it took too long")
            monitor.ignore_shared(on=False)
        LOG.info("Guest %s is here; of remote memory its pages follow", guest)
