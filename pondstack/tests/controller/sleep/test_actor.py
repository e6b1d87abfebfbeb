"""Before a host's memory is its own again, it refuses the order by which it slept: that may come late."""

from types import SimpleNamespace

import oslo_messaging
import pytest

from pondstack.controller.sleep.actor import Actor
from pondstack.controller.sleep.observer import suspension
from pondstack.domain.errors import StaleEpoch, Unavailable
from pondstack.domain.host_sleep import HostSleep, SleepState
from pondstack.domain.host_sleep_step import Act, Seen, Step

pytestmark = pytest.mark.unit

S = SleepState
ITEM = HostSleep("0f9d7a52-6c1e-4b3f-8a27-d4e5c6b7a820", "h1", "lowpower-s0", S.WAKING, "woken by hand")
BACK = Step(Act.END, S.RECLAIMING, "woken by hand")
STAYS = Step(Act.WAIT, S.WAKING, "woken by hand")


class Agents:
    """All agents, which answer so, or raise; `told`: whom and what."""

    def __init__(self, answer):
        self.answer, self.told = answer, []

    def end_suspension(self, host, *, epoch, operation_id):
        self.told.append((host, epoch, operation_id))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def acted(answer):
    agents, nothing = Agents(answer), lambda *_words: None
    actor = Actor(SimpleNamespace(epoch=7), None, agents, None, {}, lends=None, admit=nothing, fence=nothing)
    step = actor.act(ITEM, BACK, Seen())
    assert agents.told == [("h1", 7, suspension(ITEM))]
    return step


@pytest.mark.parametrize(
    ("answer", "step"),
    [
        ({"operation_id": suspension(ITEM), "state": "woken"}, BACK),
        ({"operation_id": "", "state": ""}, BACK),
        ({"operation_id": "another", "state": "entering"}, BACK),
        ({"operation_id": suspension(ITEM), "state": "entering"}, STAYS),
        (oslo_messaging.RPCVersionCapError(version="1.20", version_cap="1.19"), BACK),
        (oslo_messaging.UnsupportedVersion("1.20"), BACK),
        (oslo_messaging.RemoteError("UnsupportedVersion", "1.20"), BACK),
    ],
)
def test_a_host_is_its_own_again_once_it_refuses_to_sleep(answer, step):
    assert acted(answer) == step


def test_one_that_does_not_answer_is_asked_again():
    with pytest.raises(Unavailable, match="h1"):
        acted(oslo_messaging.MessagingTimeout())


@pytest.mark.parametrize("error", [StaleEpoch("another leads"), oslo_messaging.RemoteError("ValueError", "bad")])
def test_what_went_wrong_otherwise_is_not_taken_for_an_answer(error):
    with pytest.raises(type(error)):
        acted(error)
