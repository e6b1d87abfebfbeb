"""What the controller remembers of a split is what the server was placed with, and why."""

from typing import Any

import fixtures
from oslo_limit import fixture

from pondstack.controller.history.predictions import Predictions
from pondstack.domain import errors
from pondstack.domain.allowance import Allowance
from pondstack.ledger.records import SplitRecord
from pondstack.prediction import table
from pondstack.prediction.balance import OFF, Balance, Point
from pondstack_nova.scheduler import split_view
from tests.functional.rack import NovaWithRack

POOL = "CUSTOM_POND_MEMORY_MB"


class TestSplits(NovaWithRack):
    """Real nova-scheduler, controller and ledger."""

    def remembered(self, server: dict[str, Any], source: str) -> SplitRecord:
        """Return what the controller remembers of a server, once that has this source."""
        reader = self.real_controller.resources.reader

        def told() -> SplitRecord:
            try:
                found: SplitRecord = reader.split(server["id"])
            except errors.NotFound as error:
                raise AssertionError(str(error)) from error
            assert found.source == source, found
            return found

        found: SplitRecord = self.eventually(told)
        return found

    def as_placed(self, server: dict[str, Any], source: str) -> SplitRecord:
        """Assert that it is what Placement has for the server; return it."""
        found = self.remembered(server, source)
        claim = self.claim(server["id"])
        assert found.local_mib == claim[self.host_of(server)]["MEMORY_MB"]
        assert found.pool_mib == sum(amounts.get(POOL, 0) for amounts in claim.values())
        return found

    def is_online(self, server: dict[str, Any], pool_mib: int) -> None:
        """Assert that the server's host, and only it, has its slices: the host that it left tells so a moment later."""
        assert self.ledger_of(server) == {self.host_of(server): pool_mib}

    def test_each_server_of_a_request_and_its_moves(self) -> None:
        """Two at once are remembered both; a cold migration keeps the reason, a resize has a new one."""
        flavor = self.flavor(7168, policy="auto")
        body = self._build_server(flavor_id=flavor, networks="none")
        self.api.post_server({"server": body | {"min_count": 2, "max_count": 2}})
        servers = [self._wait_for_state_change(server, "ACTIVE") for server in self.api.get_servers()]
        for server in servers:
            assert "15 %" in self.as_placed(server, "static").reason
        server = self._migrate_server(servers[0])
        self._confirm_resize(server)
        assert "15 %" in self.as_placed(server, "static").reason
        server = self._resize_server(server, self.flavor(7168, policy="fixed", pool_mb="2048"))
        self._confirm_resize(server)
        assert self.as_placed(server, "fixed").pool_mib == 2048

    def test_a_plain_flavor_of_a_project_that_is_pooled(self) -> None:
        """An operator's word goes through controller and view to the scheduler, and the guest lives with it."""
        flavor = self.flavor(7168)
        server = self.boot(flavor)
        assert self.claim(server["id"]) == {self.host_of(server): {"MEMORY_MB": 7168}}
        set_ = self.api_of_controller.set_project
        assert set_(project_id=server["tenant_id"], changes={"default_policy": "auto"})["max_pool_percent"] is None
        split_view.reset()
        server = self.boot(flavor)
        found = self.as_placed(server, "static")
        assert found.pool_mib == 1024
        assert found.reason.endswith("the flavor is plain, the project says auto")
        self._reboot_server(server, hard=True)
        server = self._migrate_server(server)
        self._confirm_resize(server)
        assert self.as_placed(server, "static").pool_mib == 1024
        self.eventually(lambda: self.is_online(server, 1024))
        set_(project_id=server["tenant_id"], changes={"max_pool_percent": 0})
        split_view.reset()
        assert self.as_placed(self.boot(flavor), "static").pool_mib == 0
        self._delete_server(server)
        self.settled()

    def test_no_controller_since_the_start(self) -> None:
        """It is told once it is back; the next start is not bound by it."""
        self.flags(first_view_seconds=0.3, split_retry_seconds=0.5, group="pondstack")
        self.stop_controller()
        split_view.reset()
        server = self.boot_pond()
        self.run_controller()
        assert "has not answered since" in self.as_placed(server, "no_view").reason
        self.flags(first_view_seconds=60.0, group="pondstack")
        split_view.reset()
        server = self._migrate_server(server)
        assert self.as_placed(server, "fixed").pool_mib == 1024

    def test_the_model_that_decided_and_its_budget(self) -> None:
        """An insensitive server is on the pool but for a slice; the next one is not, once the budget is used up."""
        project = self.boot(self.flavor(1024, policy="local"))["tenant_id"]
        sizes = {f"4096/{vcpus}": [1.5, 9] for vcpus in (1, 2)}
        made = table.join(
            None,
            {"version": "li-1", "projects": {project: sizes}},
            {"0": Balance(OFF, OFF), "5": Balance(Point(30.0, 1.0, {"threshold": 2.0}), OFF)},
            percent=0,
            min_local_percent=10,
        )
        allowed = Allowance(1.0, {"li-1": 1.0})
        self.useFixture(fixtures.MockPatchObject(Predictions, "describe", lambda _self: made))
        self.useFixture(fixtures.MockPatchObject(Predictions, "allowance", lambda _self: allowed))
        split_view.reset()
        server = self.boot(self.flavor(4096, policy="auto"))
        found = self.as_placed(server, "insensitive")
        assert (found.local_mib, found.pool_mib, found.model_version) == (1024, 3072, "li-1")
        assert found.inputs == {"pdm": 5, "history": 9, "slowdown": 1.5, "threshold": 2.0}
        self.useFixture(fixtures.MockPatchObject(Predictions, "allowance", lambda _self: allowed.less(1.0)))
        split_view.reset()
        other = self.boot(self.flavor(4096, policy="auto"))
        assert "li-1 may risk no more" in self.as_placed(other, "model_budget").reason
        server = self._migrate_server(server)
        self._confirm_resize(server)
        assert self.as_placed(server, "insensitive").model_version == "li-1"

    def test_over_quota(self) -> None:
        """The controller had said 1024 MiB; the project has no room for them."""
        self.flags(driver="nova.quota.UnifiedLimitsDriver", group="quota")
        limits = {"servers": 10, "class:VCPU": 10, "class:DISK_GB": 10, "class:MEMORY_MB": 32768, f"class:{POOL}": 512}
        self.useFixture(fixture.LimitFixture(limits, {}))
        server = self.boot(self.flavor(7168, policy="auto"))
        found = self.as_placed(server, "over_quota")
        assert (found.local_mib, found.pool_mib) == (7168, 0)
        assert f"class:{POOL} is over limit of 512" in found.reason
