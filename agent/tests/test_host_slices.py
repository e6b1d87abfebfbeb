"""Slices that the host holds for itself: the controller's command, repeated, met half-way, and taken back."""

from typing import Any

import pytest

from agent.tests.conftest import Rig
from pondstack.domain.errors import BadRequest, Conflict, PurposeConflict, StaleEpoch, Unavailable
from pondstack_agent.endpoint import AgentEndpoint
from pondstack_agent.host_slices import HostSlicesEndpoint
from tests.fixtures.rpc_call import call

CONSUMER = "7a4f5d0e-3c1b-5d6e-8f90-000000000000"


def endpoint(rig: Rig, kind: type[Any] = HostSlicesEndpoint) -> Any:
    """Return the endpoint that has the method, as oslo.messaging finds it."""
    return next(item for item in rig.agent.endpoints if isinstance(item, kind))


def hold(rig: Rig, operation: str, epoch: int = 1, purpose: str = "tier", consumer: str = CONSUMER) -> dict[str, Any]:
    """Call hold as the controller does."""
    wanted = {"consumer_uuid": consumer, "pool_uuid": rig.pool, "pool_mib": 1, "guest_mib": 0, "purpose": purpose}
    return call(endpoint(rig).hold, epoch=epoch, operation_id=operation, **wanted)  # type: ignore[no-any-return]


def test_a_slice_is_held_reported_and_goes_offline_on_command(rig: Rig) -> None:
    held = hold(rig, "op-1")
    [attached] = rig.agent.reporter.report().attached
    assert (attached.allocation_uuid, attached.purpose, attached.in_use) == (held["allocation_uuid"], "tier", False)
    assert rig.controller.states == {held["allocation_uuid"]: "online"}
    command = {"epoch": 1, "operation_id": "op-2", "allocation_uuid": held["allocation_uuid"]}
    assert call(endpoint(rig, AgentEndpoint).offline, **command)
    assert rig.attached() == set()
    rig.controller.states.clear()
    assert hold(rig, "op-3")["allocation_uuid"] != held["allocation_uuid"], "a new one takes its place"


def test_another_command_for_a_slice_that_is_there_answers_it(rig: Rig) -> None:
    assert hold(rig, "op-1") == hold(rig, "op-2")
    assert rig.controller.calls.count("assign") == 1


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("method", ["assign", "acknowledge"])
def test_another_command_goes_on_with_what_one_began(rig: Rig, method: str, moment: str) -> None:
    """The leader that gave the first command may have died, and its successor knows nothing of it."""

    def lose(**_arguments: Any) -> None:
        raise Unavailable("no answer")

    getattr(rig.controller, moment)[method].append(lose)
    with pytest.raises(Unavailable):
        hold(rig, "op-1")
    rig.restart()
    held = hold(rig, "op-2")
    assert rig.controller.held == {held["allocation_uuid"]: "online"}
    assert rig.attached() == {held["allocation_uuid"]}


def test_it_outlives_the_agent_and_is_not_tidied_away(rig: Rig) -> None:
    held = hold(rig, "op-1", purpose="base")
    rig.restart()
    rig.now += 10_000.0
    rig.beat()
    assert rig.attached() == {held["allocation_uuid"]}
    assert hold(rig, "op-2", purpose="base") == held


def test_a_former_leader_is_refused(rig: Rig) -> None:
    rig.controller.lead_again(2)
    hold(rig, "op-1", epoch=2)
    with pytest.raises(StaleEpoch):
        hold(rig, "op-2", epoch=1)


def test_guests_are_not_held_and_not_let_onto_a_tier(rig: Rig) -> None:
    with pytest.raises(BadRequest):
        hold(rig, "op-1", purpose="guest")
    hold(rig, "op-2")
    with pytest.raises(PurposeConflict, match="for tiering"):
        rig.attach("op-3")
    assert len(rig.attached()) == 1


def test_a_tier_is_not_let_onto_guests_and_what_it_got_goes_back(rig: Rig) -> None:
    rig.attach("op-1")
    with pytest.raises(PurposeConflict, match="guests' slices"):
        hold(rig, "op-2")
    rig.beat()
    assert list(rig.controller.held.values()) == ["online"]
    with pytest.raises((PurposeConflict, Conflict)):
        hold(rig, "op-3")
