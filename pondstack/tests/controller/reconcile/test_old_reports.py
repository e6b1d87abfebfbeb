"""A report that was long on its way proves nothing about what happened since."""

import pytest

from pondstack.tests.controller.conftest import call
from pondstack.tests.controller.reconcile.test_reconciler import NOW, boot, nova

__all__ = ["nova"]


def test_a_late_report_that_its_host_does_not_repeat_is_not_acted_on(rack):
    late = rack.agents["h1"].report()
    rack.online(slices=2)
    call(rack.endpoint.heartbeat, report=late.to_wire())
    rack.agents["h1"].up = False
    assert "agent_lost" in rack.reconcile()
    assert rack.count("online") == 2
    rack.agents["h1"].up = True
    assert "agent_lost" not in rack.reconcile()


def test_an_audit_does_not_act_on_it_either(rack):
    late = rack.agents["h1"].report()
    rack.online(slices=2)
    call(rack.endpoint.heartbeat, report=late.to_wire())
    rack.agents["h1"].up = False
    answer = call(rack.endpoint.audit, repair=True)
    assert rack.count("online") == 2
    assert not answer["clean"]


def test_what_the_host_repeats_is_acted_on(rack):
    rack.online(slices=2)
    rack.agents["h1"].attached.clear()
    assert "agent_lost" in rack.reconcile()
    assert rack.count("quarantined") == 2


# Commands to agents, which know what happened since


@pytest.fixture
def unclaimed(placed, nova):
    """Memory of a guest that is gone; the leader commands its host to take it offline."""
    grant = boot(placed, nova)
    placed.agents["h1"].idle()
    nova.drop(grant.consumer_uuid)
    placed.beat()
    return grant


def test_what_came_online_after_the_report_is_kept(placed, unclaimed):
    """An offline rests on a report, and says on which."""
    agent = placed.agents["h1"]
    agent.before_offline = lambda: agent.hold(unclaimed, in_use=False)
    placed.reconcile(**NOW)
    assert agent.offlines == [unclaimed.allocation_uuid]
    assert unclaimed.allocation_uuid in agent.attached
    assert placed.count("online") == 2


def test_what_goes_offline_in_the_background_is_not_free_before_its_end(placed, unclaimed):
    """The agent answers that it takes long; until it reports the release, the kernel may still use the memory."""
    agent = placed.agents["h1"]
    agent.slow = True
    for _ in range(2):
        placed.reconcile(**NOW)
        assert placed.count("free") == 6
    assert agent.offlines
    agent.attached.clear()
    agent.released.append(unclaimed.allocation_uuid)
    placed.beat()
    placed.reconcile(**NOW)
    assert placed.count("free") == 8


def test_a_command_has_its_leaders_epoch(placed, unclaimed):
    placed.reconcile(**NOW)
    assert placed.agents["h1"].epoch == placed.ledger.epoch
    assert unclaimed.allocation_uuid not in placed.agents["h1"].attached
