"""Shared memory between processes of one machine, with the semantics of one-sided RDMA: the embedded default."""

import os
from pathlib import Path

from pondstack_rdma.base import Transport
from pondstack_rdma.keyring import Keyring
from pondstack_rdma.model import Characteristics, Ticket
from pondstack_rdma.shm.lender import DRIVER, ShmLender
from pondstack_rdma.shm.link import ShmLink
from pondstack_rdma.shm.native_link import NativeShmLink, ShmAccessType, native

NATIVE = native()
"""The compiled part; None where it was not built."""


class ShmTransport(Transport):
    """Lenders listen in `folder`, as `NAME.sock`; a path has 107 bytes at most.

    With `access_type` None, Python carries out every access, as on a machine without the compiled part.
    """

    characteristics = Characteristics(
        driver=DRIVER,
        one_sided=True,
        serves_frozen=True,
        refused_by="library",
        refuses_revoked_at_once=True,
        refusal_ends_link=False,
        same_machine=True,
        max_batch=1024,
        max_batch_bytes=2**30,
        max_message_bytes=64 * 2**20,
    )

    def __init__(self, folder: str | os.PathLike[str], access_type: ShmAccessType | None = NATIVE) -> None:
        self._folder = Path(folder)
        self._access_type = access_type

    def lend(self, name: str) -> ShmLender:
        """Start a lender."""
        return ShmLender(self._folder / f"{name}.sock", Keyring())

    def connect(self, ticket: Ticket, timeout_seconds: float) -> ShmLink:
        """Connect a borrower."""
        if self._access_type is None:
            return ShmLink(ticket, self.characteristics, timeout_seconds)
        return NativeShmLink(ticket, self.characteristics, timeout_seconds, self._access_type)
