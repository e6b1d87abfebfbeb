"""What the planner answers: plain numbers with their intervals and seeds; dataclasses.asdict makes JSON of it."""

from dataclasses import dataclass

from pondstack.planner.settings import Settings


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its interval (bootstrap); `by_seed` has one value for each of the answers' seeds."""

    mean: float
    low: float
    high: float
    by_seed: tuple[float, ...]


@dataclass(frozen=True)
class Source:
    """What was replayed. `assumed`: what the history does not tell, and what was taken instead."""

    name: str
    origin: str
    synthetic: bool
    servers: int
    dropped_rows: int
    seconds: int
    sockets: tuple[int, ...]
    assumed: tuple[str, ...]


@dataclass(frozen=True)
class Stranding:
    """Memory that is free on sockets that have no vCPU left for any server, in percent of all DRAM (Pond, Fig. 2).

    Of hourly moments at which from_percent up to to_percent of the vCPUs are sold, all seeds together.
    """

    from_percent: float
    to_percent: float
    moments: int
    median_percent: float
    p5_percent: float
    p95_percent: float


@dataclass(frozen=True)
class Dram:
    """DRAM that is needed with pools, against the least uniform DRAM per socket with the same rejections.

    `pool_gib`: of all pools of the cluster. `pool_share_percent`: of the memory that was placed, what was really on
    pools (whole slices). `fallback_percent`: servers that were placed all local since no pool had room.
    `extra_latency_ns`: over local DRAM.
    """

    policy: str
    topology: str
    pool_sockets: int
    saved_percent: Estimate
    gib_per_socket: Estimate
    baseline_gib_per_socket: Estimate
    local_gib_per_socket: Estimate
    pool_gib: Estimate
    pool_share_percent: Estimate
    fallback_percent: Estimate
    rejected_percent: Estimate
    extra_latency_ns: float
    latency_percent: float


@dataclass(frozen=True)
class SizeClass:
    """What a policy puts on pools of servers of over half of `up_to_gib` and up to that, all seeds together.

    `wanted_percent`: whole slices, of their memory by time; `pooled_percent`: servers that get any. Shares are of all
    servers and of all memory by time.
    """

    policy: str
    up_to_gib: float
    servers_percent: float
    memory_percent: float
    wanted_percent: float
    pooled_percent: float


@dataclass(frozen=True)
class Counterfactual:
    """What a policy would save if one thing were otherwise; `gained_percent`: beyond what it does save, by seed."""

    policy: str
    topology: str
    pool_sockets: int
    variant: str
    saved_percent: Estimate
    gained_percent: Estimate
    pool_share_percent: Estimate


@dataclass(frozen=True)
class Slowdown:
    """The slowdown budget: servers that exceed the PDM, after QoS, against 100 - TP (Pond, sections 4.4, 6.4.3, 6.5).

    `touching_percent`: servers that touch pool memory and were not meant to.
    """

    policy: str
    topology: str
    pool_sockets: int
    touching_percent: Estimate
    exceeding_percent: Estimate
    budget_percent: float
    within_budget: bool


@dataclass(frozen=True)
class Offlining:
    """How fast memory has to go offline so that no start waits, in GiB/s by percentile of starts (Pond, Finding 10).

    `buffer_slices`: what production keeps free of one pool meanwhile.
    """

    policy: str
    topology: str
    pool_sockets: int
    p99_99: Estimate
    p99_999: Estimate
    buffer_slices: Estimate


@dataclass(frozen=True)
class Failures:
    """What failures of hosts and of pool devices do: a pool's ends the servers that have memory there (Pond, 4.2).

    `servers_per_host`, `servers_per_pool`: that one failure ends, mean over time. `interruptions`: of servers, per
    1,000 server-years, by the rates of the settings; `without_pool`: by hosts alone. `restarts`: in the replay, of
    which `not_restarted_percent` found no host.
    """

    policy: str
    topology: str
    pool_sockets: int
    servers_per_host: Estimate
    servers_per_pool: Estimate
    interruptions: Estimate
    without_pool: float
    restarts: Estimate
    not_restarted_percent: Estimate


@dataclass(frozen=True)
class Energy:
    """Energy with a way to consolidate, and what it saves against none (Zombieland, Fig. 10). Estimates by Table 3.

    `history`: "original", or "modified" (memory demand is a multiple of CPU demand). `system`: none, neat, oasis or
    zombie. `memory_machines`: that keep memory of others (Oasis's memory servers, zombies); `idle_percent`: of servers.
    """

    history: str
    profile: str
    system: str
    saved_percent: Estimate
    kwh: Estimate
    awake_hosts: Estimate
    memory_machines: Estimate
    idle_percent: Estimate


@dataclass(frozen=True)
class Tiering:
    """Total cost of memory with an SSD tier, against DRAM alone (hybrid pool, Eq. 1 and 2). It needs no seed."""

    overcommit_ratio: float
    cost: float
    saved_percent: float


@dataclass(frozen=True)
class Money:
    """What a pool saves and costs over its lifetime, in $ per socket. `verdict`: "buy", "do not buy", "undecided".

    undecided: the interval of the net saving includes zero.
    """

    policy: str
    topology: str
    pool_sockets: int
    dram_saved: Estimate
    hardware_cost: float
    energy_cost: Estimate
    net_saved: Estimate
    verdict: str


@dataclass(frozen=True)
class Answers:
    """All answers to one trace. `verdict`: in one sentence."""

    source: Source
    settings: Settings
    seeds: tuple[int, ...]
    stranding: tuple[Stranding, ...]
    dram: tuple[Dram, ...]
    size_classes: tuple[SizeClass, ...]
    counterfactuals: tuple[Counterfactual, ...]
    slowdown: tuple[Slowdown, ...]
    offlining: tuple[Offlining, ...]
    failures: tuple[Failures, ...]
    energy: tuple[Energy, ...]
    tiering: tuple[Tiering, ...]
    money: tuple[Money, ...]
    verdict: str
