"""The microversions of the API: each entry says what it added. Header: `OpenStack-API-Version: memory X.Y`."""

SERVICE_TYPE = "memory"

VERSIONS: dict[str, str] = {
    "1.0": "pools, slices, hosts, agents, allocations, audits, leader",
    "1.1": "controllers, and the fail-over from one to another; fencing of hosts",
    "1.2": "whether a controller reaches the message broker",
    "1.3": "telemetry of guests",
    "1.4": "how the kernel of a host tiers between local and pool memory",
    "1.5": "memory that hosts lend: lenders and their buffers; have a host lend, or take back",
    "1.6": "the cause of a quarantine, of slices and buffers",
    "1.7": "hosts and pools can be removed",
    "1.8": "the free buffer of a pool: its size, what it was sized by, and its misses",
    "1.9": "what an instance was placed with, and why",
    "1.10": "what a host lends, what of it may be borrowed, and what it waits for",
    "1.11": "slices that a host holds for itself, what an allocation is for, and whether a host is to tier",
    "1.12": "the history of an instance, and its remaining lifetime; where a sample of telemetry comes from",
    "1.13": "prediction models, and which one serves; list what instances were placed with",
    "1.14": "what is set for a project: the default policy of plain flavors, and a cap of pool memory",
    "1.15": "which model decided a split, and from what; the points of Eq. 1 and the budget of models that serve",
    "1.16": "mitigations, and the QoS monitor's decisions; what tenants measure of their servers' performance",
    "1.17": "a fence says which generation of the host is dead",
    "1.18": "loans: who borrows what of whom; what instances have beside local memory; what hosts borrow",
    "1.19": "suspend a host that is empty, which lends its memory while it sleeps, and wake it; how it sleeps",
    "1.20": "consolidation plans: decide, apply, cancel; drain and restore a host; freeze and thaw",
    "1.21": "whether a host's memory is reachable, and an estimate of its power, awake and asleep",
    "1.22": "jobs of the planner: have a cloud's history replayed, cancel, fetch the report",
    "1.23": "limits of consolidation that are set at run time: what stays free, and how many hosts stay awake",
    "1.24": "failures of hosts and pools in what a job of the planner replays",
}

MINIMUM = next(iter(VERSIONS))
MAXIMUM = list(VERSIONS)[-1]
