"""How a VM's memory is split between local DRAM and pool: features in, split and confidence out.

The `pond:` extra specs are parsed here once, for the API's validators, the request filter and the service alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from pondstack.domain.errors import BadSpec, NotAligned
from pondstack.domain.lending import DEFAULT_BUFFER_MIB
from pondstack.domain.remote_share import DISK_LEGAL, REMOTE_LEGAL
from pondstack.domain.share import static_mib
from pondstack.domain.swap_disk import SWAP_LEGAL
from pondstack.domain.units import DEFAULT_SLICE_MIB

NAMESPACE = "pond:"
STATIC_AUTO_PERCENT = 15
"""Pool share of the static `auto` policy (Pond section 6.5 compares with a static share of 15 % of every VM)."""


PRESENT = "present"
"""Source of a split that the instance has already: it is moved."""
CORRECTED = "corrected"
"""Source of the split of an instance whose pool memory a mitigation has taken away: all local from then on."""


class Fallback(StrEnum):
    """Why a VM is all local although its flavor says otherwise; the source of such a split.

    NO_VIEW: the scheduler never had a view of the controller's. STALE: it has none that is young enough.
    BREAKER_OPEN to MALFORMED: a scheduler of the former release had no answer of the controller
    in time, or none that may be used.
    PINNED: a device or an encryption of the VM pins its memory. UNFIT: its flavor has no pond: specs, and
    flavor or image lay out its memory themselves. ANTI_AFFINITY: members of its group are on all pools.
    NO_ROOM: there was room by the scheduler's view, and no host by Placement. MODEL_BUDGET: the models have hurt, or
    may have hurt, as many instances as they may.
    """

    NO_VIEW = "no_view"
    STALE = "stale"
    BREAKER_OPEN = "breaker_open"
    BUSY = "busy"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    REMOTE_ERROR = "remote_error"
    TRANSPORT = "transport"
    REFUSED = "refused"
    MALFORMED = "malformed"
    OVER_QUOTA = "over_quota"
    QUOTA_UNKNOWN = "quota_unknown"
    PINNED = "pinned"
    UNFIT = "unfit"
    ANTI_AFFINITY = "anti_affinity"
    NO_ROOM = "no_room"
    MODEL_BUDGET = "model_budget"


NO_SPLIT = frozenset(
    {
        Fallback.NO_VIEW,
        Fallback.STALE,
        Fallback.BREAKER_OPEN,
        Fallback.BUSY,
        Fallback.TIMEOUT,
        Fallback.UNAVAILABLE,
        Fallback.REMOTE_ERROR,
        Fallback.TRANSPORT,
        Fallback.REFUSED,
        Fallback.MALFORMED,
    }
)
"""The reasons for want of a split that may be used: time, staleness, no view. The others are decisions."""


class Policy(StrEnum):
    """Who decides the split: the service, the flavor, or nobody (all local, guaranteed)."""

    AUTO = "auto"
    FIXED = "fixed"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class PondSpecs:
    """The parsed `pond:` extra specs of a flavor. `pdm` is the tolerated slowdown in percent (Pond section 4.4).

    `remote_mib`: of its memory, beside any pool share, what is borrowed from other hosts (Zombieland section 4.5).
    `disk_mib`: of its memory, what is on its host's disk alone. `swap_mib`: beside its memory, a disk to swap to, which
    lies with other hosts as far as there is room.
    """

    policy: Policy = Policy.LOCAL
    pool_mib: int = 0
    max_pool_percent: int = 100
    pdm_percent: int = 5
    remote_mib: int = 0
    swap_mib: int = 0
    disk_mib: int = 0

    @property
    def all_local(self) -> bool:
        """Whether all of a guest's memory is its host's own, guaranteed."""
        return self.policy is Policy.LOCAL and not self.remote_mib


@dataclass(frozen=True, slots=True)
class Features:
    """What is known of a VM before it starts. `history` fields come with prediction.

    `resized`: it has another flavor so far, and the split that it has says nothing.
    """

    instance_uuid: str
    memory_mib: int
    vcpus: int
    project_id: str = ""
    user_id: str = ""
    flavor_name: str = ""
    image_uuid: str = ""
    specs: PondSpecs = PondSpecs()
    resized: bool = False


@dataclass(frozen=True, slots=True)
class Split:
    """A decision: `local_mib + pool_mib` is all of the VM's memory. `confidence` is 0 to 1; 1 for a rule.

    What the flavor has as remote memory is part of `local_mib` here: it is a part of the same node of the guest
    (pondstack.domain.remote_share).

    `model_version`: of the model that decided, "" where none did; `inputs`: what it decided from, as JSON types.
    """

    local_mib: int
    pool_mib: int
    source: str
    confidence: float
    reason: str
    model_version: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)


def corrected_split(memory_mib: int) -> Split:
    """Return the split of an instance whose pool memory a mitigation has taken away."""
    reason = "all local: a mitigation has taken its pool memory away for good"
    return Split(memory_mib, 0, source=CORRECTED, confidence=1.0, reason=reason)


class SplitPredictor(Protocol):
    """What decides an `auto` split; the static rule now, models later."""

    def predict(self, features: Features, slice_mib: int) -> Split:
        """Return the split; pool_mib is a multiple of `slice_mib` and leaves local memory."""


LEGAL = {
    "policy": "one of auto, fixed, local",
    "pool_mb": f"a positive multiple of {DEFAULT_SLICE_MIB} (MiB), less than the flavor's RAM; with policy fixed only",
    "max_pool_percent": "an integer from 0 to 100; with policy auto only",
    "pdm": "an integer from 1 to 100 (percent of slowdown that is tolerated); with policy auto only",
    "remote_mb": REMOTE_LEGAL,
    "disk_mb": DISK_LEGAL,
    "swap_mb": SWAP_LEGAL,
}


def given_specs(extra_specs: Mapping[str, str] | None) -> PondSpecs:
    """Return the `pond:` specs of a guest that has its flavor already; all local where they are wrong, or none."""
    try:
        return parse_specs(extra_specs or {}) or PondSpecs()
    except BadSpec:
        return PondSpecs()


def parse_specs(extra_specs: Mapping[str, str]) -> PondSpecs | None:
    """Return the parsed `pond:` specs, None when there are none.

    Raises BadSpec (unknown key, malformed or contradictory value; the text shows the legal form).
    """
    mine = {key[len(NAMESPACE) :]: value for key, value in extra_specs.items() if key.startswith(NAMESPACE)}
    if not mine:
        return None
    for key in mine:
        if key not in LEGAL:
            raise BadSpec(f"pond:{key} is unknown; legal: {', '.join('pond:' + name for name in LEGAL)}")
    policy = _policy(mine)
    _refuse_contradictions(policy, mine)
    pool_mib = _integer(mine, "pool_mb", 0, low=1)
    if pool_mib % DEFAULT_SLICE_MIB:
        raise BadSpec(f"pond:pool_mb={pool_mib} is wrong; it must be {LEGAL['pool_mb']}")
    remote_mib = _integer(mine, "remote_mb", 0, low=1)
    if remote_mib % DEFAULT_BUFFER_MIB:
        raise BadSpec(f"pond:remote_mb={remote_mib} is wrong; it must be {REMOTE_LEGAL}")
    disk_mib = _integer(mine, "disk_mb", 0, low=1)
    if disk_mib % DEFAULT_BUFFER_MIB or (disk_mib and not remote_mib):
        raise BadSpec(f"pond:disk_mb={disk_mib} is wrong; it must be {DISK_LEGAL}")
    swap_mib = _integer(mine, "swap_mb", 0, low=1)
    if swap_mib % DEFAULT_BUFFER_MIB:
        raise BadSpec(f"pond:swap_mb={swap_mib} is wrong; it must be {SWAP_LEGAL}")
    return PondSpecs(
        policy=policy,
        pool_mib=pool_mib,
        max_pool_percent=_integer(mine, "max_pool_percent", 100, low=0, high=100),
        pdm_percent=_integer(mine, "pdm", 5, low=1, high=100),
        remote_mib=remote_mib,
        swap_mib=swap_mib,
        disk_mib=disk_mib,
    )


def _policy(mine: Mapping[str, str]) -> Policy:
    """Return who decides the pool share. With remote memory or a swap disk alone nobody does: it has none."""
    if set(mine) <= {"remote_mb", "disk_mb", "swap_mb"}:
        return Policy.LOCAL
    if "policy" not in mine:
        raise BadSpec(f"pond:policy is missing beside pond:{min(mine)}; it must be {LEGAL['policy']}")
    try:
        return Policy(mine["policy"])
    except ValueError:
        raise BadSpec(f"pond:policy={mine['policy']!r} is wrong; it must be {LEGAL['policy']}") from None


def _refuse_contradictions(policy: Policy, mine: Mapping[str, str]) -> None:
    allowed: dict[Policy, set[str]] = {
        Policy.FIXED: {"pool_mb", "remote_mb"},
        Policy.AUTO: {"max_pool_percent", "pdm", "remote_mb"},
        Policy.LOCAL: set() if "policy" in mine else {"remote_mb", "disk_mb"},
    }
    for key in sorted(set(mine) - {"policy", "swap_mb"} - allowed[policy]):
        raise BadSpec(f"pond:{key} contradicts pond:policy={policy}; pond:{key} must be {LEGAL[key]}")
    if policy is Policy.FIXED and "pool_mb" not in mine:
        raise BadSpec(f"pond:policy=fixed needs pond:pool_mb, {LEGAL['pool_mb']}")


def _integer(mine: Mapping[str, str], key: str, default: int, *, low: int, high: int | None = None) -> int:
    if key not in mine:
        return default
    text = mine[key]
    if not (text.isascii() and text.isdigit()) or int(text) < low or (high is not None and int(text) > high):
        raise BadSpec(f"pond:{key}={text!r} is wrong; it must be {LEGAL[key]}")
    return int(text)


class StaticShare:
    """The documented static `auto` policy: a fixed share of every VM, rounded down to whole slices.

    Pond section 6.5 uses it as its strawman. VMs too small for one slice stay all local.
    """

    def __init__(self, percent: int = STATIC_AUTO_PERCENT) -> None:
        self._percent = percent

    def predict(self, features: Features, slice_mib: int) -> Split:
        """Return the static split."""
        percent = min(self._percent, features.specs.max_pool_percent)
        pool_mib = static_mib(features.memory_mib, percent, slice_mib)
        return Split(
            features.memory_mib - pool_mib,
            pool_mib,
            source="static",
            confidence=1.0,
            reason=f"static policy: {percent} % of {features.memory_mib} MiB, rounded down to {slice_mib} MiB slices",
        )


def decide(features: Features, predictor: SplitPredictor, slice_mib: int = DEFAULT_SLICE_MIB) -> Split:
    """Return the split of a VM by its policy.

    Raises BadSpec when a fixed share leaves no local memory, NotAligned when it is no whole number of slices.
    """
    specs, memory_mib = features.specs, features.memory_mib
    if specs.policy is Policy.LOCAL:
        return Split(memory_mib, 0, source="local", confidence=1.0, reason="pond:policy=local")
    if specs.policy is Policy.AUTO:
        return predictor.predict(features, slice_mib)
    if specs.pool_mib % slice_mib:
        raise NotAligned(f"pond:pool_mb={specs.pool_mib} is no multiple of the rack's slice size, {slice_mib} MiB")
    if specs.pool_mib >= memory_mib:
        raise BadSpec(
            f"pond:pool_mb={specs.pool_mib} leaves no local memory in a flavor of {memory_mib} MiB; "
            f"it must be {LEGAL['pool_mb']}"
        )
    return Split(
        memory_mib - specs.pool_mib,
        specs.pool_mib,
        source="fixed",
        confidence=1.0,
        reason=f"the flavor fixes {specs.pool_mib} MiB of pool memory",
    )
