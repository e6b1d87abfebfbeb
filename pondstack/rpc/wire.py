"""The values that cross RPC: plain dicts of JSON types on the wire, frozen dataclasses at both ends.

Version 1.x only adds fields that have a default, so that N and N-1 agents work with an N controller: a reader ignores
fields that it does not know.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from pondstack.domain import column_shapes
from pondstack.domain.conform import SHAPE, check_present, check_value
from pondstack.domain.known_split import KnownSplit
from pondstack.domain.model import Extent
from pondstack.domain.project_settings import ProjectSettings
from pondstack.domain.purpose import Purpose
from pondstack.domain.reported import BORROWED, LENDING, TIERING
from pondstack.domain.requests import AssignRequest, BorrowRequest
from pondstack.domain.room import PoolRoom
from pondstack.domain.shape import Nullable
from pondstack.domain.telemetry import Source
from pondstack.domain.units import DEFAULT_SLICE_MIB


def to_arguments(request: AssignRequest | BorrowRequest) -> dict[str, Any]:
    """Return a request as the keyword arguments of its call: its fields, in JSON types."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in request.fields().items()}


def assign_request(*, shape: Sequence[int] | None = None, purpose: str = Purpose.GUEST, **fields: Any) -> AssignRequest:
    """Return the request of a call's keyword arguments.

    Raises TypeError for one that is missing or unknown, BadRequest for one that is of another type.
    """
    check_present(AssignRequest, {**fields, "shape": shape, "purpose": purpose})
    return AssignRequest(**fields, shape=tuple(shape) if shape else None, purpose=Purpose(purpose))


def borrow_request(**fields: Any) -> BorrowRequest:
    """Return the request of a call's keyword arguments; raises as assign_request."""
    check_present(BorrowRequest, fields)
    return BorrowRequest(**fields)


@dataclass(frozen=True, slots=True)
class Wire:
    """Base of all wire values."""

    def to_wire(self) -> dict[str, Any]:
        """Return JSON types only."""
        return asdict(self)

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """Build the value; unknown fields (a newer sender's) are dropped. Raises BadRequest for anything else."""
        check_value(cls, data)
        known = {item.name for item in fields(cls)}
        return cls(**{key: cls._decode(key, value) for key, value in data.items() if key in known})

    @classmethod
    def _decode(cls, key: str, value: Any) -> Any:
        if key == "extents":
            return tuple(Extent(item["start"], item["count"]) for item in value)
        return value


@dataclass(frozen=True, slots=True)
class Grant(Wire):
    """Slices of one pool device that a host may use for one consumer. `device` is the driver's own address of it.

    `handed`: they are handed over, with what the consumer has in them: the host that it comes from has them, too.
    """

    allocation_uuid: str
    consumer_uuid: str
    host: str
    pool_uuid: str
    pool_name: str
    device: dict[str, Any]
    slice_mib: int
    extents: tuple[Extent, ...]
    epoch: int
    purpose: str = Purpose.GUEST.value
    handed: bool = False

    def to_wire(self) -> dict[str, Any]:
        """Return JSON types only; without a hand-over as agents of the former release put it on record."""
        found = asdict(self)
        if not self.handed:
            del found["handed"]
        return found


@dataclass(frozen=True, slots=True)
class Attached(Wire):
    """One allocation that is really there on a host, as its agent sees it. `in_use`: mapped by a running process.

    `backing`: the kind of its backings; "": of an agent of a former release.
    """

    allocation_uuid: str
    consumer_uuid: str
    pool_uuid: str
    extents: tuple[Extent, ...]
    in_use: bool = False
    purpose: str = Purpose.GUEST.value
    backing: str = ""


@dataclass(frozen=True, slots=True)
class Report(Wire):
    """What an agent reports of its host. `released`: allocations whose release the controller has not confirmed yet.

    `sequence` grows with each report of one agent, over its restarts too; a lower one is late and is dropped.
    """

    host: str
    sequence: int
    epoch: int
    version: str
    pools: tuple[str, ...] = ()
    attached: tuple[Attached, ...] = ()
    released: tuple[str, ...] = ()
    stuck: dict[str, str] = field(default_factory=dict)
    """Allocations whose memory does not go offline (of a driver that moves pages away first): UUID to reason."""
    zeroing: dict[str, str] = field(default_factory=dict)
    """By pool, what the host does before it gives slices back (pondstack.domain.zeroing.HostZeroing)."""
    not_zero: dict[str, list[int]] = field(default_factory=dict)
    """Slices of released allocations that had somebody's bytes before their first use: UUID to indexes."""
    tiering: dict[str, Any] = field(default_factory=dict, metadata={SHAPE: TIERING})
    """Tiering by the kernel, as read back: {} when nothing is configured, else `settings` (name to the kernel's text),
    `tiers` (memory tier to nodes), `trouble` (texts)."""
    lending: dict[str, Any] | None = field(default=None, metadata={SHAPE: Nullable(LENDING)})
    """What the host lends, as agent.get_lending answers it but for `buffers`: runs [first index, count, borrower,
    generation]. None: it takes no part."""
    borrowed: dict[str, Any] | None = field(default=None, metadata={SHAPE: Nullable(BORROWED)})
    """What it borrows, as agent.get_borrowing answers it. None: it takes no part."""
    hands_over: tuple[str, ...] = ()
    """Pools whose slices it takes over with their content, and of whose devices it reads heirs."""
    written_back: tuple[str, ...] = ()
    """Of `released`, those of which its CPU caches hold nothing that is not in memory."""

    @classmethod
    def _decode(cls, key: str, value: Any) -> Any:
        if key == "attached":
            return tuple(Attached.from_wire(item) for item in value)
        return tuple(value) if key in {"pools", "released", "hands_over", "written_back"} else value


@dataclass(frozen=True, slots=True)
class Sample(Wire):
    """Readings of one metric of one guest (pondstack.domain.telemetry). `node` None: of the guest as a whole.

    `age_seconds`: since the last reading, when it was sent; no two machines' clocks are compared. `readings` 0: there
    is no value, for `reason`. `source`: pondstack.domain.telemetry.Source; a former release sends none.
    """

    consumer_uuid: str = field(metadata={SHAPE: column_shapes.UUID})
    metric: str = field(metadata={SHAPE: column_shapes.METRIC})
    node: int | None = field(default=None, metadata={SHAPE: column_shapes.NODE})
    age_seconds: float = field(default=0.0, metadata={SHAPE: column_shapes.AGE_SECONDS})
    readings: int = field(default=0, metadata={SHAPE: column_shapes.READINGS})
    minimum: float | None = None
    mean: float | None = None
    maximum: float | None = None
    reason: str = ""
    source: str = Source.MEASURED


@dataclass(frozen=True, slots=True)
class HostReading(Wire):
    """A reading of one metric of a host (pondstack.domain.telemetry.HostMetric), as Sample has those of guests."""

    metric: str = field(metadata={SHAPE: column_shapes.METRIC})
    value: float
    age_seconds: float = field(default=0.0, metadata={SHAPE: column_shapes.AGE_SECONDS})
    source: str = Source.MEASURED


@dataclass(frozen=True, slots=True)
class Backing(Wire):
    """Memory behind one CPU-less guest node: a range of a file (emulated device) or a node of the host (CXL).

    One per extent, in extent order. `distance` is the SLIT distance from local memory.
    """

    kind: str
    size_mib: int
    distance: int = 20
    path: str = ""
    offset_bytes: int = 0
    host_node: int | None = None


@dataclass(frozen=True, slots=True)
class Attachment(Wire):
    """Answer of agent.attach: the guest nodes to define.

    `handed`: what the guest had in them where it came from stayed in them, by the grant that they are here by.
    `heir`: the host that they are being handed over to, with what is in them; "": to none.
    """

    allocation_uuid: str
    consumer_uuid: str
    pool_uuid: str
    pool_name: str
    pool_mib: int
    epoch: int
    extents: tuple[Extent, ...]
    backings: tuple[Backing, ...]
    handed: bool = False
    heir: str = ""

    @classmethod
    def _decode(cls, key: str, value: Any) -> Any:
        if key == "backings":
            return tuple(Backing.from_wire(item) for item in value)
        return Wire._decode.__func__(cls, key, value)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Mitigation(Wire):
    """How far the move of a guest's pool pages to local memory is. Pages are of 4 KiB.

    `state`: moving, mitigated (the slices are given back), aborted or failed (see `reason`; the guest keeps them).
    `held` (since 1.6): once mitigated, the guest keeps its slices until the controller orders them back.
    """

    consumer_uuid: str
    allocation_uuid: str
    operation_id: str = ""
    state: str = ""
    pages_total: int = 0
    pages_moved: int = 0
    seconds: float = 0.0
    reason: str = ""
    held: bool = False


@dataclass(frozen=True, slots=True)
class DomainRewrite(Wire):
    """What of a guest that libvirt keeps is bound to local memory now (since agent RPC 1.6).

    `state`: rewritten, or absent: libvirt has no such domain. `managed_save`: a suspended guest's image, too.
    `changed`: something was bound otherwise before.
    """

    state: str
    managed_save: bool = False
    changed: bool = False


@dataclass(frozen=True, slots=True)
class SplitAnswer(Wire):
    """Answer of controller.get_split (pondstack.domain.sizing.Split), to schedulers of the former release."""

    local_mib: int
    pool_mib: int
    source: str
    confidence: float
    reason: str
    slice_mib: int


@dataclass(frozen=True, slots=True)
class UsedSplit(Wire):
    """The split that nova-scheduler placed an instance with (pondstack.domain.sizing.Split), and of what features.

    `age_seconds`: since it was used, when this was sent; no two machines' clocks are compared.
    """

    features: dict[str, Any]
    local_mib: int = field(metadata={SHAPE: column_shapes.MIB})
    pool_mib: int = field(metadata={SHAPE: column_shapes.MIB})
    source: str
    confidence: float
    reason: str
    age_seconds: float = field(default=0.0, metadata={SHAPE: column_shapes.AGE_SECONDS})
    model_version: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PoolView(Wire):
    """One pool in the scheduler's snapshot. `free_slices` counts FREE ones; `buffer_slices` of them are kept back."""

    uuid: str
    name: str
    state: str
    slice_mib: int
    slices_total: int
    free_slices: int
    largest_extent: int
    buffer_slices: int
    hosts: tuple[str, ...] = ()

    @classmethod
    def _decode(cls, key: str, value: Any) -> Any:
        return tuple(value) if key == "hosts" else value


@dataclass(frozen=True, slots=True)
class Snapshot(Wire):
    """What PondFilter and PondWeigher know of the rack; `usable_hosts`: enabled, with a live agent.

    `pool_mib_by_host`: pool memory that the guests of each host have; Nova counts it as if it were the host's own RAM.
    `revoked`: the moment before which credentials are not believed, in seconds since 1970, by ROLE/NAME.
    """

    epoch: int
    pools: tuple[PoolView, ...] = ()
    usable_hosts: tuple[str, ...] = ()
    unusable_hosts: dict[str, str] = field(default_factory=dict)
    pool_mib_by_host: dict[str, int] = field(default_factory=dict)
    revoked: dict[str, float] = field(default_factory=dict)

    @classmethod
    def _decode(cls, key: str, value: Any) -> Any:
        if key == "pools":
            return tuple(PoolView.from_wire(item) for item in value)
        return tuple(value) if key == "usable_hosts" else value


@dataclass(frozen=True, slots=True)
class SplitView(Wire):
    """What nova-scheduler decides splits from; answer of controller.split_view.

    `rooms`: of the pools that are up and that a usable host reaches, `age_seconds` old. `pending`: MiB by consumer of
    what schedulers told and nobody has claimed yet; `claimed`: who came up among the claims lately. `predictor`: as
    pondstack.prediction.serving.make_predictor takes it; {}: still that of `predictor_version`, which the scheduler
    has. `model_budget`: what the models may still risk, as pondstack.domain.allowance; None: no model does.
    `splits`: what changed since the version that was asked from, or, when `full`, all that is known from its start on;
    `more`: ask again, from `version`. `projects`: what operators have set, of each project that has something set
    (since 1.12). `control`: the control group, as pondstack.prediction.control has it; {}: none (since 1.15).
    """

    epoch: int
    version: int
    full: bool = False
    more: bool = False
    slice_mib: int = DEFAULT_SLICE_MIB
    predictor: dict[str, Any] = field(default_factory=dict)
    rooms: tuple[PoolRoom, ...] = ()
    age_seconds: float = 0.0
    pending: dict[str, int] = field(default_factory=dict)
    claimed: tuple[str, ...] = ()
    splits: tuple[KnownSplit, ...] = ()
    predictor_version: str = ""
    model_budget: dict[str, Any] | None = None
    projects: dict[str, ProjectSettings] = field(default_factory=dict)
    control: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def _decode(cls, key: str, value: Any) -> Any:
        if key == "projects":
            return {project: ProjectSettings.from_wire(item) for project, item in value.items()}
        if key == "rooms":
            return tuple(PoolRoom(item["name"], item["total_mib"], item["claimable_mib"]) for item in value)
        if key == "splits":
            return tuple(KnownSplit.from_wire(item) for item in value)
        return tuple(value) if key == "claimed" else value
