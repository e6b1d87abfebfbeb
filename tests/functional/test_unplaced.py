"""A real Nova finds no host for a server: the host that sleeps is woken, and the next server finds room there."""

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import futurist

from pondstack.consolidation.applier.applier import Applier
from pondstack.consolidation.applier.applier import Pace as ApplierPace
from pondstack.consolidation.applier.handlers import handlers
from pondstack.consolidation.decision.settings import Settings
from pondstack.controller.consolidation.candidates import Candidates
from pondstack.controller.consolidation.decisions import Decisions
from pondstack.controller.consolidation.inputs import Inputs
from pondstack.controller.consolidation.unplaced import Pace, Unplaced, cause, record
from pondstack.db.store.host_telemetry import Told
from pondstack.domain.host_sleep import DISABLED_REASON, HostSleep, SleepState, Work
from pondstack.domain.host_sleep_step import Act, Step
from pondstack.domain.plan import Afterwards, PlanKind, PlanState, PlanTrigger
from pondstack.domain.rack import HostReport, RackView
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore
from tests.functional.base import NovaWithPondstack
from tests.functional.clients import nova_of, placement_of

AWAKE, SLEEPER = "host1", "host2"
MIB = 5000
"""A host has room for one server of that size."""


class TestUnplaced(NovaWithPondstack):
    """One host that is awake, and one whose compute service is disabled, as of a host that sleeps."""

    def setUp(self) -> None:
        """Open our clients, and put a host to sleep."""
        super().setUp()
        self.nova = nova_of(self.admin_api.base_url, user="admin", project="service", roles="admin")
        self.asked = placement_of(self.placement.fixture)
        store = MemoryStore()
        self.ledger: Any = MemoryLedger(store, take_over(store))
        self.ledger.hosts.heartbeat(report(SLEEPER, 1, pools=[]))
        self.ledger.host_sleeps.begin(str(uuid4()), SLEEPER, "frozen", Work())
        self._go(SleepState.LENDING, SleepState.SUSPENDING, SleepState.ASLEEP)
        self._set_service(enabled=False)
        pace = Pace(60.0, 900.0)
        self.unplaced = Unplaced(self.nova, self.ledger.plans, self.ledger.host_sleeps, lambda: pace, lambda: 0.0)

    def _set_service(self, *, enabled: bool) -> None:
        service = self.nova.compute_service(SLEEPER)
        assert service is not None
        self.nova.enable(service) if enabled else self.nova.disable(service, DISABLED_REASON)

    def _go(self, *states: SleepState) -> None:
        for state in states:
            item = self.ledger.host_sleeps.newest(SLEEPER)
            self.ledger.host_sleeps.advance(item, Step(Act.WAIT, state))

    # The leader's hands: a sleeper that is woken has its memory at once, and is enabled

    def wake(self, host: str, operation_id: str) -> None:
        """Wake a host."""
        self.ledger.host_sleeps.wake(operation_id, host)
        self._go(SleepState.RECLAIMING, SleepState.ENABLING)
        self._set_service(enabled=True)
        self._go(SleepState.AWAKE)

    def newest(self, host: str) -> HostSleep | None:
        """Return a host's sleep."""
        return self.ledger.host_sleeps.newest(host)  # type: ignore[no-any-return]

    def inputs(self) -> Inputs:
        """Return what decisions are made from; the loads are synthetic."""
        values = {"load_percent": 1.0, "cpus": 10.0, "memory_mib": 8192.0, "free_mib": 8192.0}
        figures = {name: [Told(value, 0.0, "synthetic")] for name, value in values.items()}
        telemetry: Any = SimpleNamespace(
            hosts=lambda: dict.fromkeys(self.hosts, figures), guests=lambda _metrics, _seconds: {}
        )
        sleeps = {SLEEPER: self.ledger.host_sleeps.of_host(SLEEPER)}
        rack = RackView(
            hosts={name: HostReport(name, True, "", None, 1.0, sleep=sleeps.get(name)) for name in self.hosts}
        )
        history: Any = SimpleNamespace(complete_since=lambda: None)
        return Inputs(self.nova, self.asked, telemetry, lambda: rack, history, futurist.SynchronousExecutor())

    def planned(self) -> Any:
        """Return the plan for the servers that found no host, as it was decided."""
        found = self.unplaced.new()
        uuid = self.ledger.plans.create(
            str(uuid4()),
            PlanKind.CONSOLIDATE,
            trigger=PlanTrigger.POLICY,
            afterwards=Afterwards.KEEP,
            settings=Settings(afterwards=Afterwards.KEEP).to_record(),
            at_once=True,
            inputs={"cause": cause(found), "unplaced": [record(item) for item in found]},
        )
        plans = self.ledger.plans
        Decisions(plans, self.inputs(), Candidates(self.asked)).decide(plans.get(uuid))
        return plans.get(uuid)

    def test_no_valid_host(self) -> None:
        """A burst of two: the plan wakes the sleeper, and says why; the next server boots there."""
        flavor = self.flavor(MIB)
        self.boot(flavor)
        assert not self.unplaced.new()
        lost = [self.boot(flavor, "ERROR")["id"] for _ in range(2)]
        self.notifier.wait_for_versioned_notifications("compute_task.build_instances.error", n_events=2)
        plan = self.planned()
        project = self.admin_api.get_server(lost[0])["tenant_id"]
        name = self.admin_api.get_server(lost[0])["flavor"]["original_name"]
        assert plan.reason == f"scheduling failed for flavor {name} of project {project} (2)"
        assert [(str(item.kind), item.host) for item in plan.actions] == [("wake", SLEEPER)]
        assert list(plan.left_out.values()) == ["it fits on no host that sleeps"], "of two one fits"
        assert not self.unplaced.new(), "each has one plan"

        sleeps: Any = self
        lends: Any = None
        pace = ApplierPace(2, 60, 600.0, 2)
        applier = Applier(
            self.ledger.plans, lambda: handlers(self.nova, sleeps, lends, 1, lambda *_: ""), lambda: pace, lambda: 0.0
        )
        for _ in range(3):
            applier.run(self.ledger.plans.unattended())
        ended = self.ledger.plans.get(plan.uuid)
        assert (ended.state, ended.reason) == (PlanState.DONE, plan.reason)
        server = self.boot(flavor)
        assert self.admin_api.get_server(server["id"])["OS-EXT-SRV-ATTR:host"] == SLEEPER
