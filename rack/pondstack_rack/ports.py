"""The rack's ports are free or its own, else the error names who has them."""

import functools
import socket
from collections.abc import Mapping

import psutil

from pondstack_rack.layout import RackError
from pondstack_rack.wait import wait_until

LOOPBACK = "127.0.0.1"
SETTLE_SECONDS = 2.0
"""A process that was killed a moment ago may still hold its port."""


def check_free(ports: Mapping[str, int]) -> None:
    """Raise RackError for the first port that somebody listens on; the caller leaves out those of running services."""
    for name, port in ports.items():
        if not _free(port) and not wait_until(functools.partial(_free, port), SETTLE_SECONDS):
            raise RackError(
                f"port {port}, wanted for {name}, is taken by {_owner(port)}: choose another RACK_PORT_BASE"
            )


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_base(count: int, first: int = 22000, last: int = 31000) -> int:
    """Return the first of `count` adjacent free ports (tests); a range below the ephemeral ports."""
    for base in range(first, last, count):
        if all(_free(port) for port in range(base, base + count)):
            return base
    raise RackError(f"no {count} adjacent ports are free between {first} and {last}")


def _owner(port: int) -> str:
    for connection in psutil.net_connections("tcp"):
        if connection.laddr and connection.laddr.port == port and connection.pid:
            try:
                process = psutil.Process(connection.pid)
                return f"pid {process.pid} ({process.name()})"
            except psutil.NoSuchProcess:
                continue
    return "another process"
