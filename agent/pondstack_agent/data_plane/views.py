"""What the data plane tells of a guest, as it comes: checked, since another release of it may run."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from pondstack.domain.shape import Anything, Fields, Flag, Items, Number, OneOf, Table, Text, Whole
from pondstack.domain.units import MIB

PAGE_BYTES = 4096


class GuestState(StrEnum):
    """What the data plane does with a guest."""

    SERVING = "serving"
    DETACHING = "detaching"
    FAILED = "failed"
    """It does not serve it, and tries again."""


class BlockState(StrEnum):
    """What the data plane does with a block device."""

    SERVING = "serving"
    FAILED = "failed"
    """It does not serve it, and tries again; what it lost its key or its mirror of is never served again."""


class LeaseState(StrEnum):
    """Whether pages are with a lease: a key of a lender."""

    ACTIVE = "active"
    LEAVING = "leaving"
    LOST = "lost"
    """Its lender failed; it is not asked again."""
    LEFT = "left"
    HANDED = "handed"
    """Another host's data plane has its pages there; nothing is written before the guest is this one's."""


_LEASE = Fields(
    {"lender": Text(255, 1), "number": Whole(), "state": OneOf(tuple(LeaseState))},
    {"pages": Whole(), "used": Whole()},
    others=True,
)
_HANDOVER = Fields(
    {"state": Text(64, 1), "connected": Flag(), "bytes": Whole()},
    {
        "port": Whole(0, 65535),
        "problem": Text(4096),
        "kept": Flag(),
        "references": Flag(),
        "publishes": Flag(),
        "lent_pages": Whole(),
        "told_pages": Whole(),
    },
    others=True,
)
_GUEST = Fields(
    {
        "guest": Text(64, 1),
        "pid": Whole(),
        "started": Whole(),
        "limit_mib": Whole(),
        "state": OneOf(tuple(GuestState)),
        "problem": Text(4096),
    },
    {
        "resident_pages": Whole(),
        "evicted_pages": Whole(),
        "leases": Items(_LEASE),
        "counters": Table(Text(64), Number()),
        "store": Table(Text(64), Number()),
        "handover": _HANDOVER,
    },
    others=True,
)
_LINK = Fields({"lender": Text(255, 1), "state": OneOf(("connected", "lost"))}, others=True)
_BLOCK = Fields(
    {
        "block": Text(64, 1),
        "mib": Whole(),
        "socket": Text(4096, 1),
        "state": OneOf(tuple(BlockState)),
        "problem": Text(4096),
    },
    {
        "connected": Whole(),
        "leases": Items(_LEASE),
        "counters": Table(Text(64), Number()),
        "store": Table(Text(64), Number()),
    },
    others=True,
)
_ALL = Fields({"guests": Items(Anything())}, {"links": Items(_LINK)}, others=True)


@dataclass(frozen=True, slots=True)
class LeaseView:
    """One key of a lender that is used for a guest's pages. `lender`: the name that it was leased by."""

    lender: str
    number: int
    state: LeaseState
    used: int = 0
    """Pages that are with it."""


@dataclass(frozen=True, slots=True)
class HandoverView:
    """How far a guest is on its way between data planes; doc/source/admin/data-plane.md has the states.

    `connected`: whether they have found each other. `port`: of the source. `moved`: bytes so far. `kept`: the source
    has what the destination lacks also once the guest's process has ended; not so in a former release. `references`: it
    can tell with which lenders pages are; not so in a former release. `publishes`: it has hosts that share the file
    system of its mirror see what is in there; not so in a former release. `told_mib`: what it has told so of, at the
    source; `lent_mib`: what was copied although lenders have it.
    """

    state: str
    connected: bool
    moved: int = 0
    port: int = 0
    problem: str = ""
    kept: bool = False
    references: bool = False
    publishes: bool = False
    told_mib: float = 0.0
    lent_mib: float = 0.0

    @property
    def is_switched(self) -> bool:
        """Whether it is the other data plane's, at the source."""
        return self.state in ("switched", "delivered")


@dataclass(frozen=True, slots=True)
class GuestView:
    """One guest that is attached. `started`: when its process began, in clock ticks since the host's start.

    `evicted_pages`: in the store only. Both numbers of pages are None while it is not served.
    """

    guest: str
    pid: int
    started: int
    limit_mib: int
    state: GuestState
    problem: str = ""
    resident_pages: int | None = None
    evicted_pages: int | None = None
    leases: tuple[LeaseView, ...] = ()
    counters: Mapping[str, float] | None = None
    store: Mapping[str, float] | None = None
    handover: HandoverView | None = None

    @property
    def evicted_mib(self) -> float | None:
        """What is in the store only, in MiB."""
        return None if self.evicted_pages is None else self.evicted_pages * PAGE_BYTES / MIB

    @property
    def resident_mib(self) -> float | None:
        """What is in local memory, in MiB."""
        return None if self.resident_pages is None else self.resident_pages * PAGE_BYTES / MIB

    @classmethod
    def from_json(cls, found: Any) -> Self:
        """Return what was told; raises ValueError for what is none."""
        _GUEST.check(found)
        return cls(
            guest=found["guest"],
            pid=found["pid"],
            started=found["started"],
            limit_mib=found["limit_mib"],
            state=GuestState(found["state"]),
            problem=found["problem"],
            resident_pages=found.get("resident_pages"),
            evicted_pages=found.get("evicted_pages"),
            leases=_leases(found),
            counters=found.get("counters"),
            store=found.get("store"),
            handover=_handover(found.get("handover")),
        )


@dataclass(frozen=True, slots=True)
class BlockView:
    """One block device that is exported on a socket. `connected`: how many clients it has, 0 while it is not served."""

    block: str
    mib: int
    socket: str
    state: BlockState
    problem: str = ""
    connected: int = 0
    leases: tuple[LeaseView, ...] = ()
    counters: Mapping[str, float] | None = None
    store: Mapping[str, float] | None = None

    @classmethod
    def from_json(cls, found: Any) -> Self:
        """Return what was told; raises ValueError for what is none."""
        _BLOCK.check(found)
        return cls(
            block=found["block"],
            mib=found["mib"],
            socket=found["socket"],
            state=BlockState(found["state"]),
            problem=found["problem"],
            connected=found.get("connected", 0),
            leases=_leases(found),
            counters=found.get("counters"),
            store=found.get("store"),
        )


def _handover(found: Mapping[str, Any] | None) -> HandoverView | None:
    if found is None:
        return None
    return HandoverView(
        found["state"],
        found["connected"],
        found["bytes"],
        found.get("port", 0),
        found.get("problem", ""),
        found.get("kept", False),
        found.get("references", False),
        found.get("publishes", False),
        found.get("told_pages", 0) * PAGE_BYTES / MIB,
        found.get("lent_pages", 0) * PAGE_BYTES / MIB,
    )


def _leases(found: Mapping[str, Any]) -> tuple[LeaseView, ...]:
    return tuple(
        LeaseView(item["lender"], item["number"], LeaseState(item["state"]), item.get("used", 0))
        for item in found.get("leases", ())
    )


def links_of(answer: Any) -> list[str]:
    """Return the lenders in an answer to which there is a link that is not lost; raises ValueError for what is none.

    A data plane of a former release tells of none.
    """
    _ALL.check(answer)
    return [link["lender"] for link in answer.get("links", ()) if link["state"] == "connected"]


def guests_of(answer: Any) -> list[Any]:
    """Return the list of guests in an answer; raises ValueError for what is none."""
    _ALL.check(answer)
    return list(answer["guests"])
