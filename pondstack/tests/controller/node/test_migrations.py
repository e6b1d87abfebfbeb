"""Which server moves where: by the ledger and a real Placement, and as agents and controllers ask it of each other."""

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import oslo_messaging
import pytest

from pondstack.clients.placement import Inventory
from pondstack.controller.node.migrations import Migrations, migrates
from pondstack.domain.errors import Unavailable
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.tests.controller.conftest import Rack, register_host

VERSION = {"OpenStack-API-Version": "placement 1.36"}


@pytest.fixture
def http(placement_http) -> Any:
    return placement_http


def claim(rack: Rack, http: Any, consumer: str, *hosts: str) -> None:
    """Have a server claim memory of hosts and nothing else, as Nova does."""
    path, places = f"/allocations/{consumer}", {}
    for host in hosts:
        provider = rack.placement.provider_by_name(host)
        rack.placement.set_inventory(provider, "MEMORY_MB", Inventory(65536, 0, 1, 1, 65536))
        places[provider] = {"resources": {"MEMORY_MB": 512}}
    generation = http.get(path, headers=VERSION).json().get("consumer_generation")
    body = {"allocations": places, "consumer_generation": generation, "project_id": "p", "user_id": "u"}
    answer = http.put(path, json=body, headers=VERSION)
    assert answer.status_code == 204, answer.text


def test_a_server_moves_to_the_host_that_it_claims(placed: Rack, http: Any) -> None:
    register_host(placed.placement, "h3")
    consumer = placed.online("h1").consumer_uuid
    found = Migrations(placed.reader, placed.placement)
    claim(placed, http, consumer, "h1")
    assert not found.confirm(consumer, "h1", "h2"), "it stays where it is"
    claim(placed, http, consumer, "h2")
    assert found.confirm(consumer, "h1", "h2")
    assert not found.confirm(consumer, "h1", "h3"), "somebody else asks"
    assert not found.confirm(consumer, "h1", "nowhere")
    assert not found.confirm(consumer, "h2", "h2"), "a host that has nothing of it asks for another"
    assert not found.confirm(str(uuid4()), "h1", "h2")


def test_without_placement_the_ledger_alone_decides(rack: Rack) -> None:
    consumer = rack.online("h1").consumer_uuid
    found = Migrations(rack.reader, None)
    assert found.confirm(consumer, "h1", "h2")
    assert not found.confirm(consumer, "h2", "h1")


def test_what_is_borrowed_counts_like_slices() -> None:
    """A server with remote memory, and without slices, is handed over as well."""
    lent = {"vm": {"h1"}}
    reader: Any = SimpleNamespace(
        allocations=lambda **_: [], borrowing_hosts=lambda consumer: lent.get(consumer, set())
    )
    found = Migrations(reader, None)
    assert found.confirm("vm", "h1", "h2")
    assert not found.confirm("vm", "h2", "h1")
    assert not found.confirm("other", "h1", "h2")


def test_while_placement_does_not_answer_nobody_says_no(placed: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused is for good; nova-compute asks again only what is unavailable."""
    consumer = placed.online("h1").consumer_uuid

    def silent(*_arguments: Any) -> Any:
        raise Unavailable("Placement does not answer")

    monkeypatch.setattr(placed.placement, "held_by", silent)
    with pytest.raises(Unavailable):
        Migrations(placed.reader, placed.placement).confirm(consumer, "h1", "h2")


def test_both_must_say_so() -> None:
    assert migrates({"h1"}, "h1", {"p2"}, "p2")
    assert not migrates({"h3"}, "h1", {"p2"}, "p2")
    assert not migrates({"h1"}, "h1", {"p1"}, "p2")


class Client:
    """A controller as an agent's client sees it."""

    def __init__(self, answer: Any) -> None:
        self._answer, self.asked = answer, []

    def prepare(self, **options: Any) -> "Client":
        self.asked.append(options["version"])
        return self

    def call(self, _context: Any, _method: str, **_arguments: Any) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def asking(answer: Any) -> tuple[ControllerAPI, Client]:
    client = Client(answer)
    return ControllerAPI(SimpleNamespace(client=lambda _target: client)), client


@pytest.mark.parametrize("answer", [True, False])
def test_any_controller_answers_the_agent(answer: bool) -> None:
    api, client = asking(answer)
    assert api.confirm_migration(host="h1", consumer_uuid="c", destination="h2") is answer
    assert client.asked == ["1.2"]


def test_a_controller_of_the_former_release_says_yes_as_its_agents_do() -> None:
    api, _ = asking(oslo_messaging.RemoteError("UnsupportedVersion", "1.2"))
    assert api.confirm_migration(host="h1", consumer_uuid="c", destination="h2")
    api, _ = asking(oslo_messaging.RemoteError("KeyError", "x"))
    with pytest.raises(oslo_messaging.RemoteError):
        api.confirm_migration(host="h1", consumer_uuid="c", destination="h2")
