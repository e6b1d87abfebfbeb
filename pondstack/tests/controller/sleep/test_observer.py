"""What is evidence that a sleeper has stopped serving."""

from types import SimpleNamespace

import oslo_messaging
import pytest

from pondstack.controller.sleep.observer import Observer, operation
from pondstack.domain.host_sleep import HostSleep, SleepState, Work
from pondstack.domain.lending import Buffer
from pondstack.domain.rack import HostReport, RackView

pytestmark = pytest.mark.unit

ITEM = HostSleep(
    "0f9d7a52-6c1e-4b3f-8a27-d4e5c6b7a820", "h1", "lowpower-s0", SleepState.ASLEEP, work=Work(incarnation="i1")
)
LINKED, LOST = [["h1", "i1"]], [["h1", "i0"]]


def host(name, links, age=1.0):
    return HostReport(name, True, "", None, age, borrowed={"links": links} if links is not None else {})


def observed(*hosts, waker=None, users=("h2",)):
    """Return which borrower has lost h1, by what these hosts report; `waker`: what it says."""
    view = RackView(hosts={item.name: item for item in (host("h1", None, 3600.0), *hosts)})
    buffers = [Buffer("h1", "i1", number, host=user) for number, user in enumerate(users)]

    def told(_host):
        if waker is None:
            raise oslo_messaging.MessagingTimeout
        return {"state": waker, "reason": "", "operation_id": operation(ITEM, "suspend")}

    observer = Observer(
        SimpleNamespace(buffers=SimpleNamespace(find=lambda _host: buffers)),
        SimpleNamespace(rack=lambda: view),
        None,
        None,
        None,
        SimpleNamespace(told=told),
        {},
        escrows=True,
        down_seconds=20.0,
    )
    return observer.look(ITEM).silent_for


def test_a_borrower_that_lost_it_is_evidence():
    assert observed(host("h2", LOST)) == "h2"
    assert observed(host("h2", [])) == "h2"


def test_nobody_is_believed_while_another_one_is_linked():
    assert observed(host("h2", LOST), host("h3", LINKED)) == ""


def test_nobody_is_believed_while_its_waker_answers():
    assert observed(host("h2", LOST), waker="entering") == ""


def test_who_never_used_it_lost_nothing():
    assert observed(host("h2", LINKED), host("h3", LOST)) == ""
    assert observed(host("h3", LOST)) == ""


@pytest.mark.parametrize("silent", [host("h2", LOST, 3600.0), host("h2", None)])
def test_who_says_nothing_says_nothing(silent):
    assert observed(silent) == ""
