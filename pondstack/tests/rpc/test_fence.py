"""A fence names the generation of its host where the caller knows it; controllers of the former release know none."""

from types import SimpleNamespace

import pytest

from pondstack.controller.leader.endpoint import LeaderEndpoint
from pondstack.rpc.controller_api import HAND_OVER_VERSION, ControllerAPI
from pondstack.rpc.controller_host_api import FENCE_VERSION

FENCE = {"name": "h1", "reason": "it burns", "force": True, "operation_id": "op"}


@pytest.fixture
def bus():
    """What was asked of the controller: the version that it must have, and the arguments; and who asks."""
    found = []

    def prepare(*, timeout, version=None):
        assert timeout
        return SimpleNamespace(call=lambda _context, method, **named: found.append((method, version, named)))

    client = SimpleNamespace(prepare=prepare)
    return found, ControllerAPI(SimpleNamespace(client=lambda _target: client))


def test_a_generation_asks_for_a_controller_that_compares_it(bus):
    asked, controller = bus
    controller.fence_host(**FENCE, generation=0)
    assert asked == [("fence_host", FENCE_VERSION, {**FENCE, "generation": 0})]
    assert LeaderEndpoint.target.version == HAND_OVER_VERSION, "which is later"


def test_without_one_it_is_the_request_of_the_former_release(bus):
    asked, controller = bus
    controller.fence_host(**FENCE, generation=None)
    assert asked == [("fence_host", None, FENCE)]
