"""kill -9 at every point of attach and detach: what is on disk is enough to report, repair and go on."""

import pytest

from pondstack.domain.errors import Conflict


class Killed(BaseException):
    """Ends the agent in mid-flight; nothing of ours may catch it."""


def kill(*_arguments, **_more):
    raise Killed


ATTACH_POINTS = ["before assign", "after assign", "before driver", "after driver", "after acknowledge"]


def kill_at(rig, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    when, what = point.split()
    if what == "driver":
        pools = rig.agent.endpoint._pools
        attach = pools.attach

        def attach_and_die(grant):
            if when == "after":
                attach(grant)
            raise Killed

        monkeypatch.setattr(pools, "attach", attach_and_die)
    else:
        getattr(rig.controller, when)[what] = [kill]


@pytest.mark.parametrize("point", ATTACH_POINTS)
def test_killed_in_attach_the_caller_repeats(rig, monkeypatch, point: str) -> None:
    kill_at(rig, point, monkeypatch)
    with pytest.raises(Killed):
        rig.attach("op1")
    rig.restart()
    answer = rig.attach("op1")
    assert rig.attached() == {answer.allocation_uuid}
    assert rig.controller.held == {answer.allocation_uuid: "online"}


@pytest.mark.parametrize("point", ATTACH_POINTS)
def test_killed_in_attach_the_caller_gives_up(rig, monkeypatch, point: str) -> None:
    kill_at(rig, point, monkeypatch)
    with pytest.raises(Killed):
        rig.attach("op1")
    rig.restart()
    rig.detach("op2")
    rig.beat()
    assert rig.attached() == set()
    assert rig.controller.held == {}


@pytest.mark.parametrize("point", ATTACH_POINTS[:4])
def test_killed_in_attach_nobody_comes_back(rig, monkeypatch, point: str) -> None:
    kill_at(rig, point, monkeypatch)
    with pytest.raises(Killed):
        rig.attach("op1")
    rig.restart()
    # At once, and until it is undone, the report tells what is there.
    assert rig.attached() == (set(rig.controller.held) if point == "after driver" else set())
    rig.now += 61
    rig.beat()
    assert rig.attached() == set()
    assert rig.controller.held == {}
    with pytest.raises(Conflict):
        rig.attach("op1")


def test_killed_before_going_offline(rig, monkeypatch) -> None:
    allocation = rig.attach("op1").allocation_uuid
    monkeypatch.setattr(rig.agent.endpoint._pools, "detach", kill)
    with pytest.raises(Killed):
        rig.detach("op2")
    rig.restart()
    assert rig.attached() == set()
    assert rig.agent.reporter.report().released == (allocation,)
    assert rig.detach("op2") is True
    rig.beat()
    assert rig.controller.held == {}


def test_killed_after_going_offline(rig, monkeypatch) -> None:
    allocation = rig.attach("op1").allocation_uuid
    pools = rig.agent.endpoint._pools
    detach = pools.detach
    monkeypatch.setattr(pools, "detach", lambda uuid: kill(detach(uuid)))
    with pytest.raises(Killed):
        rig.detach("op2")
    rig.restart()
    assert rig.agent.reporter.report().released == (allocation,)
    rig.beat()
    assert rig.controller.held == {}


def test_killed_before_the_controller_was_told(rig) -> None:
    allocation = rig.attach("op1").allocation_uuid
    assert rig.detach("op2") is True
    rig.restart()  # what waited in the background is lost
    assert rig.controller.held == {allocation: "online"}
    rig.beat()
    assert rig.controller.reports[-1].released == (allocation,)
    assert rig.controller.held == {}
    rig.beat()
    assert rig.controller.reports[-1].released == ()


def test_a_half_done_release_stops_at_a_running_guest(rig, monkeypatch, tmp_path) -> None:
    """Killed before going offline, and the guest is there when the agent is back: it stays attached."""
    import os

    from pondstack_agent.qemu.attachment_lock import hold

    allocation = rig.attach("op1").allocation_uuid
    monkeypatch.setattr(rig.agent.endpoint._pools, "detach", kill)
    with pytest.raises(Killed):
        rig.detach("op2")
    handle = hold(tmp_path / "state" / "attachments" / f"{allocation}.json")
    try:
        rig.restart()
        assert rig.attached() == {allocation}
        assert rig.agent.reporter.report().released == ()
    finally:
        os.close(handle)
