"""The wait of a guest for the slices that it has come with."""

from dataclasses import replace

import nova.conf
import oslo_messaging
import pytest

from nova_plugins.tests.compute.test_agent_client import Time
from pondstack.domain.errors import DeviceFailed, Unavailable
from pondstack.domain.requests import AssignRequest
from pondstack_nova.compute.agent_client import PoolAttachments, PoolMemoryUnavailable
from pondstack_nova.compute.slice_arrival import LOOK_SECONDS, take_up
from tests.fixtures.fake_agents import FakeAgents

CONF = nova.conf.CONF
VM = "vm"


class Moved:
    """A guest at h2, whose slices h1 has yet. `let_go_at`: when h1 lets go of them, by the clock."""

    def __init__(self, let_go_at: float) -> None:
        self.agents, self.time, self._let_go_at = FakeAgents(), Time(), let_go_at
        own = self.agents.attach("op1", AssignRequest(VM, "h1", "pool", 1024, 4096))
        self.agents.held["h2", VM] = replace(own, allocation_uuid="heir", handed=True)
        self.agents.held["h1", VM] = replace(own, heir="h2")

    def sleep(self, seconds: float) -> None:
        """Have time pass."""
        self.time.sleep(seconds)
        if self.time.now >= self._let_go_at and ("h1", VM) in self.agents.held:
            self.agents.detach("h1", operation_id="op2", consumer_uuid=VM)

    def take_up(self) -> None:
        """Wait at h2."""
        pool = PoolAttachments(lambda: self.agents, clock=self.time.clock, sleep=self.sleep)  # type: ignore[arg-type, return-value]
        take_up(pool, "h2", VM, clock=self.time.clock, sleep=self.sleep)


def test_it_runs_as_soon_as_the_former_host_has_let_go() -> None:
    moved = Moved(3.0)
    moved.take_up()
    assert 3.0 <= moved.time.now < 3.0 + 2 * LOOK_SECONDS


def test_it_waits_as_long_as_for_an_attach_and_says_what_to_do() -> None:
    moved = Moved(10_000.0)
    with pytest.raises(PoolMemoryUnavailable) as caught:
        moved.take_up()
    assert moved.time.now >= CONF.pondstack.attach_timeout_seconds
    assert "hard reboot" in caught.value.details
    assert "stays paused" in caught.value.details


def test_a_controller_that_is_away_is_waited_for() -> None:
    moved = Moved(0.5)
    moved.agents.faults["take_up"] = [Unavailable("the device does not say"), Unavailable("nor now")]
    moved.take_up()


@pytest.mark.parametrize("error", [DeviceFailed("CPU caches are not written back"), oslo_messaging.MessagingTimeout()])
def test_without_an_answer_it_does_not_run(error: Exception) -> None:
    moved = Moved(0.0)
    moved.agents.faults["take_up"] = [error] * 2
    with pytest.raises(PoolMemoryUnavailable):
        moved.take_up()
