"""Plans name destinations that a real Nova and a real Placement admit: traits of flavors, server groups."""

from types import SimpleNamespace
from typing import Any

import futurist

from pondstack.consolidation.decision.settings import Settings
from pondstack.controller.consolidation.candidates import Candidates
from pondstack.controller.consolidation.inputs import Inputs
from pondstack.db.store.host_telemetry import Told
from pondstack.domain.plan import Afterwards
from pondstack.domain.rack import HostReport, RackView
from pondstack_rack.wait import wait_until
from tests.functional.base import NovaWithPondstack
from tests.functional.clients import nova_of, placement_of

FAST = "CUSTOM_FAST"
DEADLINE_SECONDS = 30.0


class TestPlanCandidates(NovaWithPondstack):
    """Three hosts, of which one has not the trait that a flavor wants."""

    hosts = ("host1", "host2", "host3")

    def setUp(self) -> None:
        """Let Nova know of groups, and open our clients."""
        self.stub_out("nova.scheduler.utils._SUPPORTS_ANTI_AFFINITY", None)
        super().setUp()
        self.nova = nova_of(self.admin_api.base_url, user="admin", project="service", roles="admin")
        self.asked = placement_of(self.placement.fixture)

    def configure_scheduler(self) -> None:
        """Have Nova judge destinations by groups, too."""
        super().configure_scheduler()
        filters = ["ComputeFilter", "PondFilter", "ServerGroupAntiAffinityFilter"]
        self.flags(enabled_filters=filters, group="filter_scheduler")

    def decide(self, loads: dict[str, float], servers: list[str]) -> Any:
        """Return a plan by played loads of the hosts, of servers that do nothing."""

        def figures(load: float) -> dict[str, list[Told]]:
            values = {"load_percent": load, "cpus": 10.0, "memory_mib": 1e6, "free_mib": 1e6}
            return {name: [Told(value, 0.0, "synthetic")] for name, value in values.items()}

        told = {name: figures(load) for name, load in loads.items()}
        guests = {uuid: {"used_cpus": Told(0.1, 0.0, "synthetic")} for uuid in servers}
        telemetry: Any = SimpleNamespace(hosts=lambda: told, guests=lambda _metrics, _seconds: guests)
        rack = RackView(hosts={name: HostReport(name, True, "", None, 1.0) for name in loads})
        history: Any = SimpleNamespace(complete_since=lambda: None)
        inputs = Inputs(self.nova, self.asked, telemetry, lambda: rack, history, futurist.SynchronousExecutor())
        settings = Settings(afterwards=Afterwards.KEEP, most_emptied=1)
        return Candidates(self.asked).decide(inputs.read()[0], settings)

    def host_of(self, server: dict[str, Any]) -> str:
        """Return where a server is."""
        return str(self.api.get_server(server["id"])["OS-EXT-SRV-ATTR:host"])

    def followed(self, plan: Any) -> None:
        """Have Nova carry out the migrations of a plan, each to where it says."""
        for action in [item for item in plan.actions if item.server_uuid]:
            self.nova.live_migrate(action.server_uuid, action.destination)
            server = self._wait_for_state_change({"id": action.server_uuid}, "ACTIVE")
            assert server["OS-EXT-SRV-ATTR:host"] == action.destination

    def set_traits(self, host: str, traits: list[str]) -> None:
        """Have a host have these traits; Placement refuses it while nova-compute writes there, as after a migration."""
        uuid = self._get_provider_uuid_by_name(host)
        assert wait_until(lambda: self._set_provider_traits(uuid, traits).status == 200, DEADLINE_SECONDS)

    def test_traits(self) -> None:
        """The only fitting host but one lacks the trait; without that one there is no plan, and it says why."""
        self._create_trait(FAST)
        for host in ("host1", "host3"):
            self.set_traits(host, [FAST])
        flavor = self._create_flavor(
            memory_mb=1024, vcpu=1, disk=1, ephemeral=0, extra_spec={f"trait:{FAST}": "required"}
        )
        server = self.boot(str(flavor))
        source = self.host_of(server)
        [other] = {"host1", "host3"} - {source}
        loads = {source: 1.0, "host2": 70.0, other: 40.0}
        plan = self.decide(loads, [server["id"]])
        assert [item.destination for item in plan.actions] == ["", other]
        self.followed(plan)
        self.set_traits(source, [])
        plan = self.decide({other: 1.0, "host2": 70.0, source: 40.0}, [server["id"]])
        assert plan.actions == ()
        assert plan.left_out[other] == f"server {server['id']} fits on no other host"

    def test_server_groups(self) -> None:
        """Members of an anti-affinity group are not put together; Nova would refuse it."""
        group = self.api.post_server_groups({"name": "apart", "policy": "anti-affinity"})["id"]
        flavor = self.flavor(1024)
        servers = []
        for _ in range(2):
            body = self._build_server(flavor_id=flavor, networks="none")
            made = self.api.post_server({"server": body, "os:scheduler_hints": {"group": group}})
            servers.append(self._wait_for_state_change(made, "ACTIVE"))
        source, taken = map(self.host_of, servers)
        [free] = set(self.hosts) - {source, taken}
        plan = self.decide({source: 1.0, taken: 70.0, free: 40.0}, [server["id"] for server in servers])
        assert [item.destination for item in plan.actions] == ["", free]
        self.followed(plan)
