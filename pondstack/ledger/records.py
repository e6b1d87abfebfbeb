"""What readers of the ledger get: plain immutable values, one per noun. The API renders them."""

from dataclasses import dataclass, field
from typing import Any

from pondstack.domain.causes import Cause
from pondstack.domain.free_buffer import UNSIZED, FreeBuffer
from pondstack.domain.host_sleep import HostSleep
from pondstack.domain.mitigation import MitigationMethod, MitigationState, MitigationTrigger
from pondstack.domain.project_settings import ProjectSettings


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """A pool with its slice counts by state (every SliceState value is a key)."""

    uuid: str
    name: str
    serial: str
    driver: str
    slice_mib: int
    slices_total: int
    state: str
    generation: int
    created_at: float
    hosts: tuple[str, ...] = ()
    slices: dict[str, int] = field(default_factory=dict)
    free_buffer: FreeBuffer = UNSIZED


@dataclass(frozen=True, slots=True)
class SliceRecord:
    """A slice with its consumer, when it has one."""

    pool_uuid: str
    pool_name: str
    index: int
    state: str
    host: str | None
    allocation_uuid: str | None
    consumer_uuid: str | None
    epoch: int
    reason: str
    cause: Cause | None
    changed_at: float


@dataclass(frozen=True, slots=True)
class HostRecord:
    """A host and its agent. `up`: it was heard of within the time limit, judged by the database's clock.

    `tiering`: as pondstack.rpc.wire.Report has it. `lent_mib`: size of the buffers that it lends, `admitted_mib` of
    those that may be borrowed; `guaranteed_mib`, `best_effort_mib`: of those that it borrows. `lend`: what it is to
    lend, as agents tell of their operations, None: nothing.
    `holdings`: what it holds or is to hold for itself, each {"pool_uuid", "purpose", "wanted", "online", "reason"}.
    `tiering_on`: whether an operator wants its kernel to tier, None: as its agent is configured. `sleep`: its newest
    one, open or ended; None: it never slept.
    """

    name: str
    enabled: bool
    disabled_reason: str
    up: bool
    generation: int
    provider_uuid: str | None
    agent_version: str
    agent_epoch: int
    last_heartbeat: float
    heartbeat_age_seconds: float
    created_at: float
    pools: tuple[str, ...] = ()
    pool_mib: int = 0
    fenced: bool = False
    fenced_reason: str = ""
    tiering: dict[str, Any] = field(default_factory=dict)
    lent_mib: int = 0
    admitted_mib: int = 0
    lend: dict[str, Any] | None = None
    guaranteed_mib: int = 0
    best_effort_mib: int = 0
    holdings: tuple[dict[str, Any], ...] = ()
    tiering_on: bool | None = None
    sleep: HostSleep | None = None


@dataclass(frozen=True, slots=True)
class AllocationRecord:
    """An allocation; `state` is the least advanced state of its slices."""

    uuid: str
    consumer_uuid: str
    host: str
    pool_uuid: str
    pool_name: str
    extents: tuple[dict[str, Any], ...]
    slice_mib: int
    pool_mib: int
    guest_mib: int
    project_id: str
    user_id: str
    state: str
    generation: int
    created_at: float
    purpose: str = "guest"


@dataclass(frozen=True, slots=True)
class LenderRecord:
    """A host that lends memory, with its buffer counts by state (every SliceState value is a key).

    `lendable_mib`: how much more it could lend by its newest report, None: it does not say. `operations`: its newest
    lends and reclaims, each {"operation_id", "verb", "state", "mib", "done_mib", "reason"}.
    """

    host: str
    incarnation: str
    kind: str
    buffer_mib: int
    lent_mib: int
    lendable_mib: int | None
    buffers: dict[str, int]
    operations: tuple[dict[str, Any], ...]
    created_at: float


@dataclass(frozen=True, slots=True)
class BufferRecord:
    """A buffer with its consumer, when it has one; pondstack.domain.lending.Buffer tells what the fields mean."""

    lender: str
    incarnation: str
    index: int
    offset_mib: int
    size_mib: int
    kind: str
    state: str
    host: str | None
    allocation_uuid: str | None
    consumer_uuid: str | None
    guaranteed: bool | None
    generation: int
    promised_to: str | None
    leaving: bool
    epoch: int
    reason: str
    cause: Cause | None
    changed_at: float


@dataclass(frozen=True, slots=True)
class ControllerView:
    """A controller. `role`: leader, standby, or down when it is silent; `seen_seconds`: since it was heard of.

    `epoch`: the last one that it led with, 0: none yet; `followed_sequence`: the last operation of the journal that it
    has followed; `lag`: how many there are behind that one; `reached_seconds`: since it last reached itself through the
    message broker, None: it never said so.
    """

    name: str
    holder: str
    role: str
    epoch: int
    started_at: float
    seen_seconds: float
    followed_sequence: int
    lag: int
    reached_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SplitRecord:
    """What an instance was placed with, and why: `source` is the rule or model, or why it fell back to all local.

    `project_id` None: Nova has not told of the instance. `model_version` "": no model decided; `inputs`: what one
    decided from. `corrected_at`: since when a mitigation has taken its pool memory away for good, None: none did.
    """

    instance_uuid: str
    local_mib: int
    pool_mib: int
    source: str
    confidence: float
    reason: str
    created_at: float
    project_id: str | None = None
    model_version: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    corrected_at: float | None = None


@dataclass(frozen=True, slots=True)
class MitigationRecord:
    """A mitigation. `host`: where the guest had its pool memory; `pool_mib`: how much.

    `left_mib`: how much of it is still to be moved; `reason`: why it waits or ended so, "" for nothing to tell;
    `evidence`: what the monitor saw, {} of an operator's. Times in seconds since the epoch, by the database's clock;
    `ended_at` None: it is open.
    """

    uuid: str
    consumer_uuid: str
    host: str
    project_id: str
    method: MitigationMethod
    state: MitigationState
    trigger: MitigationTrigger
    forced: bool
    pool_mib: int
    left_mib: int
    reason: str
    evidence: dict[str, Any]
    created_at: float
    updated_at: float
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class TelemetryRecord:
    """Readings of one metric of a guest. `node` None: of the guest as a whole; `period_seconds` 0: as they came.

    `readings` 0: there is no value, for `reason`.
    """

    metric: str
    node: int | None
    host: str
    taken_at: float
    period_seconds: int
    readings: int
    minimum: float | None
    mean: float | None
    maximum: float | None
    reason: str
    source: str = "measured"


@dataclass(frozen=True, slots=True)
class LeaderRecord:
    """Who writes the ledger. `age_seconds`: since its last renewal, by the database's clock."""

    epoch: int
    holder: str
    age_seconds: float


@dataclass(frozen=True, slots=True)
class ProjectRecord:
    """What an operator set for a project; `updated_at` in seconds since the epoch, None: nothing is set."""

    project_id: str
    settings: ProjectSettings
    updated_at: float | None


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A prediction model without its blob; times in seconds since the epoch.

    `serving`: what the leader noted while it serves, {}: nothing yet.
    """

    version: str
    kind: str
    state: str
    manifest: dict[str, Any]
    sha256: str
    created_at: float
    promoted_at: float | None
    serving: dict[str, Any] = field(default_factory=dict)
