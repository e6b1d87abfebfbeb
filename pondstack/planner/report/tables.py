"""Tables of the report: each figure with its interval."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pondstack.planner.report.text import estimate, number

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Names of columns, and rows of text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def _of(key: str, unit: str = "", digits: int = 1) -> Callable[[Item], str]:
    return lambda item: estimate(item[key], unit, digits)


def _number(key: str, digits: int = 1) -> Callable[[Item], str]:
    return lambda item: number(item[key], digits)


def _word(key: str) -> Callable[[Item], str]:
    return lambda item: str(item[key])


def _seeds(item: Item) -> str:
    return ", ".join(number(value) for value in item["saved_percent"]["by_seed"])


def _yes(key: str) -> Callable[[Item], str]:
    return lambda item: "yes" if item[key] else "no"


_POOL = {"policy": _word("policy"), "topology": _word("topology"), "sockets": _word("pool_sockets")}
COLUMNS: Mapping[str, Mapping[str, Callable[[Item], str]]] = {
    "stranding": {
        "vCPUs sold, %": lambda item: f"{item['from_percent']:g} to {item['to_percent']:g}",
        "moments": _word("moments"),
        "stranded, median %": _number("median_percent"),
        "5th percentile %": _number("p5_percent"),
        "95th percentile %": _number("p95_percent"),
    },
    "dram": {
        **_POOL,
        "DRAM saved": _of("saved_percent", "%"),
        "GiB per socket": _of("gib_per_socket"),
        "without a pool": _of("baseline_gib_per_socket"),
        "effective pool share": _of("pool_share_percent", "%"),
        "placed all local": _of("fallback_percent", "%", 2),
        "rejected": _of("rejected_percent", "%", 2),
        "pool latency": lambda item: f"+{item['extra_latency_ns']:g} ns, {item['latency_percent']:.0f} %",
        "saved by seed, %": _seeds,
    },
    "counterfactuals": {
        **_POOL,
        "if": _word("variant"),
        "DRAM saved": _of("saved_percent", "%"),
        "gained by it": _of("gained_percent", "points"),
        "effective pool share": _of("pool_share_percent", "%"),
    },
    "size_classes": {
        "policy": _word("policy"),
        "up to, GiB": _number("up_to_gib", 0),
        "of servers, %": _number("servers_percent"),
        "of memory, %": _number("memory_percent"),
        "wanted on pools, %": _number("wanted_percent"),
        "servers that get any, %": _number("pooled_percent"),
    },
    "slowdown": {
        **_POOL,
        "touch pool memory": _of("touching_percent", "%", 2),
        "slower than the PDM": _of("exceeding_percent", "%", 2),
        "budget": lambda item: f"{item['budget_percent']:g} %",
        "within it": _yes("within_budget"),
    },
    "offlining": {
        **_POOL,
        "99.99 % of starts, GiB/s": _of("p99_99", "", 2),
        "99.999 %, GiB/s": _of("p99_999", "", 2),
        "slices kept free": _of("buffer_slices"),
    },
    "failures": {
        **_POOL,
        "servers by host": _of("servers_per_host"),
        "servers by pool": _of("servers_per_pool"),
        "interruptions": _of("interruptions"),
        "without a pool": _number("without_pool"),
        "restarts replayed": _of("restarts"),
        "found no host": _of("not_restarted_percent", "%", 2),
    },
    "energy": {
        "history": _word("history"),
        "profile": _word("profile"),
        "system": _word("system"),
        "saved": _of("saved_percent", "%"),
        "kWh": _of("kwh"),
        "hosts awake": _of("awake_hosts"),
        "machines that keep memory of others": _of("memory_machines"),
        "idle servers": _of("idle_percent", "%"),
    },
    "tiering": {
        "R": lambda item: f"{item['overcommit_ratio']:g}",
        "cost": _number("cost", 2),
        "saved, %": _number("saved_percent"),
    },
    "money": {
        **_POOL,
        "DRAM saved, $": _of("dram_saved"),
        "hardware, $": _number("hardware_cost"),
        "energy, $": _of("energy_cost"),
        "net, $ per socket": _of("net_saved"),
        "verdict": _word("verdict"),
    },
}


def table(kind: str, items: Sequence[Item]) -> Table:
    """Return the table of one kind of answers."""
    columns = COLUMNS[kind]
    return Table(tuple(columns), tuple(tuple(show(item) for show in columns.values()) for item in items))
