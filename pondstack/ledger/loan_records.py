"""What readers get of lent memory and who uses it: plain immutable values, one per noun. The API renders them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LentRun:
    """Adjacent buffers of one lender that are alike, of one loan.

    `escrowed`: keys of them are in escrow; `disclosed`: their borrower was told its own one from there, so that they
    stay with it until their lender is awake. `leaving`: their lender wants them back.
    """

    lender: str
    incarnation: str
    kind: str
    start: int
    count: int
    mib: int
    state: str
    escrowed: bool
    disclosed: bool
    leaving: bool


@dataclass(frozen=True, slots=True)
class LoanRecord:
    """A loan: buffers of one consumer on one borrowing host.

    `state`: the least advanced one of its buffers; `lent_mib`: those of them that are the borrower's.
    """

    uuid: str
    consumer_uuid: str
    host: str
    guaranteed: bool
    project_id: str
    user_id: str
    state: str
    lent_mib: int
    buffers: tuple[LentRun, ...]
    created_at: float


@dataclass(frozen=True, slots=True)
class ShareRecord:
    """What an instance has beside its hosts' own memory, in MiB, all hosts together.

    `remote_mib`, `disk_mib`, `swap_mib`: by its flavor, as its hosts' agents report it, None: they do not say (the disk
    share: not while the instance is off). `remote_lent_mib`, `swap_lent_mib`: what lenders have given of it.
    """

    consumer_uuid: str
    project_id: str
    hosts: tuple[str, ...]
    pool_mib: int = 0
    remote_mib: int | None = 0
    remote_lent_mib: int = 0
    disk_mib: int | None = 0
    swap_mib: int | None = 0
    swap_lent_mib: int = 0
