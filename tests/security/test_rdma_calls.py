"""Calls over RDMA beside a real RabbitMQ whose password somebody has: sessions are of whom the table allows them."""

import uuid
from collections.abc import Iterator
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from pondstack.conf import rpc as rpc_conf
from pondstack.rpc import targets
from pondstack.rpc.transport import Bus, get_oslo_transport
from pondstack_rack.wait import wait_until
from pondstack_rdma.messaging.messages import OFFER_METHOD, OfferRequest
from pondstack_rdma.model import Ticket
from pondstack_rdma.rpc.call import ClientSlot
from pondstack_rdma.rpc.frame import RequestHeader
from pondstack_rdma.rpc.session import KeyPair
from tests.fixtures.identities import Identities

pytestmark = pytest.mark.functional

SECONDS = 30


class Agent:
    """The victim's agent."""

    target = oslo_messaging.Target(version="1.0")

    def __init__(self) -> None:
        self.done: list[Any] = []

    def report(self, _context: Any, **arguments: Any) -> dict[str, Any]:
        """Note what was called."""
        self.done.append(arguments)
        return arguments


class Place:
    """The agent of h1 and the controller c1, each with a border and [rpc] transport = shm."""

    def __init__(self, folder: Any, url: str) -> None:
        self._folder, self._url = folder, url
        self._identities = Identities(folder / "identities")
        self.agent, self.counted = Agent(), []
        self._buses: list[Bus] = []
        serving = self.bus("agent/h1")
        assert serving.border is not None
        serving.border.refused = self.counted.append
        self._server = serving.server(targets.agent_target("h1"), [self.agent])
        self._server.start()

    def bus(self, identity: str, transport: str = "shm") -> Bus:
        """Return the bus of a party."""
        conf = cfg.ConfigOpts()
        rpc_conf.register_opts(conf)
        conf([], default_config_files=[], default_config_dirs=[])
        values = {"transport": transport, "shm_folder": str(self._folder), "retry_seconds": 0.1}
        for name, value in values.items():
            conf.set_override(name, value, group="rpc")
        border = self._identities.border(identity) if identity else None
        self._buses.append(Bus(get_oslo_transport(conf, self._url), border))
        return self._buses[-1]

    def call(self, bus: Bus, **arguments: Any) -> Any:
        """Call the agent."""
        return bus.client(targets.agent_target("h1")).prepare(timeout=SECONDS).call({}, "report", **arguments)

    def over_rdma(self, bus: Bus) -> Any:
        """Call until calls go over RDMA; return the client of the session."""
        driver = bus.transport._driver
        assert wait_until(lambda: bool(self.call(bus, epoch=1)) and driver.answered > 0, SECONDS)
        (way,) = driver._ways._ways.values()
        return way.client

    def close(self) -> None:
        self._server.stop()
        self._server.wait()
        for bus in self._buses:
            bus.cleanup()


@pytest.fixture
def place(tmp_path, rabbitmq) -> Iterator[Place]:
    made = Place(tmp_path, rabbitmq.transport_url(f"attack-{uuid.uuid4().hex[:8]}"))
    yield made
    made.close()


def test_signed_parties_agree_on_a_session_and_call(place: Place) -> None:
    bus = place.bus("controller/c1")
    place.over_rdma(bus)
    before = bus.transport._driver.answered
    assert place.call(bus, epoch=2) == {"epoch": 2}
    assert bus.transport._driver.answered == before + 1
    assert place.counted == []


@pytest.mark.parametrize("who", ["", "agent/h2", "compute/h1"])
def test_a_password_of_the_broker_gives_nobody_a_session(place: Place, who: str) -> None:
    """Asked for unsigned, or signed by a party that commands no agents."""
    bus = place.bus(who, transport="")
    arguments = OfferRequest("shm", KeyPair().public).to_args()
    with pytest.raises(Exception, match=r"nobody signed|only"):
        bus.client(targets.agent_target("h1")).prepare(timeout=SECONDS).call({}, OFFER_METHOD, **arguments)
    assert place.counted == ["pondstack.refused"]


def test_who_has_read_an_offer_commands_nobody(place: Place) -> None:
    """He has the ticket and the keys of the region, which cross the broker, and writes a request as it should be."""
    bus = place.bus("controller/c1")
    client = place.over_rdma(bus)
    slot: ClientSlot = client._free.get()
    client._free.put(slot)
    offer, done = slot.offer, len(place.agent.done)
    thief = KeyPair().call(offer.public_key, offer.session)
    forging = ClientSlot(slot.link, offer, thief, 0, lambda _error: None)
    part, sealed = forging.sealer.part(b'{"context": {}, "message": {"method": "report", "args": {"epoch": 9}}}')
    header = forging.sealer.header(RequestHeader(0, 10**6, part, 0, 1, len(sealed)))
    ticket = Ticket.from_dict(offer.ticket.to_dict())
    with bus.transport._driver._settings.transport.connect(ticket, float(SECONDS)) as link:
        link.write(offer.region, offer.layout.request(0), sealed)
        link.write(offer.region, offer.layout.header(0), header)
    assert wait_until(lambda: place.counted == ["pondstack.refused"], SECONDS)
    assert place.call(bus, epoch=3) == {"epoch": 3}
    assert [arguments["epoch"] for arguments in place.agent.done[done:]] == [3]
