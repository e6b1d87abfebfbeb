"""Faults planted in the QoS monitor: whom it has mitigated, when, and what becomes of its decisions."""

from tests.mutants.mutant import Mutant

_JUDGE = "pondstack/tests/qos/test_judge.py"
_CHOICE = "pondstack/tests/qos/test_choice.py"
_MONITOR = "pondstack/tests/qos/test_monitor.py"
_AGAIN = "pondstack/tests/qos/test_repredictor.py"
_GUESTS = "pondstack/tests/db/read/test_pool_guests.py"
_NOTICES = "pondstack/tests/controller/leader/test_quality.py"
_NOVA = "nova_plugins/tests/scheduler/test_split_decision.py"

MUTANTS = (
    Mutant(
        "fixed_flavors_mitigated",
        "pondstack/qos/judge.py",
        "    if item.guest.split_source == FIXED:\n        return False\n",
        "",
        (f"{_JUDGE}::test_who_is_mitigated",),
        "who asked for pool memory loses it",
    ),
    Mutant(
        "best_word_of_two_models",
        "pondstack/qos/sensitivity.py",
        "return max(found,",
        "return min(found,",
        (f"{_JUDGE}::test_of_two_models_the_worst_word_counts",),
        "one model that is wrong leaves a VM that suffers where it is",
    ),
    Mutant(
        "mitigated_again",
        "pondstack/qos/choice.py",
        "    if guest.consumer_uuid in before:\n",
        "    if guest.consumer_uuid in failed:\n",
        (f"{_CHOICE}::test_at_most_once",),
        "a VM is mitigated again and again",
    ),
    Mutant(
        "best_first",
        "pondstack/qos/choice.py",
        "-(expected or 0.0)",
        "(expected or 0.0)",
        (f"{_CHOICE}::test_the_worst_comes_first_and_those_that_nobody_knows_last",),
        "within the rates, those that suffer least are helped",
    ),
    Mutant(
        "rates_forget_what_is_open",
        "pondstack/qos/pace.py",
        "for item in items if item.open)",
        "for item in items if item.open and item.age_seconds < HOUR_SECONDS)",
        (f"{_CHOICE}::test_what_began_before_counts_for_an_hour_and_what_is_open_as_long_as_it_is",),
        "long mitigations pile up on a host",
    ),
    Mutant(
        "quiet_hours_over_midnight",
        "pondstack/domain/quiet_hours.py",
        "return moment >= self.begin or moment < self.end",
        "return moment >= self.begin and moment < self.end",
        (f"{_CHOICE}::test_quiet_hours",),
        "nights are never quiet",
    ),
    Mutant(
        "dry_run_mitigates",
        "pondstack/qos/choice.py",
        "QosAction.MITIGATE if mode is QosMode.ON else QosAction.WOULD",
        "QosAction.MITIGATE",
        (f"{_CHOICE}::test_a_dry_run_begins_nothing",),
        "a dry run says that it has mitigated",
    ),
    Mutant(
        "kept_after_it_began",
        "pondstack/qos/monitor.py",
        "            self._keep([item for item in decisions if self._is_first(item)], mode)\n",
        "",
        (f"{_MONITOR}::test_a_decision_is_kept_before_it_is_carried_out",),
        "a leader that ends meanwhile loses the label",
    ),
    Mutant(
        "former_leader_decides",
        "pondstack/qos/monitor.py",
        "        self._fence(session)\n",
        "",
        (f"{_MONITOR}::test_a_former_leader_keeps_nothing_and_ends",),
        "two leaders keep decisions",
    ),
    Mutant(
        "another_host_s_look",
        "pondstack/db/read/pool_guests.py",
        "nodes = looks[row.consumer_uuid, row.host]",
        "nodes = next((found for (uuid, _), found in looks.items() if uuid == row.consumer_uuid), {})",
        (f"{_GUESTS}::test_of_another_host_a_look_says_nothing[sqlite]",),
        "a VM that was moved is judged by what it touched elsewhere",
    ),
    Mutant(
        "labels_judge_alone",
        "pondstack/db/read/pool_guests.py",
        "newest.get(row.allocation_uuid) if row.allocation_uuid in suspects else _label(row, fresh_seconds)",
        "_label(row, fresh_seconds)",
        (f"{_GUESTS}::test_the_newest_look_counts_where_the_labels_leave_it_open[sqlite]",),
        "a VM is mitigated for what it touched before it was started anew",
    ),
    Mutant(
        "young_label_lost",
        "pondstack/prediction/features.py",
        "(item.coverage < min_coverage and not item.judged)",
        "item.coverage < min_coverage",
        (f"{_MONITOR}::test_a_decision_is_a_labelled_example_at_once",),
        "the project's next VM gets as much pool memory as the one that suffered",
    ),
    Mutant(
        "mitigated_predicted_again",
        "pondstack/db/store/repredictions.py",
        "        .where(split.corrected_at.is_(None))\n",
        "",
        (f"{_AGAIN}::test_one_that_was_mitigated_stays_as_it_is",),
        "what a mitigation took away comes back at the next move",
    ),
    Mutant(
        "renewed_while_it_runs",
        "nova_plugins/pondstack_nova/scheduler/split_decision.py",
        "return move is not None and move.running_local_mib is None",
        "return move is not None",
        (f"{_NOVA}::test_what_was_predicted_again_is_taken_at_a_cold_move_only",),
        "a live migration asks for nodes that the guest does not have",
    ),
    Mutant(
        "noted_before_it_is_sent",
        "pondstack/controller/notifier.py",
        "                self._send(event)\n                self._database.write(partial(self._noted, event=event))\n",
        "                self._database.write(partial(self._noted, event=event))\n                self._send(event)\n",
        (f"{_NOTICES}::test_what_could_not_be_sent_is_sent_later",),
        "a notification is lost with the broker",
    ),
)
