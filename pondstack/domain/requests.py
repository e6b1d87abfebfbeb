"""What is asked of the ledger on behalf of a consumer, as values: the same ones in clients, endpoints and ledger.

The operation id is not part of a request: it names it. The same id with another request is a mistake.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AssignRequest:
    """Pool memory for one consumer on one host (Pond 4.2: Add_capacity).

    `shape`: slices per extent that the answer must have (a live migration's destination); None lets the allocator
    choose.
    """

    consumer_uuid: str
    host: str
    pool_uuid: str
    pool_mib: int
    guest_mib: int
    project_id: str = ""
    user_id: str = ""
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class BorrowRequest:
    """Lent memory for one consumer on one host (Zombieland 4.2).

    `guaranteed`: all or nothing (GS_alloc_ext); else as much as there is, up to `remote_mib` (GS_alloc_swap).
    """

    consumer_uuid: str
    host: str
    remote_mib: int
    guaranteed: bool
    project_id: str = ""
    user_id: str = ""
