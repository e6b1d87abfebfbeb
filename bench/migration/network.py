"""Three hosts as network namespaces of this machine, joined by links whose counters see every byte between them.

The source and the destination have two links, one for QEMU's stream and one for their data planes; each has one to the
host of the lenders. Hosts reach nothing else. A counter is the kernel's of an interface: what it sent and received,
headers and acknowledgements too. Segments are those of the kernel, up to 64 KiB with one header (GSO), for each way of
migrating alike.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SOURCE, DESTINATION, LENDERS = "source", "destination", "lenders"
LENDER_ADDRESS = "10.77.9.1"


@dataclass(frozen=True)
class Join:
    """A link: its name at both ends, the hosts that it joins, and the network of both addresses."""

    name: str
    hosts: tuple[str, str]
    network: str

    def address(self, host: str) -> str:
        """Return the address of one of its ends."""
        return f"{self.network}.{self.hosts.index(host) + 1}"


STREAM = Join("stream", (SOURCE, DESTINATION), "10.77.1")
PAGES = Join("pages", (SOURCE, DESTINATION), "10.77.2")
FROM_SOURCE = Join("from-source", (SOURCE, LENDERS), "10.77.3")
FROM_DESTINATION = Join("from-dest", (DESTINATION, LENDERS), "10.77.4")
JOINS = (STREAM, PAGES, FROM_SOURCE, FROM_DESTINATION)


@dataclass(frozen=True)
class Wire:
    """Bytes between hosts: QEMU's stream, what data planes sent each other, what went from and to lenders."""

    stream: int
    pages: int
    lenders: int

    @property
    def all(self) -> int:
        """Of all links."""
        return self.stream + self.pages + self.lenders

    def __sub__(self, before: Self) -> "Wire":
        return Wire(self.stream - before.stream, self.pages - before.pages, self.lenders - before.lenders)


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


class Network:
    """The hosts. Needs root."""

    def __init__(self) -> None:
        self._prefix = f"pond-{os.getpid()}-"

    def namespace(self, host: str) -> str:
        """Return the name of a host's namespace."""
        return self._prefix + host

    def within(self, host: str) -> tuple[str, ...]:
        """Return what runs a program there, in front of its command line; its process becomes that program's."""
        return ("nsenter", f"--net=/run/netns/{self.namespace(host)}")

    def counted(self) -> Wire:
        """Return what was sent so far."""
        stream, pages, first, second = (self._bytes(join) for join in JOINS)
        return Wire(stream, pages, first + second)

    def _bytes(self, join: Join) -> int:
        (seen,) = json.loads(_ip("-n", self.namespace(join.hosts[0]), "-j", "-s", "link", "show", "dev", join.name))
        return int(seen["stats64"]["rx"]["bytes"]) + int(seen["stats64"]["tx"]["bytes"])

    def make(self) -> None:
        """Make hosts and links."""
        for host in (SOURCE, DESTINATION, LENDERS):
            _ip("netns", "add", self.namespace(host))
            _ip("-n", self.namespace(host), "link", "set", "lo", "up")
        for join in JOINS:
            near, far = (self.namespace(host) for host in join.hosts)
            _ip("-n", near, "link", "add", join.name, "type", "veth", "peer", "name", join.name, "netns", far)
            for host in join.hosts:
                _ip("-n", self.namespace(host), "addr", "add", f"{join.address(host)}/24", "dev", join.name)
                _ip("-n", self.namespace(host), "link", "set", join.name, "up")
        _ip("-n", self.namespace(LENDERS), "addr", "add", f"{LENDER_ADDRESS}/32", "dev", "lo")
        for join in (FROM_SOURCE, FROM_DESTINATION):
            via = join.address(LENDERS)
            _ip("-n", self.namespace(join.hosts[0]), "route", "add", LENDER_ADDRESS, "via", via)

    def remove(self) -> None:
        """Remove them; idempotent."""
        for host in (SOURCE, DESTINATION, LENDERS):
            if Path("/run/netns", self.namespace(host)).exists():
                _ip("netns", "del", self.namespace(host))


@contextmanager
def network() -> Iterator[Network]:
    """Have hosts for a while."""
    made = Network()
    try:
        made.make()
        yield made
    finally:
        made.remove()
