"""What a request is on the bus: the keyword arguments that agents and controllers of the former release know."""

from dataclasses import replace
from typing import Any

import oslo_messaging
import pytest

from pondstack.domain.requests import AssignRequest, BorrowRequest
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.wire import assign_request, to_arguments

ASSIGN = AssignRequest("vm1", "h1", "pool", 2048, 4096, project_id="p", user_id="u", shape=(1, 1))
BORROW = BorrowRequest("vm1", "h1", 64, guaranteed=True, project_id="p", user_id="u")


class Sent(Exception):
    """Carries a call in place of its answer."""


class Agents(AgentAPI):
    def _call(self, host: str, method: str, **arguments: Any) -> Any:
        raise Sent(host, method, arguments)


class Controller(ControllerAPI):
    def _call(self, method: str, **arguments: Any) -> Any:
        raise Sent(method, arguments)

    def _lent(self, method: str, **arguments: Any) -> Any:
        raise Sent(method, arguments)


def sent(method: Any, *arguments: Any) -> tuple[Any, ...]:
    with pytest.raises(Sent) as caught:
        method(*arguments)
    return caught.value.args


def test_attach_tells_what_the_caller_knows() -> None:
    _, _, arguments = sent(Agents(None).attach, "op1", ASSIGN)
    assert (arguments["version"], arguments["backings"]) == ("1.21", ["file", "node", "devdax"])


def test_attach_is_sent_to_former_agents_as_before() -> None:
    host, method, arguments = sent(Former(None).attach, "op1", ASSIGN)
    assert (host, method) == ("h1", "attach")
    assert arguments == {
        "operation_id": "op1",
        "consumer_uuid": "vm1",
        "pool_uuid": "pool",
        "pool_mib": 2048,
        "guest_mib": 4096,
        "project_id": "p",
        "user_id": "u",
        "shape": [1, 1],
    }


def test_assign_is_sent_as_before() -> None:
    method, arguments = sent(Controller.assign, Controller.__new__(Controller), "op1", ASSIGN)
    assert method == "assign"
    assert arguments == {
        "operation_id": "op1",
        "consumer_uuid": "vm1",
        "host": "h1",
        "pool_uuid": "pool",
        "pool_mib": 2048,
        "guest_mib": 4096,
        "project_id": "p",
        "user_id": "u",
        "shape": [1, 1],
    }


class Former(Agents):
    """Agents of the former release."""

    def _call(self, host: str, method: str, **arguments: Any) -> Any:
        if "version" in arguments:
            raise oslo_messaging.UnsupportedVersion(arguments["version"], method)
        raise Sent(host, method, arguments)


class Known(Agents):
    """Agents of the release that brought hand-overs."""

    def _call(self, host: str, method: str, **arguments: Any) -> Any:
        if arguments.get("version") == "1.21":
            raise oslo_messaging.UnsupportedVersion("1.21", method)
        raise Sent(host, method, arguments)


class FormerController(Controller):
    def _call_since(self, since: str, name: str, /, **arguments: Any) -> Any:
        assert arguments["source"] == "h0"
        raise oslo_messaging.UnsupportedVersion(since, name)


class NewController(Controller):
    def _call_since(self, since: str, name: str, /, **arguments: Any) -> Any:
        raise Sent(since, name, arguments)


def test_a_source_is_sent_to_those_that_know_it() -> None:
    moving = replace(ASSIGN, source="h0")
    for agents, version in ((Agents, "1.21"), (Known, "1.19")):
        arguments = sent(agents(None).attach, "op1", moving)[2]
        assert (arguments["version"], arguments["source"]) == (version, "h0")
    assert sent(Former(None).attach, "op1", moving) == sent(Former(None).attach, "op1", ASSIGN)
    since, _, arguments = sent(NewController.assign, NewController.__new__(NewController), "op1", moving)
    assert (since, arguments["source"]) == ("1.22", "h0")
    apart = replace(moving, write_back=True)
    since, _, arguments = sent(NewController.assign, NewController.__new__(NewController), "op1", apart)
    assert (since, arguments["write_back"]) == ("1.23", True)
    former = sent(FormerController.assign, FormerController.__new__(FormerController), "op1", apart)
    assert former == sent(Controller.assign, Controller.__new__(Controller), "op1", ASSIGN)
    former = sent(FormerController.assign, FormerController.__new__(FormerController), "op1", moving)
    assert former == sent(Controller.assign, Controller.__new__(Controller), "op1", ASSIGN)


def test_borrow_is_sent_as_before() -> None:
    method, arguments = sent(Controller.borrow, Controller.__new__(Controller), "op1", BORROW)
    assert method == "borrow"
    assert arguments == {
        "operation_id": "op1",
        "consumer_uuid": "vm1",
        "host": "h1",
        "remote_mib": 64,
        "guaranteed": True,
        "project_id": "p",
        "user_id": "u",
    }


@pytest.mark.parametrize("shape", [None, (2,), (1, 1)])
def test_an_endpoint_builds_the_request_that_was_sent(shape) -> None:
    request = AssignRequest("vm1", "h1", "pool", 2048, 4096, shape=shape)
    assert assign_request(**to_arguments(request)) == request


def test_an_empty_shape_is_no_shape() -> None:
    arguments = {**to_arguments(ASSIGN), "shape": []}
    assert assign_request(**arguments).shape is None


@pytest.mark.parametrize("change", [{"colour": "red"}, {"host": None}])
def test_an_argument_too_many_or_too_few_is_an_error(change) -> None:
    arguments = {key: value for key, value in {**to_arguments(ASSIGN), **change}.items() if value is not None}
    with pytest.raises(TypeError):
        assign_request(**arguments)
