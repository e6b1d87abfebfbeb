"""How failures of the message bus and of the controller look to the agent."""

import json
import threading

import oslo_messaging
import pytest
from kombu.exceptions import OperationalError
from oslo_messaging._drivers import common

from pondstack.domain.errors import PoolShortage, Unavailable
from pondstack.rpc.bounded import BoundedCalls
from pondstack_agent.controller_link import controller_link


class Failing:
    """A controller whose every call raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def release(self, **_arguments: str) -> None:
        raise self.error


def call(controller, calls: BoundedCalls | None = None, deadline_seconds: float = 30.0) -> None:
    link = controller_link(controller, calls, deadline_seconds)
    link.release(operation_id="op", allocation_uuid="a", host="h")


@pytest.mark.parametrize(
    "error",
    [
        oslo_messaging.MessagingTimeout("late"),
        oslo_messaging.MessageDeliveryFailure("lost"),
        oslo_messaging.RemoteError("DBConnectionError", "MariaDB is away", []),
        OperationalError("broker away"),
        ConnectionRefusedError("broker away"),
    ],
)
def test_what_may_be_repeated_is_unavailable(error: Exception) -> None:
    with pytest.raises(Unavailable, match="same operation id"):
        call(Failing(error))


def test_an_error_from_afar_becomes_our_own_class() -> None:
    """So that it can cross RPC once more, without the traceback of the first crossing in its text."""
    try:
        raise PoolShortage("no slices")
    except PoolShortage as error:
        failure = common.serialize_remote_exception((type(error), error, error.__traceback__))
    remote = common.deserialize_remote_exception(failure, ["pondstack.domain.errors"])
    assert "Traceback" in str(remote)
    with pytest.raises(PoolShortage) as caught:
        call(Failing(remote))
    assert type(caught.value) is PoolShortage
    assert str(caught.value) == "no slices"
    json.dumps(caught.value.args)


def test_a_bus_that_never_returns_meets_the_deadline() -> None:
    back = threading.Event()

    class Stuck:
        def release(self, **_arguments: str) -> None:
            back.wait(30)

    calls = BoundedCalls(1)
    try:
        for _ in range(2):  # the second one is not made at all
            with pytest.raises(Unavailable, match="did not answer release in time"):
                call(Stuck(), calls, deadline_seconds=0.05)
    finally:
        back.set()
