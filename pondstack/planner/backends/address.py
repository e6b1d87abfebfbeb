"""Addresses of clusters, as `pondstack-planner run --cluster` takes them."""

import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from pondstack.domain.errors import BadRequest, Unavailable

ADDRESSES = "dask://HOST:PORT or ray://HOST:PORT"

ANSWER_SECONDS = 10


@dataclass(frozen=True)
class Address:
    """`kind`: dask or ray. `where`: HOST:PORT."""

    text: str
    kind: str
    where: str

    @classmethod
    def parsed(cls, text: str) -> "Address":
        """Return the address that a text is. Raises BadRequest."""
        parts = urlsplit(text)
        try:
            complete = parts.hostname and parts.port and not (parts.path or parts.query or parts.fragment)
        except ValueError:
            complete = False
        if parts.scheme not in {"dask", "ray"} or not complete:
            raise BadRequest(f"{text} is no address of a cluster; give {ADDRESSES}")
        return cls(text, parts.scheme, parts.netloc)

    def check(self) -> None:
        """Raise Unavailable where nobody listens: the libraries try for minutes before they say so."""
        parts = urlsplit(self.text)
        try:
            socket.create_connection((parts.hostname or "", parts.port or 0), timeout=ANSWER_SECONDS).close()
        except OSError as error:
            raise Unavailable(
                f"{self.text} does not answer ({error}): start the cluster, or correct --cluster"
            ) from error
