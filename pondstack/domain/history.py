"""What is known of an instance's life, for training and for the features of the next one. Pure."""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pondstack.domain.telemetry import Source

_VARIABLE = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\d+")
_KEY_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """What Nova says of an instance at one moment, `changed_at` by its clock. Times are UTC; "" is unknown.

    `name` never leaves this value but as name_key(). `deleted_at` None: it was not deleted then.
    """

    instance_uuid: str
    project_id: str
    flavor_name: str
    memory_mib: int
    vcpus: int
    image_uuid: str
    image_os: str
    zone: str
    name: str
    created_at: datetime
    changed_at: datetime
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Lifetime:
    """One instance, joined with its telemetry. Times are UTC; "" is unknown.

    `name_key`: hash of the name's pattern, never the name. `untouched_mib`: least memory that its guest had never
    touched so far, None where nothing was observed. `coverage`: share of its life that was observed, 0 to 1.
    `sized_at`: since when it has this flavor, None: since it was created; label and coverage are of the time since.
    `source`: of the label, synthetic as soon as one of its samples was.
    `marks`: what the label was at some moments of a long life, the oldest first: MiB by time; () where nobody asked.
    `judged`: when the QoS monitor found that it uses pool memory that it was not to use, and what it had left untouched
    by then, in MiB; None: it did not. A guest touches no less later, so that this label counts however young the VM is
    and however little of its life was observed; it outlives the pool memory that a mitigation takes away.
    """

    instance_uuid: str
    project_id: str
    flavor_name: str
    memory_mib: int
    vcpus: int
    image_os: str
    zone: str
    name_key: str
    created_at: datetime
    deleted_at: datetime | None
    untouched_mib: int | None
    coverage: float
    sized_at: datetime | None = None
    source: str = Source.MEASURED
    marks: tuple[tuple[datetime, int], ...] = ()
    judged: tuple[datetime, int] | None = None

    def trained_with(self, min_coverage: float) -> "Lifetime":
        """Return it without its label where less than this share of its life was observed: then the label is none."""
        return self if self.judged or self.coverage >= min_coverage else replace(self, untouched_mib=None)


@dataclass(frozen=True, slots=True)
class NodeLabel:
    """The least untouched memory that was seen of a node of an instance, or of all of it (`node` None).

    `observed_seconds`: for how long it was looked at, after the first look.
    """

    node: int | None
    untouched_mib: int
    observed_seconds: int
    observed_until: datetime
    source: Source


@dataclass(frozen=True, slots=True)
class GuestCounters:
    """The means of an instance's counters since it has its flavor, by metric; what was not measured is not there.

    `source`: synthetic as soon as one of its samples was.
    """

    instance_uuid: str
    project_id: str
    memory_mib: int
    vcpus: int
    counters: Mapping[str, float] = field(default_factory=dict)
    source: str = Source.MEASURED


@dataclass(frozen=True, slots=True)
class Decided:
    """An instance that a model decided, and what was seen of it since.

    `untouched_mib`: least memory that its guest had never touched, None: nobody looked. `whole_life`: it has ended, and
    enough of its life was observed to judge it.
    """

    instance_uuid: str
    model_version: str
    source: str
    pool_mib: int
    pdm_percent: float
    untouched_mib: int | None
    observed_seconds: int
    whole_life: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """Which instances of the history: those that were there at some moment from `since` on and before `until`.

    Of an instance that ended later, the end is not known yet; a label is what was seen until it is read, so that only
    an `until` of now knows nothing of the future. `min_coverage`: labels under it are None. `limit`: only the newest.
    `marks`: with what the labels were by each week, which takes a look at weeks of telemetry.
    """

    since: datetime
    until: datetime
    project_id: str | None = None
    flavor_name: str | None = None
    min_coverage: float = 0.0
    limit: int | None = None
    marks: bool = False


def untouched_shares(lifetimes: Iterable[Lifetime]) -> list[float]:
    """Return what share of its memory each instance with a label never touched, 0 to 1."""
    return [item.untouched_mib / item.memory_mib for item in lifetimes if item.untouched_mib is not None]


def name_key(name: str, salt: str) -> str:
    """Return the hash of a name without its numbers and UUIDs, so that web-1 and web-2 are alike; "" of no name."""
    pattern = _VARIABLE.sub("#", name.strip().lower())
    if not pattern:
        return ""
    return hmac.new(salt.encode(), pattern.encode(), hashlib.sha256).hexdigest()[:_KEY_CHARACTERS]


def coverage(observed_seconds: float, begun: float, first: float, end: float, gap_seconds: float) -> float:
    """Return the share of the time from `begun` to `end` that was observed, 0 to 1; all in seconds.

    The first look counts for what was before, up to `gap_seconds`: it sees all that was touched by then.
    """
    life = end - begun
    if life <= 0:
        return 0.0
    lead = first - begun if 0 <= first - begun <= gap_seconds else 0.0
    return min(1.0, max(0.0, (observed_seconds + lead) / life))


def moment(seconds: float) -> datetime:
    """Return seconds since the epoch as a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return the nearest-rank percentile; None of nothing."""
    if not values:
        return None
    rank = -(-len(values) * percent // 100)
    return sorted(values)[max(int(rank) - 1, 0)]
