"""Offers of calls over RDMA: asked for and given by those only whom the table allows it, and signed."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from oslo_messaging.rpc.dispatcher import ExpectedException

from pondstack.domain.errors import BadRequest, Refused
from pondstack.rpc import targets
from pondstack.rpc.identity.border import Border
from pondstack.rpc.identity.callers import OFFER_RDMA
from pondstack.rpc.identity.introducer import SignedIntroducer
from pondstack.rpc.transport import Bus
from pondstack_rdma.messaging.messages import OFFER_METHOD, OFFER_VERSION
from tests.fixtures.identities import Identities

ARGUMENTS = {"driver": "shm", "public_key": "00"}


class Client:
    """Asks a server within this process, as over the broker; `change` is what somebody does on the way back."""

    def __init__(self, server: Border, make: Callable[[Any], Any]) -> None:
        self.target = targets.agent_target("h1")(version=OFFER_VERSION)
        self.change: Callable[[Any], Any] = lambda answer: answer
        self._server, self._make = SignedIntroducer(server), make

    def call(self, context: dict[str, Any], method: str, **arguments: Any) -> Any:
        message = {"method": method, "version": OFFER_VERSION, "args": arguments}
        incoming = SimpleNamespace(ctxt=context, message=message)
        try:
            return self.change(self._server.answer(self.target, incoming, self._make))
        except ExpectedException as expected:
            error = expected.exc_info[1]
            raise type(f"{type(error).__name__}_Remote", (Exception,), {})(str(error)) from None


@pytest.fixture
def identities(tmp_path: Path) -> Identities:
    return Identities(tmp_path)


def ask(identities: Identities, who: str, make: Callable[[Any], Any], change: Any = None) -> Any:
    """Have a party ask the agent of h1 for an offer."""
    client = Client(identities.border("agent/h1"), make)
    client.change = change or client.change
    return SignedIntroducer(identities.border(who)).ask(client, OFFER_METHOD, ARGUMENTS)


def test_the_table_and_the_driver_name_the_same_verb() -> None:
    assert OFFER_RDMA == OFFER_METHOD


def test_a_controller_gets_what_the_agent_offers(identities: Identities) -> None:
    assert ask(identities, "controller/c1", lambda arguments: {"for": arguments}) == {"for": ARGUMENTS}


@pytest.mark.parametrize("who", ["agent/h2", "compute/h1", "scheduler/s1", "api/a1"])
def test_nobody_else_gets_an_offer_of_an_agent(identities: Identities, who: str) -> None:
    made: list[Any] = []
    with pytest.raises(Refused, match="only"):
        ask(identities, who, made.append)
    assert made == []


def test_who_does_not_sign_gets_none_and_is_counted(identities: Identities) -> None:
    server, made, counted = identities.border("agent/h1"), [], []
    server.refused = counted.append
    client = Client(server, made.append)
    with pytest.raises(Exception, match="nobody signed") as refusal:
        client.call({}, OFFER_METHOD, **ARGUMENTS)
    assert type(refusal.value).__name__ == "Refused_Remote"
    assert (made, counted) == ([], ["pondstack.refused"])


def test_an_offer_that_was_changed_on_its_way_is_refused(identities: Identities) -> None:
    """Such as by somebody with keys of his own between the two."""

    def exchange(answer: dict[str, Any]) -> dict[str, Any]:
        return {**answer, "content": {"result": {"public_key": "11"}}}

    for change in (exchange, lambda _answer: {"public_key": "11"}):
        with pytest.raises(Refused):
            ask(identities, "controller/c1", lambda _arguments: {"public_key": "22"}, change)


def test_why_there_is_no_offer_reaches_who_asked(identities: Identities) -> None:
    def make(_arguments: Any) -> Any:
        raise BadRequest("another transport")

    with pytest.raises(BadRequest, match="another transport"):
        ask(identities, "controller/c1", make)


def test_a_bus_with_identities_introduces_its_driver(identities: Identities) -> None:
    border, counted = identities.border("controller/c1"), []
    border.refused = counted.append
    driver = SimpleNamespace(introducer=None)
    Bus(SimpleNamespace(_driver=driver), border)
    assert isinstance(driver.introducer, SignedIntroducer)
    driver.introducer.note(Refused("a frame"))
    assert counted == ["pondstack.refused"]
