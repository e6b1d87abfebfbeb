"""The validation finds each kind of broken promise in a forged history, and nothing in a sound one."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.robustness.forged import POOL, Forge, free_rack, move, sound
from tests.robustness.history import Call, History, Injected, Kind, Outcome, Recorder, time_to_resume
from tests.robustness.validate import validate


def codes(forge: Forge) -> set[str]:
    """Return the codes of what the validation finds."""
    return {broken.code for broken in validate(forge.history)}


def test_a_sound_history_has_nothing_broken() -> None:
    assert validate(sound().history) == []


@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.OK])
def test_an_unknown_release_may_have_taken_effect(outcome: Outcome) -> None:
    """The next owner of the slices is legal whether the caller was told or not."""
    forge = Forge()
    forge.assign("a", "h1", [0])
    forge.acknowledge("a")
    forge.release("a", outcome)
    forge.assign("b", "h2", [0])
    assert validate(forge.history) == []


def test_an_unknown_assignment_may_have_taken_effect_or_not() -> None:
    forge = Forge()
    forge.assign("a", "h1", [0], Outcome.UNKNOWN)
    assert validate(forge.history) == []
    forge.forget("assign-a")
    assert validate(forge.history) == []


def test_a_double_grant_is_found_in_the_journal_and_in_the_answers() -> None:
    forge = Forge()
    forge.assign("a", "h1", [0, 1])
    forge.acknowledge("a")
    forge.assign("b", "h2", [1])
    found = [broken.detail for broken in validate(forge.history) if broken.code == "double_owner"]
    assert len(found) == 2
    forge.history.journal = []
    assert "double_owner" in codes(forge)


def test_a_grant_before_the_release_was_asked_for_is_a_double_grant() -> None:
    """The journal may look sound; the answers alone contradict each other."""
    forge = sound()
    forge.spoil("release-a", begun=7.0, ended=8.0)
    assert codes(forge) >= {"double_owner", "order"}


@pytest.mark.parametrize("operation_id", ["assign-b", "acknowledge-a", "release-a"])
def test_a_lost_acknowledgement_is_found(operation_id: str) -> None:
    forge = sound()
    forge.forget(operation_id)
    assert "lost" in codes(forge)


def test_an_attach_needs_assignment_and_acknowledgement_under_its_own_id() -> None:
    forge = Forge()
    forge.assign("a", "h1", [0])
    forge.spoil("assign-a", kind=Kind.ATTACH)
    assert codes(forge) == {"lost"}


@pytest.mark.parametrize("changes", [{"slices": (0, 2)}, {"allocation_uuid": "z"}, {"epoch": 0}])
def test_an_answer_that_the_journal_does_not_bear_out_is_found(changes: dict[str, object]) -> None:
    forge = sound()
    forge.spoil("assign-a", **changes)
    assert "wrong_effect" in codes(forge)


def test_a_write_from_an_old_epoch_is_found() -> None:
    forge = sound()
    forge.epoch = 1
    forge.entry("late", "acknowledge", {"slices": [], "moves": []})
    assert codes(forge) == {"old_epoch"}


def test_an_operation_that_took_effect_twice_is_found() -> None:
    forge = sound()
    forge.entry("release-a", "release", {"slices": [], "moves": []})
    assert "duplicate" in codes(forge)


def test_a_release_under_two_ids_that_both_took_effect_is_found() -> None:
    forge = sound()
    forge.entry("again", "release", {"slices": [0], "moves": [move([0], "online", "sanitizing")]})
    assert "duplicate" in codes(forge)


def test_one_allocation_that_was_assigned_by_two_operations_is_found() -> None:
    forge = sound()
    forge.entry("again", "assign", {"moves": [move([3], "free", "assigning", "h1", "a")]})
    assert "duplicate" in codes(forge)


def test_slices_that_are_handed_on_unsanitised_are_found() -> None:
    forge = sound()
    forge.forget("sanitized-a")
    assert "replay" in codes(forge)


def test_an_order_against_real_time_is_found() -> None:
    """`a` was answered before `b` began, and the journal has them the other way round."""
    forge = Forge()
    forge.assign("a", "h1", [0])
    forge.assign("b", "h2", [1])
    first, second = forge.history.journal[1:]
    forge.history.journal[1:] = [replace(second, sequence=2), replace(first, sequence=3)]
    assert codes(forge) == {"order"}


def test_a_ledger_that_differs_from_its_journal_is_found() -> None:
    forge = sound()
    rack = free_rack()
    rack.ledger[POOL, 0] = ("online", "h1", "a")
    forge.history.drained = rack
    assert codes(forge) >= {"replay", "left_over", "release_lost", "ledger_agents", "ledger_device"}


def test_agents_and_devices_that_hold_what_is_free_are_found() -> None:
    forge = sound()
    rack = free_rack()
    rack.attached[POOL, 0] = [("h1", "a")]
    rack.permitted[POOL, 1] = ("h2", "b")
    forge.history.held = rack
    assert codes(forge) == {"ledger_agents", "ledger_device"}


def test_totals_that_are_not_conserved_are_found() -> None:
    forge = sound()
    rack = free_rack()
    del rack.ledger[POOL, 3]
    forge.history.held = rack
    assert "totals" in codes(forge)


def test_findings_of_the_audit_count() -> None:
    forge = sound()
    forge.history.held = replace(free_rack(), audit=("agent_lost: allocation a",))
    assert codes(forge) == {"audit"}


def test_a_saved_history_is_judged_the_same(tmp_path: Path) -> None:
    forge = sound()
    forge.forget("assign-b")
    forge.history.drained = None
    forge.history.save(tmp_path / "history.gz")
    assert validate(History.load(tmp_path / "history.gz")) == validate(forge.history)


def write(begun: float, ended: float, kind: Kind = Kind.ASSIGN, host: str = "h1") -> Call:
    """Return an acknowledged call."""
    return Call("id", kind, host, "vm", begun, ended, Outcome.OK)


def test_time_to_resume_counts_writes_that_began_after_the_fault() -> None:
    fault = Injected("kill leader", 10.0)
    calls = [write(9.9, 10.5), write(10.1, 11.5), write(10.2, 11.0, Kind.DETACH), write(10.3, 11.25)]
    assert time_to_resume(fault, calls) == pytest.approx(1.25)
    assert time_to_resume(fault, calls[:1]) is None
    assert time_to_resume(Injected("kill agent", 10.0, host="h2"), calls) is None


def test_waiting_for_a_write_sees_only_what_counts() -> None:
    recorder = Recorder()
    recorder.call(write(9.0, 10.5))
    assert recorder.wait_for_write_after(10.0, 0.0) is None
    recorder.call(write(10.1, 10.6))
    assert recorder.wait_for_write_after(10.0, 0.0) == 10.6
    assert recorder.counts()[Outcome.OK] == 2
