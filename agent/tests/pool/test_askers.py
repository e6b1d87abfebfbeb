"""Attack: the nova-compute of a host asks another host's agent what a server holds that does not move there."""

from typing import Any

import oslo_messaging
import pytest

from agent.tests.conftest import Rig
from pondstack.domain.errors import Refused, Unavailable, to_domain
from pondstack.rpc.identity.caller import with_caller
from pondstack.rpc.identity.identity import Identity


def ask(rig: Rig, caller: str, consumer: str = "vm1") -> Any:
    context = with_caller({}, Identity.parse(caller) if caller else None)
    try:
        return rig.agent.endpoint.get_attachment(context, consumer_uuid=consumer)
    except oslo_messaging.ExpectedException as wrapped:
        raise wrapped.exc_info[1] from None


def test_another_hosts_compute_hears_nothing_of_a_server_that_stays(rig) -> None:
    rig.attach("op1")
    with pytest.raises(Refused, match="compute/host2 asked what server vm1 holds on host1, which does not move there"):
        ask(rig, "compute/host2")
    rig.controller.migrations = {("vm2", "host2"), ("vm1", "host3")}
    with pytest.raises(Refused):
        ask(rig, "compute/host2")


def test_the_destination_of_a_move_hears_it(rig) -> None:
    held = rig.attach("op1")
    rig.controller.migrations = {("vm1", "host2")}
    assert ask(rig, "compute/host2") == held.to_wire()


def test_the_own_compute_hears_it_without_a_controller(rig) -> None:
    held = rig.attach("op1")
    before = list(rig.controller.calls)
    assert ask(rig, "compute/host1") == held.to_wire()
    assert ask(rig, "") == held.to_wire(), "within one process, or let in for an upgrade"
    assert rig.controller.calls == before


def test_what_is_not_held_no_controller_is_asked_about(rig) -> None:
    """Guests without pool memory move while no controller answers."""
    assert ask(rig, "compute/host2") is None
    assert "confirm_migration" not in rig.controller.calls


def test_while_no_controller_says_it_is_unavailable_and_not_nothing(rig) -> None:
    """nova-compute asks again; it must not take the guest for one without pool memory."""

    def away(**_arguments: Any) -> None:
        raise Unavailable("no controller answers")

    rig.attach("op1")
    rig.controller.migrations = {("vm1", "host2")}
    rig.controller.before["confirm_migration"] = [away]
    with pytest.raises(Unavailable):
        ask(rig, "compute/host2")
    assert ask(rig, "compute/host2") is not None


def test_its_errors_cross_the_bus() -> None:
    assert type(to_domain(Refused("x"))) is Refused
