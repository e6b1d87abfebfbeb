"""Frames that no client of ours sends, against the sockets of real lenders.

The process has to live on, serve an honest client, hang up on whoever sends garbage or nothing, and have no more
descriptors, threads and memory at the end than at the beginning.
"""

import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass

from pondstack_rack.wait import wait_until
from tests.security.fuzzers.frames import Door, Frames, doors_of_lender
from tests.security.fuzzers.served import Served, ServedLender, Used
from tests.security.fuzzers.target import ACCEPTED, REFUSED, Target

SILENT_SECONDS = 25.0
"""The deadlines of all servers are 10 s; this machine may stand still."""
MORE_DESCRIPTORS, MORE_THREADS, MORE_KIB = 4, 4, 64 * 1024
CHECK_STEPS = 10


@dataclass
class Silent:
    """A client that says nothing, or half of something, since a moment."""

    door: Door
    link: socket.socket
    since: float


class Sockets(Target):
    """All sockets of some processes; a step is one client."""

    name = "sockets"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._served: list[tuple[Served, list[Door]]] = []
        for transport in ("tcp", "shm"):
            lender = ServedLender(transport)
            self.opened.callback(lender.close)
            self._served.append((lender, doors_of_lender(lender)))
        for served, _ in self._served:
            served.check(0)
        self._before = {served.name: served.used() for served, _ in self._served}
        self._silent = [
            self._say_half(door) for _, doors in self._served for door in doors if door.name != "lender control"
        ]

    def attack(self) -> None:
        """Send a spoilt session over one socket; now and then, see that an honest client is served."""
        served, doors = self.dice.choice(self._served)
        door = self.dice.choice(doors)
        frames = door.frames(self.dice)
        told = f"{door.name} of {served.name}, {[frame[:200] for frame in frames]!r:.1500}"
        try:
            self.note(REFUSED if self._send(door, frames) else ACCEPTED)
        except TimeoutError:
            self.fault(f"nobody hangs up: {told}")
        if not served.alive:
            self.fault(f"the process has ended: {told}\n{served.log()}")
        elif not self.steps % CHECK_STEPS and (odd := served.check(self.steps)):
            self.fault(f"{odd}: after {told}")

    def _send(self, door: Door, frames: Frames) -> bool:
        """Send and hear all that is answered; returns whether anything was refused, or nothing was answered."""
        heard = b""
        with door.opened() as link:
            link.settimeout(SILENT_SECONDS)
            with suppress(BrokenPipeError, ConnectionResetError):  # it has heard enough
                for frame in frames:
                    if frame or link.type == socket.SOCK_STREAM:
                        self._send_one(link, frame)
            with suppress(OSError):  # it has hung up
                link.shutdown(socket.SHUT_WR)
            with suppress(ConnectionResetError):
                while data := self._heard(link):
                    heard += data
        return not heard or b'"error"' in heard

    def _send_one(self, link: socket.socket, frame: bytes) -> None:
        if link.family == socket.AF_UNIX and self.dice.random() < 0.2:
            read, write = os.pipe()
            try:
                socket.send_fds(
                    link, [frame[:4096] or b"x"], [read, write] * self.dice.choice((1, 2, 3)), socket.MSG_NOSIGNAL
                )
            finally:
                os.close(read)
                os.close(write)
        elif link.type == socket.SOCK_STREAM:
            link.sendall(frame)
        else:
            link.send(frame[:100_000], socket.MSG_NOSIGNAL)

    @staticmethod
    def _heard(link: socket.socket) -> bytes:
        data, fds, _, _ = (
            socket.recv_fds(link, 65536, 8) if link.family == socket.AF_UNIX else (link.recv(65536), [], 0, None)
        )
        for fd in fds:
            os.close(fd)
        return data

    # What shows late

    def _say_half(self, door: Door) -> Silent:
        link = door.opened()
        self.opened.callback(link.close)
        if link.type == socket.SOCK_STREAM:
            link.sendall(b"\0\0")
        return Silent(door, link, time.monotonic())

    def finish(self) -> None:
        """See that the silent were hung up on, and that nothing is left of all the others."""
        for silent in self._silent:
            silent.link.settimeout(max(0.1, silent.since + SILENT_SECONDS - time.monotonic()))
            try:
                while self._heard(silent.link):
                    pass
            except TimeoutError:
                self.fault(f"{silent.door.name}: a client that says nothing is waited for")
            except ConnectionResetError:
                pass
            silent.link.close()
        for served, _ in self._served:
            if not served.alive:
                continue  # told already
            before = self._before[served.name]
            if not wait_until(lambda served=served, before=before: _few(served.used(), before), SILENT_SECONDS):
                self.fault(f"{served.name} had {before}, and has {served.used()}")
            if odd := served.check(self.steps):
                self.fault(f"{odd}: at the end")


def _few(now: Used, before: Used) -> bool:
    return (
        now.descriptors <= before.descriptors + MORE_DESCRIPTORS
        and now.threads <= before.threads + MORE_THREADS
        and now.kib <= before.kib + MORE_KIB
    )
