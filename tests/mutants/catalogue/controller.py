"""Faults planted in the controller."""

from tests.mutants.mutant import Mutant

_CONTROLLER = "pondstack/tests/controller"

MUTANTS = (
    Mutant(
        "not_zeroed_again",
        "pondstack/controller/pool/sanitizer.py",
        "                raise kept[index] from None\n            device.sanitize(index, epoch=self._ledger.epoch)\n",
        "                raise kept[index] from None\n",
        (
            f"{_CONTROLLER}/pool/test_sanitizer.py::"
            "test_a_slice_that_somebody_was_let_into_meanwhile_is_zeroed_all_the_same",
        ),
        "a slice is handed on with a tenant's bytes when a late grant came before its zeroing",
    ),
    Mutant(
        "claimed_again_taken",
        "pondstack/controller/reconcile/rules/rules.py",
        "kept = observation.claimed[aged.item.uuid] and aged.item.uuid in observation.attached[host]",
        "kept = False",
        (
            f"{_CONTROLLER}/reconcile/rules/test_reinstate.py::"
            "test_a_report_that_may_be_older_than_the_release_proves_nothing",
        ),
        "memory that is claimed again is taken offline while its guest is off for a moment",
    ),
    Mutant(
        "old_report_counts",
        "pondstack/controller/reconcile/observation.py",
        "return report if age_seconds - report.age_seconds >= self.limits.settle_seconds else None",
        "return report",
        (f"{_CONTROLLER}/reconcile/rules/test_rules.py::test_quarantined_slices_stay_without_proof",),
        "a report that may be older than a change is evidence against it",
    ),
    Mutant(
        "released_before_offline",
        "pondstack/controller/reconcile/applier.py",
        "        if gone:\n            self._ledger.slices.release(",
        "        if True:\n            self._ledger.slices.release(",
        (
            f"{_CONTROLLER}/reconcile/test_old_reports.py::"
            "test_what_goes_offline_in_the_background_is_not_free_before_its_end",
        ),
        "slices are zeroed and handed on while their former host's kernel has them online",
    ),
    Mutant(
        "late_assign_undone",
        "pondstack/controller/leader/endpoint.py",
        "self._intake.release(str(uuid4()), uuid, host, unacknowledged=True)",
        "self._intake.release(str(uuid4()), uuid, host)",
        (
            f"{_CONTROLLER}/leader/test_endpoint.py::"
            "test_an_assign_that_the_device_refuses_is_undone_unless_the_host_has_it_online",
        ),
        "a late copy of an assignment frees what is online by now",
    ),
    Mutant(
        "all_keys_taken_for_dead",
        "pondstack/controller/lending/lenders.py",
        "return set(dead) & set(ended)",
        "return set(ended)",
        (
            f"{_CONTROLLER}/lending/test_lenders.py::"
            "test_a_lender_that_cannot_end_a_key_keeps_its_buffer_from_all_others",
            f"{_CONTROLLER}/lending/test_lenders.py::test_what_a_fenced_borrower_can_still_reach_stays_aside",
            f"{_CONTROLLER}/lending/test_lenders.py::test_a_promise_stands_while_its_key_lives",
        ),
        "a buffer whose key lives is lent to another: two read and write it",
    ),
    Mutant(
        "all_taken_for_given_back",
        "pondstack/controller/lending/lenders.py",
        "for index in sorted(set(done) & set(indexes))]",
        "for index in sorted(indexes)]",
        (f"{_CONTROLLER}/lending/test_lenders.py::test_a_lender_gets_its_memory_back_step_by_step",),
        "buffers that their borrower still uses are taken for given back",
    ),
    Mutant(
        "key_of_a_silent_borrower_lives",
        "pondstack/controller/lending/lenders.py",
        "            self._agents.revoke(lender, **about)\n            raise\n",
        "            raise\n",
        (f"{_CONTROLLER}/lending/test_lenders.py",),
        "a key that was made for a borrower that did not answer lives while the buffer is another's",
    ),
    Mutant(
        "old_gate_opens_again",
        "pondstack/controller/leader/leader.py",
        "if self._candidate.epoch != self.epoch:",
        "if self._candidate.epoch is None:",
        (
            f"{_CONTROLLER}/leader/test_leader.py::"
            "test_requests_of_an_old_epoch_are_refused_though_the_same_controller_leads_again",
        ),
        "requests of an old epoch are answered once the same controller leads again",
    ),
    Mutant(
        "held_slices_offered",
        "pondstack/controller/pool/inventory.py",
        "kept += aged.item.state in UNAVAILABLE or without_claim",
        "kept += aged.item.state in UNAVAILABLE",
        (
            f"{_CONTROLLER}/reconcile/test_reconciler.py::"
            "test_a_destroyed_guest_whose_detach_was_lost_gives_its_slices_back",
        ),
        "Placement offers slices of unclaimed allocations that hosts hold",
    ),
    Mutant(
        "claimed_offered_again",
        "pondstack/controller/pool/capacity.py",
        "- buffer_slices * detail.pool.slice_mib - unassigned_mib",
        "- buffer_slices * detail.pool.slice_mib",
        (f"{_CONTROLLER}/pool/test_capacity.py::test_what_is_claimed_and_not_assigned_is_taken",),
        "the same slices are offered to every VM that is scheduled meanwhile",
    ),
    Mutant(
        "failed_device_freed_on_fence",
        "pondstack/controller/reconcile/rules/failures.py",
        "if aged.item.host == host and aged.item.state is SliceState.QUARANTINED and not failed:",
        "if aged.item.host == host and aged.item.state is SliceState.QUARANTINED:",
        (f"{_CONTROLLER}/leader/test_failures.py", f"{_CONTROLLER}/reconcile/rules/test_failures.py"),
        "slices of a failed device are set free when their host is fenced",
    ),
    Mutant(
        "report_of_before_a_release",
        "pondstack/controller/reconcile/rules/reports.py",
        "if aged.item.state in LOOSE and observation.report_after(host, aged.age_seconds)]",
        "if aged.item.state in LOOSE]",
        (f"{_CONTROLLER}/reconcile/rules/test_rules.py",),
        "a report of before a release sets the released slices aside",
    ),
    Mutant(
        "no_grace",
        "pondstack/controller/reconcile/rules/rules.py",
        "return aged.unclaimed_seconds >= observation.limits.unclaimed_grace_seconds",
        "return True",
        (f"{_CONTROLLER}/reconcile/rules/test_rules.py::test_within_the_grace_nothing_happens",),
        "memory is taken offline the moment that Nova drops a claim",
    ),
    Mutant(
        "novas_aggregates_removed",
        "pondstack/controller/pool/remover.py",
        "lambda present: present - ours",
        "lambda present: present & set()",
        (f"{_CONTROLLER}/pool/test_remover.py::test_a_host_leaves_our_aggregates_and_keeps_novas",),
        "availability zones lose a host that we forget",
    ),
    Mutant(
        "claimed_host_removed",
        "pondstack/controller/pool/remover.py",
        '_named("claims in Placement of instances", here & held)',
        '_named("claims in Placement of instances", set())',
        (f"{_CONTROLLER}/pool/test_remover.py::test_a_host_with_claims_of_instances_stays_as_it_is",),
        "a host is removed under instances that are off",
    ),
    Mutant(
        "aggregates_without_fence",
        "pondstack/clients/placement.py",
        "            still()\n            generation = present",
        "            generation = present",
        (f"{_CONTROLLER}/pool/test_remover.py::test_a_former_leader_does_not_join_a_host_that_was_removed",),
        "a paused leader joins a removed host again",
    ),
    Mutant(
        "a_removed_borrower_counts_as_joined",
        "pondstack/controller/lending/inventory.py",
        "                self._joined.discard(host)",
        "                    self._joined.discard(host)",
        (f"{_CONTROLLER}/lending/test_inventory.py::test_a_host_that_nova_removed_is_joined_again_when_it_is_back",),
        "a host that comes back after its compute service was deleted gets no lent memory",
    ),
    Mutant(
        "repair_of_a_host_that_came_meanwhile",
        "pondstack/controller/pool/remover.py",
        "if self._placement is None or host in self._view().hosts:",
        "if self._placement is None:",
        (f"{_CONTROLLER}/pool/test_remover.py::test_a_repair_spares_what_the_ledger_knows_by_now",),
        "an audit's repair takes a host that has just come out of its pools' aggregates",
    ),
    Mutant(
        "present_split_of_another_flavor",
        "pondstack/controller/pool/split_service.py",
        "    present = None if features.resized else splits.present(",
        "    present = splits.present(",
        ("pondstack/tests/controller/leader/test_endpoint.py::test_a_resize_asks_for_the_new_flavors_split",),
        "a resize to a flavor of the same size keeps the former flavor's pool memory",
    ),
    Mutant(
        "fallback_is_recalled",
        "pondstack/db/store/splits.py",
        " or row.source in list(Fallback):",
        ":",
        (
            "pondstack/tests/controller/leader/test_endpoint.py::test_a_fallback_is_recorded_and_given_to_no_later_start",
        ),
        "a server that fell back once is all local for good",
    ),
    Mutant(
        "late_record_replaces_a_younger_one",
        "pondstack/db/store/splits.py",
        "    kept = SplitRow.created_at > moment\n",
        "    kept = SplitRow.created_at > now_seconds()\n",
        (f"{_CONTROLLER}/leader/test_endpoint.py::test_a_record_that_was_long_under_way_replaces_no_younger_one",),
        "the controller remembers what an instance was placed with before its last move",
    ),
    Mutant(
        "claim_of_a_migration_does_not_count",
        "pondstack/controller/reconcile/holders.py",
        "        if item.uuid in mine or not claims.elsewhere(item):",
        "        if True:",
        (f"{_CONTROLLER}/reconcile/rules/test_rules.py",),
        "the source of a live migration that takes long is taken offline under its guest",
    ),
    Mutant(
        "any_claim_counts_as_a_migrations",
        "pondstack/controller/reconcile/holders.py",
        "            if mib == item.pool_mib and here.get(consumer) == local_mib:",
        "            if consumer in here:",
        (f"{_CONTROLLER}/reconcile/rules/test_rules.py",),
        "slices of a guest that has moved stay with its former host while anybody there starts",
    ),
    Mutant(
        "guest_taken_for_a_migration",
        "pondstack/controller/reconcile/holders.py",
        " if consumer not in known)",
        ")",
        (f"{_CONTROLLER}/reconcile/rules/test_rules.py",),
        "slices of a guest that has moved stay with its former host while a like guest is there",
    ),
)
