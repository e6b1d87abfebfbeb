"""Calls that pass the border of a bus, and those that do not; over oslo.messaging's bus within one process."""

import threading
from collections.abc import Iterator
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from pondstack.domain.errors import NotFound, Refused
from pondstack.rpc import targets
from pondstack.rpc.former import does_not_know
from pondstack.rpc.identity import caller
from pondstack.rpc.identity.border import Border
from pondstack.rpc.identity.credential import Authority
from pondstack.rpc.identity.freshness import Freshness
from pondstack.rpc.identity.identity import Identity
from pondstack.rpc.identity.issuer import Issuer
from pondstack.rpc.identity.signature import KEY, Request
from pondstack.rpc.transport import Bus, get_oslo_transport

SECONDS = 30
WINDOW = 60.0


class Endpoint:
    """An agent: what it heard."""

    target = oslo_messaging.Target(version="1.1")

    def __init__(self) -> None:
        self.heard: list[Any] = []

    @oslo_messaging.expected_exceptions(NotFound)
    def attach(self, _context: Any, *, consumer_uuid: str, **more: Any) -> Any:
        self.heard.append((consumer_uuid, more))
        if consumer_uuid == "unknown":
            raise NotFound("no such consumer")
        if consumer_uuid == "bug":
            raise KeyError("a bug")
        return {"got": more, "for": consumer_uuid}

    def get_attachment(self, context: Any, *, consumer_uuid: str) -> Any:
        """Hear who calls."""
        self.heard.append(caller.caller_of(context))
        if consumer_uuid == "not yours":
            raise_refused()

    def secret(self, _context: Any) -> str:
        """No verb of the table."""
        self.heard.append("secret")
        return "told"


@oslo_messaging.expected_exceptions(Refused)
def raise_refused() -> None:
    """Refuse as an endpoint does."""
    raise Refused("it is not yours")


class Rack:
    """A bus in this process, and parties on it."""

    def __init__(self) -> None:
        self.issuer = Issuer.make()
        self.now = 0.0
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        self.transport = get_oslo_transport(conf, "fake://")
        self.endpoint = Endpoint()
        self.refused: list[str] = []
        self._servers: list[Any] = []

    def border(self, name: str, issuer: Issuer | None = None, **named: Any) -> Border:
        """Return the border of a party."""
        named = {"clock": lambda: self.now, **named}
        made = Border(
            (issuer or self.issuer).issue(Identity.parse(name), 1),
            Authority([self.issuer.certificate]),
            Freshness(WINDOW, lambda: self.now),
            **named,
        )
        made.refused = self.refused.append
        return made

    def bus(self, name: str, issuer: Issuer | None = None, **named: Any) -> Bus:
        """Return the bus of a party."""
        return Bus(self.transport, self.border(name, issuer, **named))

    def serve(self, host: str = "h1", name: str = "", border: Border | None = None) -> Border:
        """Have an agent serve under a host's name."""
        border = border or self.border(name or f"agent/{host}")
        server = Bus(self.transport, border).server(targets.agent_target(host), [self.endpoint])
        server.start()
        self._servers.append(server)
        return border

    def call(self, bus: Bus, host: str = "h1", method: str = "attach", **arguments: Any) -> Any:
        """Call an agent."""
        client = bus.client(targets.agent_target(host)).prepare(timeout=SECONDS)
        return client.call({}, method, **(arguments or {"consumer_uuid": "c"}))

    def send(self, context: Any, method: str = "attach", **arguments: Any) -> Any:
        """Publish a message as it is, as whoever has a password of the broker can; returns the reply as it is."""
        client = oslo_messaging.get_rpc_client(self.transport, targets.agent_target("h1"))
        return client.prepare(timeout=SECONDS).call(context, method, **(arguments or {"consumer_uuid": "c"}))

    def stop(self) -> None:
        """End all servers."""
        for server in self._servers:
            server.stop()
            server.wait()
        self.transport.cleanup()


@pytest.fixture
def rack() -> Iterator[Rack]:
    made = Rack()
    yield made
    made.stop()


@pytest.fixture
def compute(rack: Rack) -> Bus:
    rack.serve()
    return rack.bus("compute/h1")


class Recorder:
    """Records a call's context, as somebody who reads along on the broker."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.contexts: list[Any] = []
        real = Border.sign

        def sign(border: Border, request: Any) -> Any:
            seal = real(border, request)
            self.contexts.append({KEY: seal.to_wire()})
            return seal

        monkeypatch.setattr(Border, "sign", sign)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(monkeypatch)


# What passes


def test_a_call_and_its_answer(rack, compute) -> None:
    answer = rack.call(compute, consumer_uuid="c", sizes=(1, 2), text="ä", number=0.1, none=None)
    assert answer == {"got": {"sizes": [1, 2], "text": "ä", "number": 0.1, "none": None}, "for": "c"}
    assert rack.refused == []


def test_an_error_of_ours_is_one_at_the_caller(rack, compute) -> None:
    with pytest.raises(NotFound, match="no such consumer"):
        rack.call(compute, consumer_uuid="unknown")


def test_a_bug_is_an_error_of_the_other_end(rack, compute) -> None:
    with pytest.raises(oslo_messaging.RemoteError) as caught:
        rack.call(compute, consumer_uuid="bug")
    assert caught.value.exc_type == "KeyError"


def test_a_version_that_the_receiver_does_not_have_is_known_as_such(compute) -> None:
    client = compute.client(targets.agent_target("h1")).prepare(timeout=SECONDS, version="1.2")
    with pytest.raises(oslo_messaging.RemoteError) as caught:
        client.call({}, "attach", consumer_uuid="c")
    assert does_not_know(caught.value)


def test_what_waited_for_the_receivers_start_is_signed_anew(rack, recorder) -> None:
    rack.now = 100.0
    border = rack.border("agent/h1")
    answers: list[Any] = []
    bus = rack.bus("compute/h1", clock=lambda: 99.0 if len(recorder.contexts) < 1 else 101.0)
    caller = threading.Thread(target=lambda: answers.append(rack.call(bus)))
    caller.start()
    rack.serve(border=border)
    caller.join(SECONDS)
    assert answers == [{"got": {}, "for": "c"}]
    assert len(recorder.contexts) == 2
    assert len(rack.endpoint.heard) == 1


# What does not


@pytest.mark.parametrize("caller", ["compute/h2", "agent/h1", "agent/h2", "scheduler/h1", "api/h1", "controller/h1"])
def test_another_party_is_refused_by_name(rack, compute, caller) -> None:
    del compute
    with pytest.raises(Refused, match=caller):
        rack.call(rack.bus(caller))
    assert rack.endpoint.heard == []
    assert "pondstack.refused" in rack.refused


def test_who_has_no_credential_is_refused(rack, compute) -> None:
    del compute
    with pytest.raises(Refused, match="nobody signed"):
        rack.send({})
    assert rack.endpoint.heard == []


def test_another_racks_credential_is_worth_nothing(rack, compute) -> None:
    del compute
    with pytest.raises(Refused, match="not this rack's"):
        rack.call(rack.bus("compute/h1", Issuer.make()))
    assert rack.endpoint.heard == []


def test_a_verb_that_is_not_in_the_table_is_nobodys(rack, compute) -> None:
    with pytest.raises(Refused, match="nobody may call"):
        rack.call(compute, method="secret", x=1)
    assert rack.endpoint.heard == []


def failure(reply: Any) -> str:
    return str(reply["content"]["failure"]["kind"])


def test_what_was_recorded_is_refused_later(rack, compute, recorder) -> None:
    rack.call(compute)
    assert failure(rack.send(recorder.contexts[0])) == "Refused"
    rack.now += WINDOW + 1
    assert failure(rack.send(recorder.contexts[0])) == "StaleMessage"
    assert len(rack.endpoint.heard) == 1


@pytest.mark.parametrize(
    "arguments", [{"consumer_uuid": "d"}, {"consumer_uuid": "c", "more": 1}, {"consumer_uuid": "c", "force": True}]
)
def test_a_changed_argument_is_noticed(rack, compute, arguments) -> None:
    context = {KEY: compute.border.sign(_request()).to_wire()}
    assert failure(rack.send(context, **arguments)) == "Refused"
    assert rack.endpoint.heard == []


def _request(to: str = "pondstack-agent/h1", method: str = "attach") -> Request:
    return Request(to, method, "1.0", {"consumer_uuid": "c"})


def test_a_call_of_one_verb_is_none_of_another(rack, compute) -> None:
    context = {KEY: compute.border.sign(_request(method="detach")).to_wire()}
    assert failure(rack.send(context)) == "Refused"


@pytest.mark.parametrize("to", ["pondstack-agent/h2", "pondstack-agent", "pondstack-controller"])
def test_a_call_of_one_host_is_none_of_another(rack, compute, to) -> None:
    """Whoever reads along publishes it into the other queue."""
    context = {KEY: compute.border.sign(_request(to)).to_wire()}
    assert failure(rack.send(context)) == "Refused"
    assert rack.endpoint.heard == []


@pytest.mark.parametrize(
    "junk",
    [None, 1, "x", [], {}, {"certificate": 1}, {"certificate": "%", "at": 1, "nonce": "x" * 32, "signature": ""}],
)
def test_junk_in_the_signatures_place_is_refused(rack, compute, junk) -> None:
    del compute
    with pytest.raises(Refused):
        rack.send({KEY: junk})
    assert rack.endpoint.heard == []


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1, 1e300, True, "1", None])
def test_no_moment_is_no_moment(rack, compute, at) -> None:
    context = {KEY: compute.border.sign(_request()).to_wire() | {"at": at}}
    with pytest.raises(Refused):
        rack.send(context)


def test_a_revoked_credential_is_refused_and_a_later_one_is_not(rack) -> None:
    border = rack.serve()
    old = rack.bus("compute/h1")
    border.revocations.note({"compute/h1": old.border._credential.certificate.not_valid_before_utc.timestamp() + 301})
    with pytest.raises(Refused, match="revoked"):
        rack.call(old)
    border.revocations.note({"compute/h1": 1.0, "agent/h1": 2e9})
    assert rack.call(old)


# Who called


def test_an_endpoint_hears_who_called(rack) -> None:
    rack.serve()
    rack.call(rack.bus("compute/h2"), method="get_attachment")
    assert rack.endpoint.heard == [Identity.parse("compute/h2")]


def test_nobody_says_himself_who_called(rack) -> None:
    rack.serve(border=rack.border("agent/h1", permissive=lambda: True))
    rack.send({caller.KEY: "compute/h1"}, method="get_attachment")
    client = oslo_messaging.get_rpc_client(rack.transport, targets.agent_target("h1")).prepare(timeout=SECONDS)
    seal = rack.border("compute/h2").sign(_request(method="get_attachment"))
    context = {KEY: seal.to_wire(), caller.KEY: "compute/h1"}
    client.call(context, "get_attachment", consumer_uuid="c")
    assert rack.endpoint.heard == [None, Identity.parse("compute/h2")]


def test_what_an_endpoint_refuses_is_counted_with_what_the_border_does(rack) -> None:
    rack.serve()
    with pytest.raises(Refused, match="not yours"):
        rack.call(rack.bus("compute/h2"), method="get_attachment", consumer_uuid="not yours")
    assert rack.refused == ["pondstack.refused"]


# Replies


@pytest.mark.parametrize("name", ["agent/h2", "compute/h1", "controller/h1"])
def test_an_answer_of_somebody_else_is_refused(rack, name) -> None:
    """B consumes A's queue, and answers in its place with its own good credential."""
    rack.serve("h1", name)
    with pytest.raises(Refused, match="answered a call of agent/h1"):
        rack.call(rack.bus("compute/h1"))


def answering(rack: Rack, answer: Any) -> None:
    """Have somebody without a credential serve as the agent of h1."""

    class Liar:
        target = oslo_messaging.Target(version="1.1")

        def attach(self, _context: Any, **_arguments: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    server = oslo_messaging.get_rpc_server(rack.transport, targets.agent_target("h1"), [Liar()], executor="threading")
    server.start()
    rack._servers.append(server)


REMOTE = type("NotFound_Remote", (NotFound,), {})("nothing is there")
"""An error as oslo.messaging makes it of a reply over a broker; within a process it is handed over as it is."""


@pytest.mark.parametrize(
    "answer", [{"got": "slices"}, None, True, REMOTE, oslo_messaging.RemoteError("KeyError", "x")], ids=str
)
def test_an_answer_that_nobody_signed_is_refused(rack, answer) -> None:
    answering(rack, answer)
    with pytest.raises(Refused):
        rack.call(rack.bus("compute/h1"))


def test_an_answer_to_another_request_is_refused(rack) -> None:
    agent, bus = rack.border("agent/h1"), rack.bus("compute/h1")
    answering(rack, agent.answer(bus.border.sign(_request()), {"result": "of before"}))
    with pytest.raises(Refused, match="another request"):
        rack.call(bus)


def test_an_answer_with_another_content_is_refused(rack, monkeypatch) -> None:
    rack.serve()
    real = Border.answer
    monkeypatch.setattr(Border, "answer", lambda *all: real(*all) | {"content": {"result": "forged"}})
    with pytest.raises(Refused, match="signature that is not theirs"):
        rack.call(rack.bus("compute/h1"))


# While releases are mixed


def test_in_an_upgrade_the_former_release_may_call_and_answer(rack) -> None:
    rack.serve(border=rack.border("agent/h1", permissive=lambda: True))
    assert rack.send({}) == {"got": {}, "for": "c"}
    with pytest.raises(Refused, match="compute/h2"):
        rack.call(rack.bus("compute/h2"))  # who signs is held to it


def test_in_an_upgrade_answers_of_the_former_release_are_taken(rack) -> None:
    answering(rack, {"got": "slices"})
    assert rack.call(rack.bus("compute/h1", permissive=lambda: True)) == {"got": "slices"}


def test_in_an_upgrade_errors_of_the_former_release_are_taken(rack) -> None:
    answering(rack, REMOTE)
    with pytest.raises(NotFound, match="nothing is there"):
        rack.call(rack.bus("compute/h1", permissive=lambda: True))
