"""Guests that nova-compute starts again after a boot of its host: the agent starts beside it, and is waited for."""

from typing import Any

import pytest
from nova.compute import utils as compute_utils

from nova_plugins.tests.compute.virt_rig import VM, Driver, Rack, guest, h1, h2, rack, spawn
from pondstack.domain import errors
from pondstack_nova.compute import agent_client
from pondstack_nova.compute.agent_client import PoolAttachments, PoolMemoryUnavailable

__all__ = ["h1", "h2", "rack"]

WAIT_SECONDS = 300
AT_ONCE_SECONDS = 10


class Boot:
    """Time that moves only when somebody waits; `events` happen at their second."""

    def __init__(self, rack: Rack, driver: Driver) -> None:
        self.now, self.events = 0.0, dict[float, Any]()
        driver.pool_memory = PoolAttachments(lambda: rack.agents, clock=lambda: self.now, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        for at in [at for at in self.events if at <= self.now]:
            self.events.pop(at)()


@pytest.fixture
def boot(rack: Rack, h1: Driver) -> Boot:
    """A host with one guest, that boots: its agent is silent, its nova-compute starts."""
    boot = Boot(rack, h1)
    spawn(h1, guest())
    h1.seen.clear()
    rack.agents.log.clear()
    rack.agents.down.add("h1")
    h1.init_host("h1")
    return boot


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What tenants see of guests that could not be started."""
    shown: list[str] = []
    monkeypatch.setattr(
        compute_utils, "add_instance_fault_from_exc", lambda _context, _vm, fault, _info: shown.append(str(fault))
    )
    return shown


def _resume(driver: Driver) -> None:
    driver.resume_state_on_host_boot("context", guest(), [], [], {})


def test_a_guest_waits_for_the_agent(
    rack: Rack, h1: Driver, boot: Boot, faults: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    boot.events[200] = rack.agents.down.clear
    _resume(h1)
    assert h1.seen[-1] == ("made anew", 1024)
    assert 200 <= boot.now < 210
    assert faults == []
    told = [record.getMessage() for record in caplog.records if "wait on h1" in record.getMessage()]
    assert "up to 300 s more: pondstack-agent does not answer. Next: start pondstack-agent there" in told[0]
    assert 4 <= len(told) <= 200 / agent_client.TELL_SECONDS + 1


def test_slices_that_the_boot_lost_wait_for_the_controller(rack: Rack, h1: Driver, boot: Boot) -> None:
    """The whole rack had no power: the agent is there first, and has nobody to ask."""
    rack.agents.down.clear()
    rack.agents.lose("h1")
    rack.agents.faults["attach"] = [errors.Unavailable("the controller does not answer")] * 1000
    boot.events[250] = rack.agents.faults.clear
    _resume(h1)
    assert h1.seen[-1] == ("made anew", 1024)
    assert 250 <= boot.now < 260


def test_the_wait_has_an_end_and_a_reason(
    rack: Rack, h1: Driver, boot: Boot, faults: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(PoolMemoryUnavailable):
        _resume(h1)
    assert WAIT_SECONDS <= boot.now < WAIT_SECONDS + AT_ONCE_SECONDS
    assert h1.seen == [("init_host", 1024)]
    (fault,) = faults
    assert "the memory service does not answer" in fault
    assert "h1" not in fault
    assert "host h1, consumer vm: pondstack-agent does not answer. Next: start pondstack-agent there" in caplog.text
    assert "given up 300 s after the start of nova-compute: hard reboot the server" in fault
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_an_attach_that_waited_in_vain_says_so_too(rack: Rack, h1: Driver, boot: Boot, faults: list[str]) -> None:
    rack.agents.down.clear()
    rack.agents.lose("h1")
    rack.agents.faults["attach"] = [errors.Unavailable("the controller does not answer")] * 1000
    with pytest.raises(PoolMemoryUnavailable):
        _resume(h1)
    assert WAIT_SECONDS <= boot.now < WAIT_SECONDS + AT_ONCE_SECONDS
    assert "the memory service does not answer" in faults[0]
    assert "given up 300 s" in faults[0]


def test_all_guests_together_wait_no_longer(h1: Driver, boot: Boot, faults: list[str]) -> None:
    for _ in range(3):
        with pytest.raises(PoolMemoryUnavailable):
            _resume(h1)
    assert boot.now < WAIT_SECONDS + 3 * AT_ONCE_SECONDS
    assert len(faults) == 3


def test_a_verdict_of_the_agent_is_not_waited_for(rack: Rack, h1: Driver, boot: Boot, faults: list[str]) -> None:
    rack.agents.down.clear()
    rack.agents.lose("h1")
    rack.agents.faults["attach"] = [errors.PoolShortage("pool0 has no free slice")]
    with pytest.raises(PoolMemoryUnavailable):
        _resume(h1)
    assert boot.now == 0
    assert "given up" not in faults[0]


def test_a_build_does_not_wait_it_has_other_hosts(rack: Rack, h1: Driver, boot: Boot) -> None:
    rack.agents.lose("h1")
    with pytest.raises(PoolMemoryUnavailable) as refusal:
        spawn(h1, guest())
    assert boot.now < AT_ONCE_SECONDS
    assert "given up" not in str(refusal.value)


def test_long_after_the_boot_a_hard_reboot_fails_at_once(h1: Driver, boot: Boot) -> None:
    boot.now = WAIT_SECONDS
    with pytest.raises(PoolMemoryUnavailable):
        h1.reboot(guest())
    assert boot.now < WAIT_SECONDS + AT_ONCE_SECONDS


def test_0_switches_the_wait_off(h1: Driver, boot: Boot, faults: list[str]) -> None:
    agent_client.CONF.set_override("agent_start_timeout_seconds", 0, group="pondstack")
    try:
        h1.init_host("h1")
        with pytest.raises(PoolMemoryUnavailable):
            _resume(h1)
    finally:
        agent_client.CONF.clear_override("agent_start_timeout_seconds", group="pondstack")
    assert boot.now < AT_ONCE_SECONDS
    assert "given up" not in faults[0]
