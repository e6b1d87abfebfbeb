"""Orders to sleep that come once their sleep has ended."""

import oslo_messaging
import pytest

from pondstack.domain.errors import Conflict, StaleEpoch
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.power.client import NOTHING
from pondstack_agent.power.ended_suspension import EndedSuspension
from pondstack_agent.power.endpoint import PowerEndpoint
from pondstack_agent.records import Records

ORDER, NEXT = "5c0b9a64-1f0e-4d27-9a5c-7b1f3e2d8c90", "9d2e7b18-6a3f-4c5d-8e1b-0f4a6c7d5e21"


class Waker:
    """One that puts its host to sleep at once."""

    def __init__(self):
        self.order = ""

    def enter(self, operation_id, driver):
        self.order = operation_id
        return self.told() | {"driver": driver}

    def told(self):
        return NOTHING | {"operation_id": self.order, "state": "entering" if self.order else ""}


class Host:
    """A host whose state folder outlives its agent."""

    def __init__(self, folder):
        self._folder = folder
        self.boot()

    def boot(self):
        """Have it start anew: nothing sleeps, no waker runs."""
        records = Records(self._folder / "marks")
        self.waker = Waker()
        self.calls = PowerEndpoint(self.waker, None, EpochGuard(records), EndedSuspension(records))

    def suspend(self, order, epoch=1):
        return self.calls.suspend({}, epoch=epoch, operation_id=order, driver="frozen")

    def end(self, order, epoch=1):
        return self.calls.end_suspension({}, epoch=epoch, operation_id=order)


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def refused(kind, call, *arguments):
    with pytest.raises(oslo_messaging.ExpectedException) as wrapped:
        call(*arguments)
    assert isinstance(wrapped.value.exc_info[1], kind)


@pytest.mark.parametrize("boots", [False, True])
def test_an_order_whose_sleep_has_ended_is_refused(host, boots):
    assert host.end(ORDER)["state"] == ""
    if boots:
        host.boot()
    refused(Conflict, host.suspend, ORDER)
    assert host.waker.order == ""
    assert host.suspend(NEXT)["state"] == "entering", "of the next sleep"


def test_an_order_that_came_before_is_told(host):
    host.suspend(ORDER)
    told = host.end(ORDER)
    assert (told["operation_id"], told["state"]) == (ORDER, "entering")


def test_a_former_leader_ends_nothing(host):
    host.suspend(NEXT, epoch=2)
    refused(StaleEpoch, host.end, ORDER)
    assert host.suspend(ORDER, epoch=2)["operation_id"] == ORDER
