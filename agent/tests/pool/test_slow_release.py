"""A driver that needs long to take memory offline: callers do not wait, what is stuck is told and tried again."""

import pytest

from pondstack.domain.errors import DeviceFailed, InUse
from pondstack_agent.build import build_agent
from pondstack_agent.drivers import HostPools
from pondstack_agent.drivers.emulated import EmulatedHostPool
from tests.fixtures.rpc_call import call


class SlowPool(EmulatedHostPool):
    """The emulated driver, whose memory others may keep online."""

    slow_detach = True
    held_by_others = False
    running = False

    def __init__(self, **arguments) -> None:
        super().__init__(**arguments)
        self.reasons: dict[str, str] = {}
        self.detached: list[str] = []

    def begin_detach(self, allocation_uuid: str) -> bool:
        """Check, as the CXL driver does, without waiting."""
        if self.running:
            raise InUse("its guest runs; destroy the guest first")
        return super().begin_detach(allocation_uuid)

    def stuck(self) -> dict[str, str]:
        """Return what did not go offline."""
        return self.reasons

    def detach(self, allocation_uuid: str) -> bool:
        """Go offline, unless others hold the memory."""
        self.detached.append(allocation_uuid)
        if self.held_by_others:
            self.reasons[allocation_uuid] = "1 of 8 memory blocks is still in use"
            raise DeviceFailed(self.reasons[allocation_uuid])
        self.reasons.pop(allocation_uuid, None)
        return super().detach(allocation_uuid)


@pytest.fixture
def slow(tmp_path, device):
    """The driver object that outlives the agent's restarts in these tests."""
    return SlowPool(host="host1", state_dir=tmp_path / "state", device_paths=[str(device.path)])


@pytest.fixture
def slow_rig(rig, slow, monkeypatch):
    """The rig with the slow driver."""

    def restart() -> None:
        rig.later = type(rig.later)()
        clock = lambda: rig.now  # noqa: E731
        rig.agent = build_agent(rig.conf, rig.controller, rig.later, pools=HostPools([slow]), clock=clock)
        rig.agent.housekeeper.recover()

    monkeypatch.setattr(rig, "restart", restart)
    restart()
    return rig


def test_a_detach_does_not_wait_for_the_memory(slow_rig, slow) -> None:
    answer = slow_rig.attach("op1")
    assert slow_rig.detach("op2")
    assert slow.detached == []
    assert slow_rig.attached() == {answer.allocation_uuid}
    assert slow_rig.controller.held == {answer.allocation_uuid: "online"}
    slow_rig.later.run()
    assert slow.detached == [answer.allocation_uuid]
    assert slow_rig.attached() == set()
    assert slow_rig.controller.held == {}


def test_a_running_guest_refuses_the_detach_at_once(slow_rig, slow) -> None:
    slow_rig.attach("op1")
    slow.running = True
    with pytest.raises(InUse):
        slow_rig.detach("op2")
    slow_rig.later.run()
    assert slow.detached == []
    slow_rig.restart()  # nothing was begun that a restart would end
    slow.running = False
    slow_rig.later.run()
    assert slow.detached == []


def test_what_is_stuck_is_reported_and_tried_again(slow_rig, slow) -> None:
    answer = slow_rig.attach("op1")
    slow.held_by_others = True
    slow_rig.detach("op2")
    slow_rig.later.run()
    report = slow_rig.agent.reporter.report()
    assert report.stuck == {answer.allocation_uuid: "1 of 8 memory blocks is still in use"}
    assert [item.allocation_uuid for item in report.attached] == [answer.allocation_uuid]
    assert slow_rig.controller.held == {answer.allocation_uuid: "online"}
    slow_rig.beat()
    assert len(slow.detached) == 1  # not before its time
    slow.held_by_others = False
    slow_rig.now += 61.0
    slow_rig.beat()
    assert slow_rig.agent.reporter.report().stuck == {}
    assert slow_rig.attached() == set()
    assert slow_rig.controller.held == {}


def test_the_controllers_command_does_not_wait_either(slow_rig, slow) -> None:
    answer = slow_rig.attach("op1")
    uuid = answer.allocation_uuid
    for number in (2, 3):  # it asks again at each of its rounds
        assert not call(slow_rig.agent.endpoint.offline, epoch=1, operation_id=f"op{number}", allocation_uuid=uuid)
    assert slow.detached == []
    slow_rig.later.run()
    assert slow_rig.attached() == set()
    assert slow_rig.controller.held == {}
    assert call(slow_rig.agent.endpoint.offline, epoch=1, operation_id="op4", allocation_uuid=uuid)


def test_killed_before_the_background_got_to_it(slow_rig, slow) -> None:
    answer = slow_rig.attach("op1")
    slow_rig.detach("op2")
    slow_rig.restart()
    assert slow_rig.detach("op2")
    slow_rig.later.run()
    assert slow.detached[0] == answer.allocation_uuid
    assert slow_rig.attached() == set()
    assert slow_rig.controller.held == {}
