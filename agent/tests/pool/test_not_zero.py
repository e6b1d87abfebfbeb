"""Somebody's bytes in a slice that was granted: the attach fails, and the controller is told which slice it is."""

import pytest

from pondstack.devices.emulated_files import MEMORY
from pondstack.domain.errors import DeviceFailed, Unavailable

SLICE_BYTES = 1 << 20


@pytest.fixture
def dirty(device) -> None:
    """The second slice has the last tenant's bytes."""
    with (device.path / MEMORY).open("r+b") as memory:
        memory.seek(2 * SLICE_BYTES - 1)
        memory.write(b"x")


def lost(**_arguments) -> None:
    raise Unavailable("no answer")


@pytest.mark.usefixtures("dirty")
def test_the_report_tells_which_slice_it_is(rig) -> None:
    with pytest.raises(DeviceFailed, match="slice 1 of pool pool0 is not zero") as refused:
        rig.attach("op1", mib=2)
    assert type(refused.value) is DeviceFailed  # Nova's side knows no other
    [allocation] = rig.controller.held
    rig.controller.before["heartbeat"] = [lost]
    rig.beat()
    assert rig.controller.held == {allocation: "assigning"}  # no call of its own has freed it
    assert rig.agent.reporter.report().not_zero == {allocation: [1]}
    rig.beat()
    assert rig.controller.reports[-1].not_zero == {allocation: [1]}
    assert rig.controller.held == {}
    assert rig.agent.reporter.report().not_zero == {}


@pytest.mark.usefixtures("dirty")
def test_an_agent_that_ends_in_between_tells_it_all_the_same(rig) -> None:
    with pytest.raises(DeviceFailed):
        rig.attach("op1", mib=2)
    [allocation] = rig.controller.held
    rig.restart()
    rig.beat()
    assert rig.controller.reports[-1].not_zero == {allocation: [1]}


@pytest.mark.usefixtures("dirty")
def test_a_repetition_gets_the_same_error(rig) -> None:
    for _ in range(2):
        with pytest.raises(DeviceFailed, match="not zero"):
            rig.attach("op1", mib=2)
