"""A small rack in a real ledger: a pool of eight slices, two hosts and one that is gone, allocations of two projects.

The first host lends memory to the second; the third lends too, as a zombie, which is why it is silent.

The API's tests and its reference show this rack, so its names and UUIDs are fixed.
"""

import functools
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID, uuid5

from sqlalchemy import update
from sqlalchemy.orm import Session

from pondstack.db import controllers, journal, migration
from pondstack.db.clock import now_seconds
from pondstack.db.engine import Database
from pondstack.db.ledger import AssignRequest, Ledger
from pondstack.db.lending import BorrowRequest
from pondstack.db.models import ControllerRow, HostRow, Leadership
from pondstack.db.telemetry import Keeping, Telemetry
from pondstack.domain.lending import Lender, LenderKind
from pondstack.ha.lease import LONGEST_LEASE_SECONDS
from pondstack.rpc.wire import Sample
from pondstack.testing.leading import take_over

_NAMES = UUID("5e1a5a3e-7d0b-4c8e-9c55-2d0f4a6b8c1d")

POOL = str(uuid5(_NAMES, "pool"))
BLUE, GREEN = uuid5(_NAMES, "blue").hex, uuid5(_NAMES, "green").hex
CONSUMERS = tuple(str(uuid5(_NAMES, f"consumer {number}")) for number in range(3))
EPOCH = 1
HOSTS = ("host-1", "host-2", "host-3")
TIERING = {
    "settings": {"demotion": "true", "promotion": "2", "watermark_scale_factor": "100"},
    "tiers": {"4": [0], "22": [1]},
    "trouble": [],
}
"""Of the first host."""
BUFFER_MIB = 64
LENDERS = (HOSTS[0], HOSTS[2])
INCARNATIONS = {host: str(uuid5(_NAMES, f"lent memory of {host}")) for host in LENDERS}
RECLAIM = str(uuid5(_NAMES, "reclaim"))
OPERATIONS = (
    {
        "operation_id": str(uuid5(_NAMES, "lend")),
        "verb": "lend",
        "state": "done",
        "mib": 1024,
        "done_mib": 512,
        "reason": "the host keeps the rest: 512 of 1024 MiB are lent; see [lending] reserve_mib",
    },
    {
        "operation_id": RECLAIM,
        "verb": "reclaim",
        "state": "pending",
        "mib": 192,
        "done_mib": 0,
        "reason": "",
    },
)
"""What the first host was asked for; RECLAIM is under way."""
CONTROLLERS = ("controller-1", "controller-2", "controller-3")
"""The first leads, the second stands by; both reach the broker. The third is down and some operations behind."""
HOLDERS = {name: f"{name}:{100 + number}:5f0a11b2" for number, name in enumerate(CONTROLLERS, 1)}
BEHIND = 4
SILENT_SECONDS = 3600.0
"""How long the third host's agent and the third controller have been silent, the latter to the broker too."""
DOWN_SECONDS = 600.0
"""Silence after which a host or a controller is down: long, so that a slow test sees the same rack as a quick one."""


@functools.cache
def _template() -> tuple[bytes, tuple[str, ...]]:
    """Return a SQLite file with the rack, and the allocations' UUIDs: made once in a process, as a test suite is."""
    with TemporaryDirectory(prefix="pondstack-sample-") as folder:
        file = Path(folder) / "ledger.sqlite"
        database = Database.from_url(f"sqlite:///{file}", retry_seconds=0.0)
        allocations = fill(database)
        with database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        database.dispose()
        return file.read_bytes(), allocations


def open_copy(folder: Path) -> tuple[Database, Ledger, tuple[str, ...]]:
    """Put a rack of one's own into `folder`, whose agents reported just now; returns its allocations' UUIDs too."""
    content, allocations = _template()
    file = folder / "ledger.sqlite"
    file.write_bytes(content)
    database = Database.from_url(f"sqlite:///{file}", retry_seconds=0.0)
    database.write(_refresh)
    return database, ledger_of(database, EPOCH), allocations


def ledger_of(database: Database, epoch: int) -> Ledger:
    """Return the ledger of a leader whose lease lasts as long as a lease may: a slow test sees it lead too."""
    return Ledger(database, epoch, lease_seconds=LONGEST_LEASE_SECONDS)


def hand_over(database: Database, name: str) -> Ledger:
    """Let another controller lead, and the former leader stand by; returns the new one's ledger."""
    epoch = take_over(database, HOLDERS[name], LONGEST_LEASE_SECONDS)
    database.write(lambda session: _say_leader(session, name, epoch))
    return ledger_of(database, epoch)


def _say_leader(session: Session, leader: str, epoch: int) -> None:
    session.execute(
        update(ControllerRow).where(ControllerRow.role == controllers.LEADER).values(role=controllers.STANDBY)
    )
    session.execute(
        update(ControllerRow).where(ControllerRow.name == leader).values(role=controllers.LEADER, epoch=epoch)
    )


def _refresh(session: Session) -> None:
    end = now_seconds() + LONGEST_LEASE_SECONDS
    session.execute(update(Leadership).values(renewed_at=now_seconds(), expires_at=end))
    session.execute(update(ControllerRow).values(seen_at=now_seconds(), reached_at=now_seconds()))
    silent, since = ControllerRow.name == CONTROLLERS[2], now_seconds() - SILENT_SECONDS
    session.execute(update(ControllerRow).where(silent).values(seen_at=since, reached_at=since))
    session.execute(update(HostRow).values(last_heartbeat=now_seconds()))
    session.execute(
        update(HostRow).where(HostRow.name == HOSTS[2]).values(last_heartbeat=now_seconds() - SILENT_SECONDS)
    )


def fill(database: Database) -> tuple[str, ...]:
    """Make the schema and the rack; returns the allocations' UUIDs.

    Blue holds slices 0-1 (online) and 2 (assigning) on the first host, green slice 3 (online) on the second; slice 4
    is quarantined, the rest are free.
    """
    migration.sync(database)
    ledger = hand_over(database, CONTROLLERS[0])
    ledger.register_pool(
        uuid=POOL, name="pool0", serial="emulated-0001", driver="emulated", address={}, slice_mib=1024, slices_total=8
    )
    for host in HOSTS:
        tiering = TIERING if host == HOSTS[0] else {}
        report = {"host": host, "sequence": 1, "epoch": 1, "version": "0.1.0", "pools": [POOL], "attached": []}
        ledger.heartbeat({**report, "tiering": tiering, "lending": _lending(host)})
        ledger.set_provider(host, str(uuid5(_NAMES, f"provider of {host}")))
    allocations = (
        _assign(ledger, 0, "host-1", BLUE, slices=2, online=True),
        _assign(ledger, 1, "host-1", BLUE, slices=1, online=False),
        _assign(ledger, 2, "host-2", GREEN, slices=1, online=True),
    )
    ledger.quarantine_slices(POOL, [4], "the agent of host-3 does not answer", host="host-3")
    _lend(ledger)
    database.write(_say)
    _measure(database)
    database.write(_refresh)
    return allocations


def _lending(host: str) -> dict[str, object]:
    """Return what a host's agent reports of lending: the first one has lent all that it can spare."""
    lendable = {HOSTS[0]: 0, HOSTS[1]: 2048, HOSTS[2]: None}[host]
    operations = [dict(item) for item in OPERATIONS] if host == HOSTS[0] else []
    return {"answers": True, "buffer_mib": BUFFER_MIB, "lendable_mib": lendable, "operations": operations}


def _lend(ledger: Ledger) -> None:
    """Have the first host lend 8 buffers, and the third 4 as a zombie.

    The second host has 0-1 (online, guaranteed) and 5 (assigning) of the first, which wants 2 (releasing) and 6-7
    (free) back; 4 is sanitizing, 3 free again. The zombie's are promised in turn; the first host has 0 of it (online).
    """
    _delegate(ledger, HOSTS[0], 8)
    _borrow(ledger, 0, HOSTS[1], 2, guaranteed=True)
    swap = _borrow(ledger, 1, HOSTS[1], 3)
    _borrow(ledger, 2, HOSTS[1], 1, online=False)
    life = INCARNATIONS[HOSTS[0]]
    ledger.reclaim_buffers(RECLAIM, HOSTS[0], 3 * BUFFER_MIB)
    ledger.give_back(str(uuid5(_NAMES, "give back")), swap, HOSTS[1], [(life, 3), (life, 4)])
    ledger.freshened(HOSTS[0], life, [3])
    _delegate(ledger, HOSTS[2], 4, LenderKind.ZOMBIE)
    ledger.promise(HOSTS[2], INCARNATIONS[HOSTS[2]], {0: HOSTS[0], 1: HOSTS[1], 2: HOSTS[0], 3: HOSTS[1]})
    _borrow(ledger, 3, HOSTS[0], 1)


def _delegate(ledger: Ledger, host: str, count: int, kind: LenderKind = LenderKind.ACTIVE) -> None:
    lender = Lender(host, INCARNATIONS[host], kind, BUFFER_MIB)
    ledger.delegate(lender, 1, {index: index * BUFFER_MIB for index in range(count)})


def _borrow(
    ledger: Ledger, number: int, host: str, count: int, *, guaranteed: bool = False, online: bool = True
) -> str:
    """Borrow so many buffers for a guest; returns the UUID of the allocation."""
    operation = str(uuid5(_NAMES, f"loan {number}"))
    consumer = str(uuid5(_NAMES, f"borrower {number}"))
    mib = count * BUFFER_MIB
    request = BorrowRequest(consumer, host, mib, BUFFER_MIB, guaranteed, GREEN, uuid5(_NAMES, "user of green").hex)
    uuid: str = ledger.borrow(operation, request)["allocation_uuid"]
    if online:
        ledger.acknowledge_borrowed(operation, uuid, host)
    return uuid


def _measure(database: Database) -> None:
    """Let the first host's agent tell of its first guest: 2 GiB of each kind, of which the pool's is not touched."""
    samples = [
        Sample(CONSUMERS[0], "hot_mib", None, readings=0, reason="somebody else uses DAMON on this host"),
        *(
            Sample(CONSUMERS[0], "untouched_mib", node, readings=1, minimum=mib, mean=mib, maximum=mib)
            for node, mib in ((None, 2560.0), (0, 512.0), (1, 2048.0))
        ),
    ]
    Telemetry(database, lambda: Keeping(86400, 300, 86400)).write(HOSTS[0], samples)


def _say(session: Session) -> None:
    newest = journal.newest(session)
    for name, role in zip(CONTROLLERS, ("leader", "standby", "standby"), strict=True):
        followed = newest - BEHIND if name == CONTROLLERS[2] else newest
        epoch = EPOCH if role == "leader" else 0
        controllers.say(session, name, HOLDERS[name], role=role, epoch=epoch, followed_sequence=followed)


def _assign(ledger: Ledger, number: int, host: str, project: str, *, slices: int, online: bool) -> str:
    operation = str(uuid5(_NAMES, f"operation {number}"))
    request = AssignRequest(
        consumer_uuid=CONSUMERS[number],
        host=host,
        pool_uuid=POOL,
        pool_mib=1024 * slices,
        guest_mib=4096,
        project_id=project,
        user_id=uuid5(_NAMES, f"user of {project}").hex,
    )
    uuid: str = ledger.assign(operation, request)["allocation_uuid"]
    if online:
        ledger.acknowledge(operation, uuid, host)
    return uuid
