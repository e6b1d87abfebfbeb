"""What users of OpenStack Watcher complain of, each with a test; see contributor/watcher-complaints.md."""

import configparser
import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import futurist
import pytest

from pondstack.clients.nova import ComputeService
from pondstack.clients.placement import Inventory
from pondstack.clients.servers import PlacedServer
from pondstack.consolidation.decision.decider import decide
from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import Reading, Snapshot
from pondstack.controller.consolidation.decisions import Decisions
from pondstack.controller.consolidation.inputs import Inputs
from pondstack.db.store.host_telemetry import Told
from pondstack.domain.plan import Afterwards, PlanKind, PlanState, PlanTrigger
from pondstack.domain.power import MODES
from pondstack.domain.rack import HostReport, RackView
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore

from .decision.builders import host, server, snapshot, zombie

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = Settings(afterwards=Afterwards.KEEP)
STALE = Reading(1.0, SETTINGS.metric_seconds + 1)


def destinations(found: Any) -> list[str]:
    return [item.destination for item in found.actions if item.destination]


@pytest.mark.parametrize("resource", ["VCPU", "MEMORY_MB"])
def test_bug_2156473_no_host_is_packed_beyond_its_allocations(resource: str) -> None:
    """Its servers use next to nothing of what they claim: that is no room."""
    idle = [server(f"s{number}", "a", cpus=0.01, mib=1000, claim={resource: 10}) for number in range(4)]
    tight = host("b", 30.0, capacity={resource: 100}, used={resource: 70})
    assert destinations(decide(snapshot(host("a", 1.0), tight, *idle[:3]), SETTINGS)) == ["b"] * 3
    found = decide(snapshot(host("a", 1.0), tight, *idle), SETTINGS)
    assert found.actions == ()
    assert "fits on no other host" in found.left_out["a"]


def _inputs(free_mib: float) -> Snapshot:
    """Return what is read of two hosts of 100,000 MiB and one server of 1,024 MiB on a."""
    vm = str(uuid4())
    services = [ComputeService(f"id-{name}", name, True, "", True) for name in "ab"]
    inventory = {"MEMORY_MB": Inventory(100_000, 0, 1, 1, 100_000)}
    claims: dict[str, Any] = {"a": {vm: {"MEMORY_MB": 1024}}, "b": {}}
    amounts = {"load_percent": 10.0, "cpus": 10.0, "memory_mib": 100_000.0}
    free = {"a": 90_000.0, "b": free_mib}
    told = {
        name: {key: [Told(value, 0.0, "measured")] for key, value in {**amounts, "free_mib": free[name]}.items()}
        for name in "ab"
    }
    nova = SimpleNamespace(
        compute_services=lambda: services, placed=lambda: [PlacedServer(vm, "a", "", True)], server_groups=lambda: []
    )
    placement = SimpleNamespace(
        host_provider=lambda name: name, inventories=lambda _uuid: inventory, allocations_of=claims.__getitem__
    )
    guests = {vm: {"used_cpus": Told(0.5, 0.0, "measured")}}
    telemetry = SimpleNamespace(hosts=lambda: told, guests=lambda _metrics, _seconds: guests)
    rack = RackView(hosts={name: HostReport(name, True, "", None, 1.0) for name in "ab"})
    history = SimpleNamespace(complete_since=lambda: None)
    sources: Any = (nova, placement, telemetry, lambda: rack, history, futurist.SynchronousExecutor())
    return Inputs(*sources).read()[0]


def test_bug_2113776_memory_is_in_mib_from_the_agent_and_placement_to_the_plan() -> None:
    """By one MiB it fits, or does not: a figure in KiB or bytes anywhere would decide otherwise."""
    assert destinations(decide(_inputs(1024.0), SETTINGS)) == ["b"]
    assert destinations(decide(_inputs(1023.0), SETTINGS)) == []
    found = decide(_inputs(1024.0), replace(SETTINGS, afterwards=Afterwards.LEND))
    assert (found.effect.moved_mib, found.effect.gained_mib) == (1024, 91_024)


def test_bug_2126767_what_was_asked_for_outlives_the_controller_that_took_it() -> None:
    """A plan that nobody had decided when its controller died is decided by the next one, and once."""
    store = MemoryStore()
    uuid = MemoryLedger(store, take_over(store)).plans.create(
        str(uuid4()),
        PlanKind.CONSOLIDATE,
        trigger=PlanTrigger.OPERATOR,
        afterwards=Afterwards.KEEP,
        settings=SETTINGS.to_record(),
    )
    plans = MemoryLedger(store, take_over(store)).plans
    cloud = snapshot(host("a", 10.0), host("b", 50.0), server("one", "a"))
    sources: Any = (SimpleNamespace(read=lambda: (cloud, {})), SimpleNamespace(decide=decide))
    decisions = Decisions(plans, *sources)
    for plan in plans.unattended():
        decisions.decide(plan)
    assert plans.get(uuid).state is PlanState.PROPOSED
    assert len(plans.get(uuid).actions) == 2
    assert plans.unattended() == []


MISSING: dict[str, dict[str, Any]] = {
    "CPU load is unknown": {"load": ()},
    "CPU load is 601 s old": {"load_age_seconds": 601.0},
    "number of its CPUs is unknown": {"cpus": None},
    "size of its memory is unknown": {"memory_mib": None},
    "free memory is 601 s old": {"free_mib": STALE},
    "Placement has no inventory": {"capacity": None},
}


@pytest.mark.parametrize("reason", MISSING)
def test_no_plan_succeeds_with_a_metric_missing_and_keeps_silent(reason: str) -> None:
    """Watcher's audit ends as SUCCEEDED. Here the host takes no part, and the plan names what is missing."""
    blind = replace(host("a", 1.0), **MISSING[reason])
    found = decide(snapshot(blind, host("b", 10.0), server("one", "b")), SETTINGS)
    assert found.actions == ()
    assert reason in found.left_out["a"]


@pytest.mark.parametrize("reading", [None, STALE])
def test_nor_with_one_of_a_server_missing(reading: Reading | None) -> None:
    found = decide(snapshot(host("a", 1.0), host("b", 50.0), server("one", "a", used_cpus=reading)), SETTINGS)
    assert found.actions == ()
    assert "CPU load of server one" in found.left_out["a"]


def test_power_needs_neither_ironic_nor_maas() -> None:
    """Hosts sleep by their own kernel and are woken by their own BMC or network card."""
    assert {name for name, mode in MODES.items() if mode.serves} >= {"sz", "lowpower-s0"}
    assert {"s3", "off"} <= set(MODES)
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    needed = setup["options"]["install_requires"] + setup["options.extras_require"]["redfish"]
    assert "ironic" not in needed
    assert "maas" not in needed


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_host_is_chosen_by_a_rule_and_not_at_random(order: tuple[int, ...]) -> None:
    """The least loaded is emptied, and of the sleepers the least borrowed is woken, in whatever order they are told."""
    idle = [host("a", 12.0), host("b", 11.0), host("c", 13.0)]
    found = decide(snapshot(*(idle[number] for number in order)), replace(SETTINGS, most_emptied=1))
    assert [item.host for item in found.actions] == ["b"]
    asleep = [zombie("x", 64), zombie("y", 0), zombie("z", 32)]
    busy = (host("d", 95.0), server("one", "d", cpus=2.0))
    woken = decide(snapshot(*busy, *(asleep[number] for number in order)), SETTINGS)
    assert [item.host for item in woken.actions if str(item.kind) == "wake"] == ["y"]
