"""Hosts that take memory offline slowly: starts use the free buffer meanwhile, or wait; Nova tries no other host."""

import threading
from typing import Any
from unittest import mock

from pondstack.controller.reconcile.reconciler import Reconciler
from pondstack_agent.drivers.emulated import EmulatedHostPool
from tests.functional.rack import SETTLE_SECONDS, NovaWithRack


class NovaWithSlowHosts(NovaWithRack):
    """Memory of guests that are gone stays on its host until `self.offline` is set; no round of the controller sees it.

    Not collected itself.
    """

    __test__ = False

    def setUp(self) -> None:
        """Have the hosts' drivers be slow from the first agent on."""
        self.offline = threading.Event()
        detach = EmulatedHostPool.detach

        def slowly(driver: Any, allocation_uuid: str) -> bool:
            assert self.offline.wait(SETTLE_SECONDS)
            return detach(driver, allocation_uuid)

        self.between_rounds = threading.Lock()
        run = Reconciler.run

        def one_round(reconciler: Any) -> Any:
            with self.between_rounds:
                return run(reconciler)

        for kind, name, value in (
            (EmulatedHostPool, "slow_detach", True),
            (EmulatedHostPool, "detach", slowly),
            (Reconciler, "run", one_round),
        ):
            patcher = mock.patch.object(kind, name, value)
            patcher.start()
            self.addCleanup(patcher.stop)
        super().setUp()
        self.addCleanup(self.offline.set)  # before the agents end, which wait for it
        self.flags(shortage_wait_seconds=60, group="pondstack")

    def delete_slowly(self, server: dict[str, Any]) -> None:
        """Delete a server: its claim is gone, its memory still on its host. There are no rounds from now on."""
        self.between_rounds.acquire()
        self.addCleanup(self.between_rounds.release)
        self._delete_server(server)

        def dropped() -> None:
            assert self.pool_used_mib() == 0

        self.eventually(dropped)
        assert self.slices_by_state() == {"online": 2, "free": self.slices - 2}

    def is_logged(self, text: str) -> None:
        """Assert that something was logged."""
        assert text in self.log_text()

    def assert_built_once(self) -> None:
        """Assert that Nova has tried no host in vain."""
        assert "pool memory is not available" not in self.log_text().lower()
        assert "Re-scheduling" not in self.log_text()


class TestBuffer(NovaWithSlowHosts):
    """Two slices are on their way back, and two are free, one of which is the buffer."""

    __test__ = True
    slices = 4

    def test_a_start_uses_the_buffer_while_memory_comes_back(self) -> None:
        """It is admitted, and gets its slices at once."""
        self.delete_slowly(self.boot_pond(2048))
        server = self.boot_pond(2048)
        assert self.slices_by_state() == {"online": 4}
        self.offline.set()
        self.eventually(lambda: self._is_online(server))
        self.assert_built_once()

    def _is_online(self, server: dict[str, Any]) -> None:
        assert self.ledger_of(server) == {self.host_of(server): 2048}
        assert self.slices_by_state() == {"online": 2, "free": 2}


class TestShortage(NovaWithSlowHosts):
    """Two slices are on their way back, three are free, and four are wanted."""

    __test__ = True
    slices = 5

    def test_a_start_waits_for_slices_on_their_way_back(self) -> None:
        """Placement has admitted both guests; the second one starts when the memory is there."""
        self.delete_slowly(self.boot_pond(2048))
        servers = self.boot_two()
        self.eventually(lambda: self.is_logged("Waiting up to 60 s for pool memory: pool pool0: 2 slices are wanted"))
        self.offline.set()
        for server in servers:
            self._wait_for_state_change(server, "ACTIVE")
        assert self.slices_by_state()["online"] == 4
        self.assert_built_once()
        assert self.real_controller.resources.reader.pool(self.pool).free_buffer.misses == 1

    def test_a_shortage_that_does_not_end_fails_at_once(self) -> None:
        """None of the memory comes back by itself, for example because its host is silent: the reason says so."""
        self.flags(max_attempts=1, group="scheduler")
        self.delete_slowly(self.boot_pond(2048))
        with mock.patch("pondstack.controller.pool.returns._moves", return_value=False):
            servers = self.boot_two()
            states = sorted(self._settled_state(server) for server in servers)
        assert states == ["ACTIVE", "ERROR"]
        assert "(0 more are on their way back)" in self.log_text()
        assert "Waiting up to" not in self.log_text()

    def boot_two(self) -> list[dict[str, Any]]:
        """Ask for two servers of two slices at once; returns them as they are being built."""
        flavor = self.flavor(4096, policy="fixed", pool_mb="2048")
        wanted = self._build_server(flavor_id=flavor, networks="none", name="two")
        before = {server["id"] for server in self.api.get_servers()}
        self.api.post_server({"server": {**wanted, "min_count": 2, "max_count": 2}})
        made = [server for server in self.api.get_servers() if server["id"] not in before]
        assert len(made) == 2
        return made

    def _settled_state(self, server: dict[str, Any]) -> str:
        def state() -> str:
            found = str(self.api.get_server(server["id"])["status"])
            assert found != "BUILD"
            return found

        return str(self.eventually(state))
