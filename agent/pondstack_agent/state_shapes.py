"""What each record in the agent's state folder has to be, by its folder: one that is not is refused by name.

The folder is root's, but disks rot, and files are copied about and mended by hand: no path, process or range of memory
is believed that this agent would not have written. Standard library only, because the head of a guest reads one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pondstack.domain.errors import KINDS
from pondstack.domain.shape import (
    Anything,
    Fields,
    Flag,
    Hex,
    Index,
    Items,
    Name,
    Nullable,
    Number,
    OneOf,
    Row,
    Shape,
    Table,
    Text,
    Whole,
)
from pondstack.domain.units import MIB

MOVE_AWAY = "stop the agent, move the file away, audit the ledger"
REMOVE_EPOCH = (
    "stop the agent and remove the file: the agent takes the epoch from the controller's answer to its first heartbeat"
)
MOST_SLICES = 2**20
"""Of a pool device; so many the API lets a host hold, too."""
_MOST_MIB = 2**31 - 1
_DAX = re.compile(r"/dev/dax\d+\.\d+")
_MOST_PID = 2**22
"""The kernel's bound of process ids."""
_SLICE = Whole(0, MOST_SLICES - 1)
_AT = Number()
_REASON = Text(2**20)
_ERROR = OneOf(tuple(sorted(KINDS)))
_ID, _OWNER = Name(), Name(empty=True)


@dataclass(frozen=True, slots=True)
class RecordShape:
    """Of one record. `name`: what its file has to be called by. `remedy`: what to do with a damaged one."""

    shape: Shape
    name: Callable[[Mapping[str, Any]], str] | None = None
    remedy: str = MOVE_AWAY

    def check(self, key: str, record: Mapping[str, Any]) -> None:
        """Raise ValueError, which says what is wrong with a record of this key."""
        self.shape.check(record)
        if self.name is not None and (named := self.name(record)) != key:
            raise ValueError(f"it is the record of {named[:200]!r}, in the file of another")


def _by(*fields: str, between: str = "") -> Callable[[Mapping[str, Any]], str]:
    return lambda record: between.join(str(record[name]) for name in fields)


def _disjoint(record: Mapping[str, Any]) -> None:
    """Check the extents of a grant: within a device, no slice twice."""
    end = 0
    for extent in sorted(record["extents"], key=lambda item: int(item["start"])):
        if extent["start"] < end:
            raise ValueError(f"extents has slice {extent['start']} twice")
        end = extent["start"] + extent["count"]
    if end > MOST_SLICES:
        raise ValueError(f"extents has slice {end - 1}, and no device has more than {MOST_SLICES} slices")


def _backed(record: Mapping[str, Any]) -> None:
    """Check that backings are the extents' ranges of the device's memory: by them a guest gets its memory."""
    _disjoint(record)
    ranges = [(extent["start"], extent["count"]) for extent in record["extents"]]
    size = record["slice_mib"]
    wanted = [(f"{record['device_path']}/memory", start * size * MIB, count * size) for start, count in ranges]
    if [(item["path"], item["offset_bytes"], item["size_mib"]) for item in record["backings"]] != wanted:
        raise ValueError("backings are other ranges than the extents")


def _mapped(record: Mapping[str, Any]) -> None:
    """Check that what QEMU maps are dax devices as large as the extents, one for each."""
    _disjoint(record)
    backings = record.get("backings")
    if backings is None:
        return
    if not all(_DAX.fullmatch(str(item["path"])) for item in backings):
        raise ValueError("backings has a path that is no dax device")
    sizes = [extent["count"] * record["slice_mib"] for extent in record["extents"]]
    if [item["size_mib"] for item in backings] != sizes:
        raise ValueError("backings are of other sizes than the extents")


def _no_way_up(record: Mapping[str, Any]) -> None:
    """Check that a setting is one of the kernel's."""
    path = str(record["path"])
    if not path.startswith(("sys/", "proc/sys/")) or ".." in path.split("/"):
        raise ValueError(f"path is {path[:60]!r}, no setting of the kernel")


_EXTENTS = Items(Fields({"start": _SLICE, "count": Whole(1, MOST_SLICES)}), least=1, most=MOST_SLICES)
_GRANT = {
    "allocation_uuid": _ID,
    "consumer_uuid": _ID,
    "host": _ID,
    "pool_uuid": _ID,
    "pool_name": Text(255),
    "device": Table(Text(255), Anything()),
    "slice_mib": Whole(1, _MOST_MIB),
    "extents": _EXTENTS,
    "epoch": Whole(),
}
_PURPOSE = {"purpose": OneOf(("guest", "tier", "base"))}
_HANDED = {"handed": Flag()}
_BACKING = Fields(
    {
        "kind": OneOf(("file",)),
        "size_mib": Whole(1, 2**40),
        "path": Text(4096, 1),
        "offset_bytes": Whole(),
    },
    {"distance": Whole(10, 254), "host_node": Nullable(Whole(0, 1023))},
)
_DEVICE = Fields(
    {
        "kind": OneOf(("devdax",)),
        "size_mib": Whole(1, 2**40),
        "path": Text(255, 1),
        "offset_bytes": Whole(0, 0),
        "align_bytes": Whole(1, 2**40),
        "start_bytes": Whole(),
        "distance": Whole(10, 254),
        "host_node": Nullable(Whole(0, 0)),
    }
)
_REQUEST = Fields(
    {"pool_uuid": _OWNER, "pool_mib": Whole(0, 2**40), "guest_mib": Whole(0, 2**40)},
    {
        "project_id": _OWNER,
        "user_id": _OWNER,
        "shape": Nullable(Items(Whole(1, MOST_SLICES), most=MOST_SLICES)),
        "source": _ID,
        "write_back": Flag(),
        **_PURPOSE,
    },
)


def _of_its_kind(record: Mapping[str, Any]) -> None:
    """Check that an attach says what it asks for, has a grant for its consumer once there is one, and only it has."""
    grant = record["grant"]
    if record["kind"] == "detach":
        if record["request"] or grant:
            raise ValueError("it is a detach with the request or grant of an attach")
        return
    _REQUEST.check(record["request"], "request")
    if grant is None and record["status"] in ("granted", "done"):
        raise ValueError(f"it is an attach that is {record['status']}, without a grant")
    if grant is not None and grant["consumer_uuid"] != record["consumer_uuid"]:
        raise ValueError("grant is another consumer's")


_OPERATION = Fields(
    {
        "operation_id": _ID,
        "kind": OneOf(("attach", "detach")),
        "consumer_uuid": _ID,
        "at": _AT,
        "status": OneOf(("pending", "granted", "done", "cancelled", "over")),
        "request": Table(Text(64), Anything()),
        "grant": Nullable(Fields(_GRANT, {**_PURPOSE, **_HANDED}, rule=_disjoint)),
        "allocations": Items(_ID),
        "error": Nullable(Row((_ERROR, _REASON))),
    },
    {"online_at": Whole()},
    rule=_of_its_kind,
)
_KEY = Fields(
    {"number": Whole(), "borrower": _ID, "size_bytes": Whole(1, 2**50), "token": Hex()},
    {"location": Table(Text(64), Whole())},
)
_TICKET = Fields({}, {"driver": Name(), "address": Text(1024), "borrower": _ID, "secret": Hex()})


def _has_its_ticket(record: Mapping[str, Any]) -> None:
    """Check that what is borrowed has all of a ticket; there is none without it."""
    if len(record["ticket"]) not in (0, 4) or (record["buffers"] and not record["ticket"]):
        raise ValueError("ticket lacks a part")


_HELD = Fields(
    {
        "lender": _ID,
        "incarnation": _ID,
        "ticket": _TICKET,
        "at": _AT,
        "buffers": Table(Index(), Fields({"allocation_uuid": _OWNER, "key": _KEY, "leaving": Flag()})),
        "released": Table(Index(), Whole()),
    },
    {
        "left": Table(Index(), _OWNER),
        "telling": Table(_ID, Fields({"allocation_uuid": _OWNER, "indexes": Items(Whole(0, 2**31 - 1))})),
    },
    rule=_has_its_ticket,
)
_BORROW = Fields(
    {"operation_id": _ID, "mib": Whole(1, _MOST_MIB)},
    {"allocation_uuid": _OWNER, "state": OneOf(("asked", "open", "undoing")), "source": Text(255)},
)


def _borrows(record: Mapping[str, Any]) -> None:
    """Check a consumer's borrows: each by its own id; its mirror is a file of its own, somewhere."""
    if any(key != item["operation_id"] for key, item in record["borrows"].items()):
        raise ValueError("borrows has one by the id of another")
    if not record["mirror"].startswith("/") or ".." in record["mirror"].split("/"):
        raise ValueError("mirror is no absolute path")


_EXTENSION = Fields(
    {
        "pid": Whole(1, _MOST_PID),
        "started": Whole(),
        "memory": Text(127, 1),
        "memory_mib": Whole(1, _MOST_MIB),
        "local_mib": Whole(1, _MOST_MIB),
    },
    {"homing": Flag(), "incoming": Flag()},
)
_CONSUMER = Fields(
    {
        "consumer_uuid": _ID,
        "operation_id": _ID,
        "guaranteed": Flag(),
        "mib": Whole(1, _MOST_MIB),
        "mirror": Text(4096, 1),
        "at": _AT,
        "borrows": Table(_ID, _BORROW),
    },
    {
        "project_id": _OWNER,
        "user_id": _OWNER,
        "state": OneOf(("asking", "active", "ending")),
        "asked": Whole(),
        "extension": Nullable(_EXTENSION),
        "instance_uuid": _OWNER,
        "source": Text(255),
    },
    rule=_borrows,
)
_LENDING = Fields(
    {
        "operation_id": _ID,
        "verb": OneOf(("lend", "reclaim")),
        "mib": Whole(0, _MOST_MIB),
        "at": _AT,
    },
    {
        "kind": OneOf(("", "active", "zombie")),
        "incarnation": _OWNER,
        "from_mib": Whole(0, 2**40),
        "ends_at": _AT,
        "state": OneOf(("pending", "telling", "done")),
        "reason": _REASON,
        "ended_mib": Nullable(Whole(0, 2**40)),
    },
)
_MITIGATION = Fields(
    {
        "operation_id": _ID,
        "consumer_uuid": _ID,
        "allocation_uuid": _ID,
        "pool_node": Whole(-1, 1023),
        "at": _AT,
    },
    {
        "pages": Whole(),
        "left": Whole(),
        "state": OneOf(("moving", "mitigated", "aborted", "failed")),
        "seconds": Number(0.0),
        "reason": _REASON,
        "hold": Flag(),
    },
)
_SETTING = Fields(
    {"path": Text(1024, 1), "former": Text(), "written": Items(Text(), most=1024), "boot": Nullable(Text(255))},
    rule=_no_way_up,
)
_VACATED = Row((Whole(0, _MOST_PID), Whole(), Whole(0, 1023)))
_BY_ALLOCATION = _by("allocation_uuid")

SHAPES: Mapping[str, RecordShape | Mapping[str, RecordShape]] = {
    "attachments": RecordShape(
        Fields(
            {**_GRANT, "device_path": Text(4096, 1), "backings": Items(_BACKING, 1, MOST_SLICES)},
            {**_PURPOSE, **_HANDED},
            rule=_backed,
        ),
        _BY_ALLOCATION,
    ),
    "borrowing": RecordShape(_HELD, _by("lender", "incarnation", between="@")),
    "cxl": RecordShape(
        Fields(
            {**_GRANT, "boot": Text(255)},
            {
                **_PURPOSE,
                **_HANDED,
                "backing": OneOf(("node", "devdax")),
                "restarted_with": _ID,
                "backings": Items(_DEVICE, 1, MOST_SLICES),
                "device_path": Text(4096),
            },
            rule=_mapped,
        ),
        _BY_ALLOCATION,
    ),
    "cxl-dirty": RecordShape(Fields({"indexes": Items(_SLICE, most=MOST_SLICES)})),
    "cxl-states": RecordShape(
        Fields(
            {"state": OneOf(("attaching", "online", "offlining", "offline_failed")), "reason": _REASON},
            {"vacated": _VACATED},
        )
    ),
    "damon": RecordShape(Fields({"pid": Whole(1, _MOST_PID), "boot": Text(255)})),
    "lending": RecordShape(_LENDING, _by("operation_id")),
    "marks": {
        "epoch": RecordShape(Fields({"seen": Whole()}), remedy=REMOVE_EPOCH),
        "lent": RecordShape(Fields({"incarnation": _OWNER})),
        "sequence": RecordShape(Fields({"reserved": Whole()})),
        "suspension": RecordShape(Fields({"ended": _ID})),
    },
    "mitigations": RecordShape(_MITIGATION, _BY_ALLOCATION),
    "operations": RecordShape(_OPERATION, _by("operation_id")),
    "releases": RecordShape(
        Fields(
            {"state": OneOf(("releasing", "released", "settled")), "at": _AT},
            {"not_zero": Items(_SLICE, most=MOST_SLICES), "boot": Text(255), "written_back": Flag()},
        )
    ),
    "remote": RecordShape(_CONSUMER, _by("consumer_uuid")),
    "revocations": RecordShape(Table(Text(511, 1), Number())),
    "tiering": RecordShape(_SETTING),
    "tiering-order": RecordShape(Fields({"on": Flag()})),
}
"""By folder, of each record in it; or by record, where they differ."""


def shape_of(folder: str, key: str) -> RecordShape | None:
    """Return what a record has to be; None: of a folder that is none of the agent's, anything."""
    found = SHAPES.get(folder)
    return found.get(key) if isinstance(found, Mapping) else found
