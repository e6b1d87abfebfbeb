"""A migration fails while its source's agent is silent: the release that had begun there is taken back, end to end."""

import pytest

from pondstack.ledger.slices import Slices
from pondstack.tests.controller.reconcile.test_reconciler import NOW, boot, nova

__all__ = ["nova"]

DOWN = {"agent_down_seconds": -1.0, **NOW}


@pytest.fixture(params=["releasing", "quarantined"])
def source(request, placed, nova):
    """A guest's memory whose release began while its agent was silent and its claim bore another name."""
    grant = boot(placed, nova)
    agent = placed.agents["h1"]
    agent.up = False
    nova.drop(grant.consumer_uuid)
    for _ in range(1 if request.param == "releasing" else 2):
        placed.reconcile(**DOWN)
    assert placed.count(request.param) == 2
    nova.claim(grant.consumer_uuid)
    agent.up = True
    placed.beat()
    return grant


@pytest.mark.parametrize("in_use", [True, False], ids=["running", "off"])
def test_a_migration_that_failed_leaves_the_source_its_memory(placed, source, in_use):
    if not in_use:
        placed.agents["h1"].idle()
    assert "claimed_again" in placed.reconcile(**NOW)
    assert placed.count("online") == 2
    assert source.allocation_uuid in placed.agents["h1"].attached
    assert placed.reconcile(**NOW) == []


@pytest.mark.usefixtures("source")
def test_while_its_host_does_not_report_it_stays_as_it_is(placed):
    placed.agents["h1"].up = False
    before = placed.states()
    assert "claimed_again" in placed.reconcile(**NOW)
    assert placed.states() == before


@pytest.mark.usefixtures("source")
def test_a_host_that_let_go_meanwhile_gives_it_back(placed, monkeypatch):
    """Its confirmation is committed between our decision and our commit."""
    plain = Slices.reinstate

    def reinstate(self, uuid):
        placed.release(uuid)
        return plain(self, uuid)

    monkeypatch.setattr(Slices, "reinstate", reinstate)
    placed.reconcile(**NOW)
    assert placed.count("free") == 8


def test_a_host_that_lets_go_a_moment_later_gives_it_back(placed, source):
    placed.reconcile(**NOW)
    placed.release(source.allocation_uuid)
    placed.reconcile(**NOW)
    assert placed.count("free") == 8


def test_an_old_command_to_let_go_that_comes_late_leaves_nothing_online(placed, source, nova):
    """Its answer is lost: the host obeys while the guest is off, and no later report has the memory."""
    agent = placed.agents["h1"]
    placed.reconcile(**NOW)
    agent.idle()
    agent.offline(source.allocation_uuid)
    placed.beat()
    assert "agent_lost" in placed.reconcile(**NOW)
    assert placed.count("quarantined") == 2
    nova.drop(source.consumer_uuid)
    placed.reconcile(**NOW)
    assert placed.count("free") == 8
