"""Asking for an offer, and giving one: across releases, too."""

from types import SimpleNamespace
from typing import Any

import oslo_messaging
import pytest

from pondstack.domain.errors import BadRequest, PondError
from pondstack_rack.wait import wait_until
from pondstack_rdma.messaging import messages
from pondstack_rdma.messaging.clients import RdmaClients
from pondstack_rdma.messaging.introducer import UnsignedIntroducer
from pondstack_rdma.messaging.listener import RdmaListener
from pondstack_rdma.messaging.messages import OfferRequest
from pondstack_rdma.messaging.settings import Settings
from pondstack_rdma.rpc.layout import Layout
from pondstack_rdma.rpc.offer import Offer
from pondstack_rdma.rpc.server import ServerTerms
from pondstack_rdma.rpc.session import KeyPair
from pondstack_rdma.shm import ShmTransport
from rdma.tests.harness import DEADLINE_SECONDS

TARGET = oslo_messaging.Target(exchange="e", topic="t", server="one")


class Incoming:
    """A request from the broker, and what it was answered."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.message = {"method": messages.OFFER_METHOD, "args": arguments}
        self.ctxt: dict[str, Any] = {}
        self.answer: Any = None
        self.failure: Any = None

    def acknowledge(self) -> None:
        pass

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        self.answer, self.failure = reply, failure


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(ShmTransport(tmp_path), Layout(), ServerTerms(linger_seconds=0.1), 10.0, 0.05)


@pytest.fixture
def listener(settings: Settings):
    quiet = SimpleNamespace(
        batch_size=1,
        batch_timeout=None,
        prefetch_size=0,
        start=lambda _callback: None,
        stop=lambda: None,
        cleanup=lambda: None,
    )
    made = RdmaListener(quiet, TARGET, settings, UnsignedIntroducer())
    made.start(lambda _incoming: None)
    yield made
    made.stop()
    made.cleanup()


def asked(listener: RdmaListener, arguments: dict[str, Any]) -> Incoming:
    incoming = Incoming(arguments)
    listener._from_broker([incoming])
    return incoming


def test_who_asks_with_a_key_of_his_own_gets_a_session(listener: RdmaListener) -> None:
    pair = KeyPair()
    offer = Offer.from_dict(asked(listener, OfferRequest("shm", pair.public).to_args()).answer)
    assert pair.call(offer.public_key, offer.session).name == offer.session


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"driver": "shm"}, "older release: upgrade it"),
        ({"driver": "shm", "public_key": 7}, "no request"),
        ({"driver": "shm", "public_key": "00"}, "public key"),
        (OfferRequest("verbs", KeyPair().public).to_args(), "make them the same"),
    ],
)
def test_who_asks_otherwise_is_told_why_he_gets_none(
    listener: RdmaListener, arguments: dict[str, Any], why: str
) -> None:
    incoming = asked(listener, arguments)
    assert incoming.answer is None
    assert isinstance(incoming.failure[1], BadRequest)
    assert why in incoming.failure[1].message


def test_a_server_of_the_former_release_is_called_over_the_broker(settings: Settings, caplog) -> None:
    """It offers a region without a session; nothing goes through that."""
    asked_with: list[bytes] = []

    def ask(_target: Any, public_key: bytes) -> Any:
        asked_with.append(public_key)
        return {"version": 1, "generation": 7}

    told: list[PondError] = []
    clients = RdmaClients(ask, settings, told.append)
    with caplog.at_level("INFO", logger="pondstack_rdma.messaging"):
        assert wait_until(lambda: clients.get(TARGET) is None and len(asked_with) >= 2, DEADLINE_SECONDS)
    clients.close()
    assert caplog.text.count("version 1, known is 2: upgrade both ends") == 1
    assert len(set(asked_with)) == len(asked_with), "a key is of one session"
