"""Whatever Placement has: the plan that is decided from it claims no more of any class than Placement would let it."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import futurist
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pondstack.clients.nova import ComputeService
from pondstack.clients.placement import Inventory
from pondstack.clients.servers import PlacedServer
from pondstack.consolidation.decision.decider import decide
from pondstack.consolidation.decision.settings import Settings
from pondstack.controller.consolidation.inputs import Inputs
from pondstack.db.store.host_telemetry import Told
from pondstack.domain.plan import ActionKind, Afterwards
from pondstack.domain.rack import HostReport, RackView

CLASSES = ("VCPU", "MEMORY_MB", "CUSTOM_RACK_SEAT")
EAGER = Settings(underload_percent=100.0, overload_percent=100.0, least_awake=0, afterwards=Afterwards.KEEP)
Cloud = tuple[dict[str, dict[str, Inventory]], dict[str, tuple[str, dict[str, int]]]]


def record(total: int, reserved: int, ratio: float) -> Inventory:
    return Inventory(total, reserved, 1, 1, total, ratio)


RATIOS = st.one_of(st.sampled_from((0.29, 0.7, 1.0, 1.1, 1.5, 4.0, 16.0)), st.floats(0.1, 20.0))


@st.composite
def clouds(draw) -> Cloud:
    hosts = {}
    for number in range(draw(st.integers(2, 4))):
        totals = {name: draw(st.integers(1, 100)) for name in draw(st.sets(st.sampled_from(CLASSES), min_size=2))}
        hosts[f"h{number}"] = {
            name: record(total, draw(st.integers(0, total)), draw(RATIOS)) for name, total in totals.items()
        }
    servers = {}
    for number in range(draw(st.integers(1, 10))):
        claim = {name: draw(st.integers(1, 40)) for name in draw(st.sets(st.sampled_from(CLASSES), min_size=1))}
        servers[f"s{number}"] = (draw(st.sampled_from(sorted(hosts))), claim)
    return hosts, servers


def read(cloud: Cloud) -> Any:
    """Return the snapshot of a cloud whose hosts have CPUs and memory in plenty."""
    hosts, servers = cloud
    claims = {name: {uuid: claim for uuid, (host, claim) in servers.items() if host == name} for name in hosts}
    nova = SimpleNamespace(
        compute_services=lambda: [ComputeService(f"id-{name}", name, True, "", True) for name in hosts],
        placed=lambda: [PlacedServer(uuid, host, "", True) for uuid, (host, _) in servers.items()],
        server_groups=list,
    )
    placement = SimpleNamespace(host_provider=str, inventories=hosts.get, allocations_of=claims.get)
    told = {"load_percent": 1.0, "cpus": 1000.0, "memory_mib": 1e9, "free_mib": 1e9}
    telemetry = SimpleNamespace(
        hosts=lambda: {name: {key: [Told(value, 1.0, "measured")] for key, value in told.items()} for name in hosts},
        guests=lambda _metrics, _seconds: {uuid: {"used_cpus": Told(0.1, 1.0, "measured")} for uuid in servers},
    )
    rack = RackView(hosts={name: HostReport(name, True, "", None, 1.0) for name in hosts})
    history = SimpleNamespace(complete_since=lambda: None)
    sources: Any = (nova, placement, telemetry, lambda: rack, history, futurist.SynchronousExecutor())
    return Inputs(*sources).read()[0]


@settings(max_examples=150, deadline=None)
@given(clouds())
@example(({"h0": {"VCPU": record(29, 0, 1.0)}, "h1": {"VCPU": record(100, 0, 0.29)}}, {"s0": ("h0", {"VCPU": 29})}))
def test_a_plan_claims_no_more_than_placement_has(cloud):
    """The claim at the source stays until a migration has ended: nothing is freed while a plan is carried out."""
    hosts, servers = cloud
    used = {name: Counter[str]() for name in hosts}
    for host, claim in servers.values():
        used[host].update(claim)
    for action in decide(read(cloud), EAGER).actions:
        if action.kind is ActionKind.MIGRATE:
            for name, amount in servers[action.server_uuid][1].items():
                item = hosts[action.destination].get(name)
                assert item is not None, f"{action.destination} has no {name}"
                used[action.destination][name] += amount
                assert used[action.destination][name] <= (item.total - item.reserved) * item.allocation_ratio


def test_servers_do_move_by_such_plans():
    """What is tested above is no plan that does nothing."""
    cloud = ({name: {"VCPU": record(10, 1, 1.0)} for name in ("h0", "h1")}, {"s0": ("h0", {"VCPU": 3})})
    assert [item.kind for item in decide(read(cloud), EAGER).actions][-1] is ActionKind.MIGRATE
