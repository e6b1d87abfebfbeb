"""The cloud at one moment, as a decision takes it: hosts, servers, and how old each figure is. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pondstack.domain.telemetry import Source

Amounts = Mapping[str, int]
"""Of each of Placement's resource classes, in the class's own unit."""
Question = tuple[tuple[tuple[str, int], ...], tuple[str, ...]]
"""What Placement is asked for a server: its claim, and the traits that its flavor wants."""


MEMORY = "MEMORY_MB"
"""What every server of Nova's claims."""


class HostState(StrEnum):
    """AWAKE: it may give and take servers. ASLEEP: it lends memory and may be woken. CLOSED: it takes no part."""

    AWAKE = "awake"
    ASLEEP = "asleep"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure, and the seconds since it was taken."""

    value: float
    age_seconds: float
    source: str = Source.MEASURED


@dataclass(frozen=True, slots=True)
class HostView:
    """One host. `load`: its CPU load over time in percent, the newest last, taken `load_age_seconds` ago.

    `cpus`: how many it has; None: unknown. `free_mib`: memory that is free by its kernel. `capacity`, `used`: what
    Placement lets be claimed of it (ratio and reserve counted) and what is claimed; None: Placement does not know it.
    `lent_mib`: what others have borrowed of it; `lends_mib`: what it lends in all; `most_mib`: what it may (None: all).
    `closed`: why it takes no part, as its state says. `provider_uuid`: its
    resource provider.
    """

    name: str
    state: HostState = HostState.AWAKE
    cpus: float | None = None
    load: tuple[float, ...] = ()
    load_age_seconds: float = 0.0
    load_source: str = Source.MEASURED
    memory_mib: Reading | None = None
    free_mib: Reading | None = None
    capacity: Amounts | None = None
    used: Amounts = field(default_factory=dict)
    lent_mib: int = 0
    lends_mib: int = 0
    most_mib: float | None = None
    closed: str = ""
    provider_uuid: str = ""

    def claimable(self, name: str) -> int:
        """Return what may be claimed once it is awake: what a sleeper lends, Placement has again then."""
        amount = (self.capacity or {}).get(name, 0)
        return amount + self.lends_mib if name == MEMORY and self.state is HostState.ASLEEP else amount


@dataclass(frozen=True, slots=True)
class VmView:
    """One server. `claim`: what it holds in Placement of its host. `local_mib`: its memory on the host itself.

    `used_cpus`: CPUs that it keeps busy. `working_set_mib`: memory that it uses again and again. `extendable`: what of
    its memory does not fit may be elsewhere, since a pager serves it. `remaining_seconds`: how long it is predicted to
    live on (median), None: longer than what is known, or unknown. `fixed`: why it cannot be moved now, "": it can be.
    `traits`: what its flavor wants of a host's traits; None: unknown.
    """

    uuid: str
    host: str
    local_mib: int
    claim: Amounts
    used_cpus: Reading | None = None
    working_set_mib: Reading | None = None
    extendable: bool = False
    remaining_seconds: float | None = None
    fixed: str = ""
    traits: tuple[str, ...] | None = ()

    @property
    def question(self) -> Question | None:
        """What Placement has to be asked before it is moved; None: what that is, is unknown."""
        return None if self.traits is None else (tuple(sorted(self.claim.items())), self.traits)


@dataclass(frozen=True, slots=True)
class Group:
    """A server group: `together`: on one host; else each on another one."""

    uuid: str
    members: frozenset[str]
    together: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All of it. `candidates`: by server the hosts that it may move to; not in it: any. `groups`: by member.

    `unplaced`: servers for which Nova found no host; hosts are only woken for these then.
    """

    hosts: Mapping[str, HostView]
    servers: tuple[VmView, ...]
    candidates: Mapping[str, frozenset[str]] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    unplaced: tuple[VmView, ...] = ()
