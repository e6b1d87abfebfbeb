"""Who was shut out is refused by schedulers and nova-computes too: after the next answer of whoever knows of it."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from pondstack.domain.errors import Refused
from pondstack.rpc import targets
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.identity.border import Border
from pondstack.rpc.identity.revocations import Revocations
from pondstack.rpc.transport import Bus, get_oslo_transport
from pondstack.rpc.wire import Snapshot
from pondstack_nova import controller_client
from pondstack_nova.compute import agent_client
from pondstack_nova.compute.agent_client import PoolAttachments, PoolMemoryUnavailable
from pondstack_nova.scheduler import snapshot
from tests.fixtures.identities import Identities

SECONDS = 30.0
LATER = 4e9
"""A moment after each credential was issued."""


class Party:
    """What a controller and an agent answer. `revoked`: what it knows."""

    target = oslo_messaging.Target(version="1.10")

    def __init__(self) -> None:
        self.revoked: dict[str, float] = {}
        self.asked: list[str] = []

    def snapshot(self, _context: Any) -> Any:
        self.asked.append("snapshot")
        return Snapshot(1, revoked=self.revoked).to_wire()

    def get_revoked(self, _context: Any) -> Any:
        self.asked.append("get_revoked")
        return self.revoked

    def get_attachment(self, _context: Any, *, consumer_uuid: str) -> Any:
        self.asked.append(consumer_uuid)
        return None


class Place:
    """A bus in this process, with a border for each party."""

    def __init__(self, folder: Any) -> None:
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        self.transport = get_oslo_transport(conf, "fake://")
        self.identities = Identities(folder)
        self._servers: list[Any] = []

    def serve(self, target: Any, identity: str) -> Party:
        party = Party()
        server = Bus(self.transport, self.identities.border(identity)).server(target, [party])
        server.start()
        self._servers.append(server)
        return party

    def bus(self, identity: str, shared: Revocations) -> Bus:
        border: Border = self.identities.border(identity)
        border.revocations = shared
        return Bus(self.transport, border)

    def stop(self) -> None:
        for server in self._servers:
            server.stop()
            server.wait()
        self._servers.clear()


@pytest.fixture
def place(tmp_path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.stop()
    made.transport.cleanup()


@pytest.fixture
def scheduler(place, monkeypatch) -> Any:
    """What a scheduler process asks controllers by, and its view."""
    shared = Revocations()
    monkeypatch.setattr(controller_client, "REVOCATIONS", shared)
    monkeypatch.setattr(
        controller_client, "make_api", lambda: ControllerAPI(place.bus("scheduler/s1", shared), timeout_seconds=SECONDS)
    )
    cache = snapshot.SnapshotCache(snapshot._fetch_from_controller(), interval_seconds=60.0, max_age_seconds=60.0)
    return SimpleNamespace(cache=cache, api=controller_client.make_api(), known=shared)


def test_a_scheduler_refuses_a_revoked_controller_after_the_next_snapshot(place, scheduler) -> None:
    """All of its clients do: those of splits have another connection."""
    place.serve(targets.node_target("c1"), "controller/c1").revoked = {"controller/c2": LATER}
    assert scheduler.cache.refresh()
    place.stop()
    place.serve(targets.node_target("c2"), "controller/c2")
    assert not scheduler.cache.refresh()
    with pytest.raises(Refused, match="controller/c2 was revoked"):
        scheduler.api.snapshot(timeout_seconds=SECONDS)


def test_a_controller_that_is_behind_lets_nobody_in_again(place, scheduler) -> None:
    behind = place.serve(targets.node_target("c1"), "controller/c1")
    behind.revoked = {"controller/c2": LATER, "agent/h1": 1.0}
    assert scheduler.cache.refresh()
    behind.revoked = {"agent/h1": LATER}
    assert scheduler.cache.refresh()
    assert scheduler.known.moments == {"controller/c2": LATER, "agent/h1": LATER}


def test_a_controller_of_the_former_release_says_nothing_of_it(scheduler) -> None:
    told = {key: value for key, value in Snapshot(1).to_wire().items() if key != "revoked"}
    assert Snapshot.from_wire(told).revoked == {}
    scheduler.known.learn({"controller/c2": "soon", "agent/h1": None})
    assert scheduler.known.moments == {}


@pytest.fixture
def compute(place, monkeypatch) -> PoolAttachments:
    """What nova-compute of h2 asks agents by."""
    shared = Revocations()
    monkeypatch.setattr(agent_client, "REVOCATIONS", shared)
    api = AgentAPI(place.bus("compute/h2", shared), timeout_seconds=SECONDS)
    return PoolAttachments(lambda: api, sleep=lambda _seconds: None)


def test_a_nova_compute_refuses_a_revoked_source_once_its_own_agent_knows(place, compute) -> None:
    own = place.serve(targets.agent_target("h2"), "agent/h2")
    place.serve(targets.agent_target("h1"), "agent/h1")
    compute.hear_of_revocations("h2")
    assert compute.find("h1", "vm") is None
    own.revoked = {"agent/h1": LATER}
    compute.hear_of_revocations("h2")
    with pytest.raises(PoolMemoryUnavailable):
        compute.find("h1", "vm")
    with pytest.raises(PoolMemoryUnavailable):
        compute.look_at_source("h1", "vm")
    assert compute.look("h2", "vm") is None, "its own agent is believed"


def test_an_agent_of_the_former_release_holds_nothing_up(place, compute) -> None:
    class Former:
        target = oslo_messaging.Target(version="1.6")

        def get_attachment(self, _context: Any, *, consumer_uuid: str) -> Any:
            del consumer_uuid

    server = Bus(place.transport, place.identities.border("agent/h2")).server(targets.agent_target("h2"), [Former()])
    server.start()
    place._servers.append(server)
    compute.hear_of_revocations("h2")
    assert compute.find("h2", "vm") is None
