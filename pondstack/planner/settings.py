"""All parameters of an answer, each with its unit and where its default is from."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pondstack.domain.sizing import STATIC_AUTO_PERCENT
from pondstack.domain.units import DEFAULT_SLICE_MIB, GIB_MIB

ASSUMED = "an assumption: set your own"
NOVA = "Nova's default"
OURS = "pondstack's default"
POLICIES = ("static", "pond", "oracle")
TOPOLOGIES = ("emc", "switch")
SMALL_SLICE_MIB = 128
SMALL_SLICES, NO_BUFFER, EVEN = "small-slices", "no-buffer", "even"
VARIANTS: Mapping[str, str] = {
    SMALL_SLICES: f"slices of {SMALL_SLICE_MIB} MiB",
    NO_BUFFER: "no slices kept free",
    EVEN: "the same share for all servers of one size",
}
"""What could be otherwise with Pond's policy, to find out what keeps it from saving more; see variants.py."""
POSITIVE = ("sockets", "vcpus_per_socket", "dram_step_mib", "slice_mib", "energy_step_seconds", "resamples")


def _of(default: Any, unit: str, text: str, source: str) -> Any:
    return field(default=default, metadata={"unit": unit, "help": text, "source": source})


@dataclass(frozen=True)
class Settings:
    """One set of answers. `fields(Settings)` have unit, help and source as metadata."""

    # What is compared
    seeds: tuple[int, ...] = _of(tuple(range(1, 11)), "", "one replay of a resampled history for each", ASSUMED)
    pool_sockets: tuple[int, ...] = _of((2, 4, 8, 16, 32, 64), "sockets", "CPU sockets of one pool", "Pond, Fig. 21")
    policies: tuple[str, ...] = _of(POLICIES, "", "who decides the splits", "Pond, section 6.5")
    topologies: tuple[str, ...] = _of(("emc",), "", f"of {', '.join(TOPOLOGIES)}", "Pond, Fig. 7 and 8")
    confidence_percent: float = _of(95.0, "%", "of the intervals", "usual")
    resamples: int = _of(2000, "", "of the bootstrap of the intervals", "usual")
    # The cloud
    sockets: int = _of(80, "sockets", "of a cluster at the most; it gets as much of the history as fills it", ASSUMED)
    vcpus_per_socket: int = _of(48, "vCPUs", "that may be sold of a socket, allocation ratio counted", ASSUMED)
    core_utilisation_percent: float = _of(
        85.0, "%", "of all vCPUs, for all but the busiest 1 % of the time", "Pond, Fig. 2"
    )
    dram_gib_per_socket: float = _of(0.0, "GiB", "for stranding; 0: the least that is enough", ASSUMED)
    warmup_percent: float = _of(20.0, "%", "of the history that fills the hosts and counts for nothing", ASSUMED)
    rejected_percent: float = _of(0.1, "%", "of servers that may be rejected for want of memory, pool or not", ASSUMED)
    dram_step_mib: int = _of(256, "MiB", "to which DRAM per socket is searched", ASSUMED)
    pool_shares: tuple[float, ...] = _of((0.5, 0.75, 0.85, 1.0), "", "sizes of pools, times the placed share", ASSUMED)
    # The scheduler
    slice_mib: int = _of(DEFAULT_SLICE_MIB, "MiB", "of one slice", "Pond, section 4.1")
    cpu_weight_multiplier: float = _of(1.0, "", "[filter_scheduler] cpu_weight_multiplier", NOVA)
    ram_weight_multiplier: float = _of(1.0, "", "[filter_scheduler] ram_weight_multiplier", NOVA)
    pool_weight_multiplier: float = _of(1.0, "", "[pondstack] pool_weight_multiplier", OURS)
    buffer_least_slices: int = _of(1, "slices", "[controller] free_buffer_slices", OURS)
    buffer_most_percent: int = _of(10, "%", "[controller] free_buffer_max_percent", OURS)
    offline_ms_per_gib: float = _of(100.0, "ms/GiB", "that a host needs to take memory offline", "Pond, section 4.2")
    # Failures
    host_failures_per_year: float = _of(0.0, "failures", "of the host of a socket; 0: none is replayed", ASSUMED)
    pool_failures_per_year: float = _of(0.0, "failures", "of the device of a pool; 0: none is replayed", ASSUMED)
    repair_hours: float = _of(24.0, "hours", "that what has failed is out of use", ASSUMED)
    # The policies
    static_percent: int = _of(STATIC_AUTO_PERCENT, "%", "of every server", "Pond, section 6.5")
    insensitive_percent: float = _of(30.0, "%", "LI: servers found insensitive, at 182 % latency", "Pond, Finding 5")
    false_positive_percent: float = _of(2.0, "%", "FP: servers found insensitive that are not", "Pond, Finding 5")
    history_percent: float = _of(80.0, "%", "of servers with a history to find that by", "Pond, section 6.1")
    untouched_percent: float = _of(25.0, "%", "UM: memory found untouched", "Pond, Finding 6")
    over_prediction_percent: float = _of(4.0, "%", "OP: servers that touch more than was found", "Pond, Finding 6")
    min_local_percent: int = _of(10, "%", "[model] min_local_percent, of insensitive servers", OURS)
    # The truth where the history does not tell it
    truly_untouched_percent: float = _of(50.0, "%", "median of untouched memory, where unknown", "Pond, section 3.2")
    truly_insensitive_percent: float = _of(43.0, "%", "of servers, at 182 % latency", "Pond, section 3.3")
    truly_insensitive_far_percent: float = _of(37.0, "%", "of servers, at 222 % latency", "Pond, section 3.3")
    load_percent: float = _of(20.0, "%", "mean load of the vCPUs, where unknown", ASSUMED)
    idle_servers_percent: float = _of(
        37.0, "%", "of servers that idle (below oasis_idle_percent), where load is unknown", "GWA-T-12 Bitbrains, Rnd"
    )
    # The slowdown budget
    pdm_percent: float = _of(5.0, "%", "PDM: slowdown that is tolerated", "Pond, section 6.5")
    target_percent: float = _of(98.0, "%", "TP: of servers that keep within the PDM", "Pond, section 6.5")
    exceeding_percent: float = _of(25.0, "%", "of servers that touch pool memory that exceed PDM", "Pond, section 6.5")
    mitigated_percent: float = _of(1.0, "%", "of servers that QoS corrects", "Pond, section 6.4.3")
    # Latency
    local_ns: float = _of(78.0, "ns", "latency of local DRAM", "Pond, section 6.1, Intel")
    cxl_ns: float = _of(70.0, "ns", "that CXL adds without retimer or switch", "Pond, section 2")
    retimer_ns: float = _of(10.0, "ns", "of a retimer in one direction", "Pond, section 4.1")
    switch_ns: float = _of(70.0, "ns", "of a switch, at the least", "Pond, section 4.1")
    # Energy
    power_profile: str = _of("hp", "", "hp or dell", "Zombieland, Table 3")
    host_watts: float = _of(250.0, "W", "of a host at full load", ASSUMED)
    energy_step_seconds: int = _of(3600, "s", "between two consolidations", ASSUMED)
    energy_steps: int = _of(96, "", "consolidations at the most; history after them is left out", ASSUMED)
    gib_per_host: float = _of(0.0, "GiB", "of a host for energy; 0: as much as its vCPUs ask for on average", ASSUMED)
    underload_percent: float = _of(25.0, "%", "[consolidation] underload_percent", OURS)
    overload_percent: float = _of(80.0, "%", "[consolidation] overload_percent", OURS)
    working_set_percent: float = _of(30.0, "%", "of a working set that has to be local", "Zombieland, section 5.2")
    placed_local_percent: float = _of(50.0, "%", "of memory that has to be local at a start", "Zombieland, section 5.1")
    memory_per_cpu: float = _of(2.0, "", "memory demand in the modified history, times CPU demand", "Zombieland, 6.6.2")
    oasis_load_percent: float = _of(20.0, "%", "CPU load below which Oasis empties a host", "Zombieland, 6.6.2")
    oasis_idle_percent: float = _of(1.0, "%", "CPU load below which a server is idle for Oasis", "Zombieland, 6.6.2")
    memory_server_percent: float = _of(40.0, "%", "of a host's power that a memory server takes", "Zombieland, 6.6.2")
    # Money
    overcommit_ratios: tuple[float, ...] = _of((1.0, 1.5, 2.0, 3.0, 4.0), "", "R of DRAM with SSD", "hybrid pool")
    dram_price_per_gib: float = _of(4.875, "$/GiB", "DRAM", "hybrid pool, section III.F")
    ssd_price_per_gib: float = _of(0.16, "$/GiB", "SSD", "hybrid pool, section III.F")
    emc_price: float = _of(400.0, "$", "of an external memory controller of up to 16 sockets", ASSUMED)
    switch_price: float = _of(3000.0, "$", "of a switch of 32 sockets", ASSUMED)
    cable_price: float = _of(50.0, "$", "of the link of one socket, retimers included", ASSUMED)
    emc_watts: float = _of(30.0, "W", "of an external memory controller", ASSUMED)
    switch_watts: float = _of(75.0, "W", "of a switch", ASSUMED)
    dram_watts_per_gib: float = _of(0.1, "W/GiB", "DRAM", ASSUMED)
    energy_price_per_kwh: float = _of(0.12, "$/kWh", "electricity, cooling included", ASSUMED)
    lifetime_years: float = _of(5.0, "years", "over which electricity counts", ASSUMED)

    def __post_init__(self) -> None:
        """Raise ValueError for what cannot be."""
        _check(self)

    @classmethod
    def of_hosts(
        cls, given: Mapping[str, Any], *, number: int, vcpus: int, memory_mib: int, sockets_per_host: int
    ) -> "Settings":
        """Return settings for hosts that an import found, unless what is given says otherwise; raises ValueError.

        `vcpus`, `memory_mib`: of all of the `number` hosts together, as Placement may give them out.
        """
        values = dict(given)
        if number and not values.keys() & {"sockets", "vcpus_per_socket"}:
            sockets = number * sockets_per_host
            values |= {"sockets": sockets, "vcpus_per_socket": max(1, vcpus // sockets)}
            values.setdefault("dram_gib_per_socket", memory_mib / GIB_MIB / sockets)
        return cls(**values)


def _check(settings: Settings) -> None:
    known = {"policies": POLICIES, "topologies": TOPOLOGIES}
    for name, words in known.items():
        wrong = sorted(set(getattr(settings, name)) - set(words))
        if wrong:
            raise ValueError(f"{name}: {', '.join(wrong)} is unknown; use {', '.join(words)}")
    for item in fields(settings):
        value = getattr(settings, item.name)
        if item.metadata["unit"] == "%" and not 0 <= value <= 100:
            raise ValueError(f"{item.name} is {value}; it must be from 0 to 100 %")
    for name in ("host_failures_per_year", "pool_failures_per_year", "repair_hours"):
        if not 0 <= getattr(settings, name) < math.inf:
            raise ValueError(f"{name} is {getattr(settings, name)}; it must be a number, 0 or more")
    if len(settings.seeds) < 1 or len(set(settings.seeds)) != len(settings.seeds):
        raise ValueError("seeds: one or more are needed, each once")
    for name in POSITIVE:
        if getattr(settings, name) < 1:
            raise ValueError(f"{name} is {getattr(settings, name)}; it must be 1 or more")
