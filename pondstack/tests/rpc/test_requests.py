"""What a request is on the bus: the keyword arguments that agents and controllers of the former release know."""

from typing import Any

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


def test_attach_is_sent_as_before() -> None:
    host, method, arguments = sent(Agents(None).attach, "op1", ASSIGN)
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
