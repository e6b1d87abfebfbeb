"""What a leader refuses once its epoch has ended, whoever leads then; which of its work waits for which."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from pondstack.controller.leader import leader as leaders
from pondstack.controller.leader.leader import Leader
from pondstack.controller.resources import ControllerResources
from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.errors import NotLeader
from pondstack.ha.candidate import Candidate
from pondstack.tests.controller.node.test_node import Nodes

DEADLINE_SECONDS = 60.0


@pytest.fixture
def resources(tmp_path: Path, device: EmulatedDevice):
    """A controller's resources, over SQLite and the in-memory bus."""
    del device
    made = ControllerResources(Nodes(tmp_path).conf("one"))
    yield made
    made.close()


@pytest.fixture
def candidate(resources) -> Candidate:
    """A candidate that leads; time stands still, so that no lease ends by itself."""
    made = Candidate(
        resources.leadership,
        name="one",
        holder=resources.holder,
        terms=resources.terms,
        clock=lambda: 100.0,
        elected=lambda _epoch: None,
        deposed=lambda _reason: None,
    )
    made.tick()
    assert made.epoch == 1
    return made


def lead_again(resources: ControllerResources, candidate: Candidate) -> None:
    """Have a candidate lead under epoch 2."""
    resources.leadership.hand_over(1, "one")
    candidate.step_down("handed over")
    candidate.tick()
    assert candidate.epoch == 2


def test_requests_of_an_old_epoch_are_refused_though_the_same_controller_leads_again(resources, candidate) -> None:
    """They were let in by what another leader has changed since."""
    former = Leader(resources, candidate, 1)
    with former.gate.passing():
        pass
    lead_again(resources, candidate)
    with pytest.raises(NotLeader, match="epoch 1 has ended"), former.gate.passing():
        pytest.fail("it is of the epoch before")
    with Leader(resources, candidate, 2).gate.passing():
        pass


def test_no_round_waits_for_what_was_measured(resources, candidate) -> None:
    """To sum it up may take as long as a database likes."""
    rounds, tidied, over = threading.Event(), threading.Event(), threading.Event()

    def tidy() -> None:
        tidied.set()
        over.wait(2 * DEADLINE_SECONDS)

    resources.measured = (SimpleNamespace(tidy=tidy),)
    leader = Leader(resources, candidate, 1)
    leader.reconciler.run = rounds.set
    leader.open()
    try:
        assert tidied.wait(DEADLINE_SECONDS)
        rounds.clear()  # one that began before says nothing
        assert rounds.wait(DEADLINE_SECONDS)
        assert not over.is_set()
    finally:
        over.set()
        leader.close()


@pytest.mark.parametrize("epoch", [1, 2])
def test_after_a_take_over_what_waited_for_a_leader_goes_first(
    resources, candidate, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    """A leader of a new ledger looks after the rack at once."""
    monkeypatch.setattr(leaders, "QUIET_SECONDS", 10 * DEADLINE_SECONDS)
    if epoch > 1:
        lead_again(resources, candidate)
    leader, rounds = Leader(resources, candidate, epoch), threading.Event()
    leader.reconciler.run = rounds.set
    leader.open()
    try:
        assert rounds.wait(DEADLINE_SECONDS if epoch == 1 else 1.0) == (epoch == 1)
    finally:
        leader.close()  # also while nothing has begun
    assert rounds.is_set() == (epoch == 1)


def test_what_is_quiet_after_a_take_over_looks_after_the_rack_then(
    resources, candidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaders, "QUIET_SECONDS", 0.1)
    lead_again(resources, candidate)
    leader, rounds = Leader(resources, candidate, 2), threading.Event()
    leader.reconciler.run = rounds.set
    leader.open()
    try:
        assert rounds.wait(DEADLINE_SECONDS)
    finally:
        leader.close()
