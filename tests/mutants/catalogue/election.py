"""Faults planted in the election of the leader."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "answers_after_its_lease",
        "pondstack/ha/candidate.py",
        'if self._clock() >= self._ends:\n                raise NotLeader(f"controller {self._name} could',
        'if self._ends < 0:\n                raise NotLeader(f"controller {self._name} could',
        ("pondstack/tests/ha/test_candidate.py",),
        "a leader answers after the end of its lease",
    ),
    Mutant(
        "write_of_an_old_epoch_renews",
        "pondstack/ha/candidate.py",
        "if epoch == self._epoch and started > self._renewed:",
        "if started > self._renewed:",
        ("pondstack/tests/ha/test_candidate.py::test_a_write_of_another_epoch_or_an_older_one_renews_nothing",),
        "a write under an old epoch lengthens the new lease",
    ),
    Mutant(
        "late_renewal_leads_on",
        "pondstack/ha/candidate.py",
        '            if self._clock() >= self._ends:\n                self.step_down("the renewal came too late")\n',
        "",
        ("pondstack/tests/ha/test_candidate.py::test_a_renewal_that_was_slower_than_the_lease_ends_it",),
        "a leader whose renewal came back after its end leads on",
    ),
    Mutant(
        "lead_to_one_cut_off",
        "pondstack/ha/broker.py",
        "if peer.standby and peer.reached_seconds is not None and peer.reached_seconds <= terms.fresh_seconds",
        "if peer.standby and peer.reached_seconds is not None",
        ("pondstack/tests/ha/test_broker.py",),
        "the lead goes to a controller that is cut off from the broker as well",
    ),
)
