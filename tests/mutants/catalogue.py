"""The planted faults, each with the tests that must catch it. A fault of a review that nothing caught comes here, too.

Two faults are not here because the code does the same with them: `any` or `all` of an allocation's slices in
Slices.release (they change together), and a RELEASING record that is settled (only RELEASED ones are reported).
"""

from tests.mutants.mutant import Mutant

_CONTROLLER = "pondstack/tests/controller"
_AGENT = "agent/tests"
_PAGES = "rdma/tests/store/test_pages.py"

DOMAIN = (
    Mutant(
        "set_aside_for_any_reason_goes_back",
        "pondstack/domain/transitions.py",
        "return bool(item.cause is Cause.AGENT_DOWN and item.host and item.allocation_uuid)",
        "return bool(item.host and item.allocation_uuid)",
        ("pondstack/tests/domain/test_transitions.py",),
        "memory that is lost, failed or in conflict goes back online when it is claimed again",
    ),
    Mutant(
        "failed_device_freed_on_release",
        "pondstack/domain/transitions.py",
        "if item.cause is Cause.DEVICE_FAILED:",
        "if item.cause is Cause.DEVICE_FAILED and item.host is None:",
        ("pondstack/tests/domain/test_transitions.py::test_what_is_on_a_failed_device_stays_aside_without_an_owner",),
        "slices of a failed device leave quarantine by themselves",
    ),
    Mutant(
        "flavor_share_ignored",
        "pondstack/domain/sizing.py",
        "percent = min(self._percent, features.specs.max_pool_percent)",
        "percent = self._percent",
        ("pondstack/tests/domain/test_sizing.py",),
        "a guest gets more pool memory than its flavor allows",
    ),
    Mutant(
        "no_local_memory",
        "pondstack/domain/sizing.py",
        "if specs.pool_mib >= memory_mib:",
        "if specs.pool_mib > memory_mib:",
        ("pondstack/tests/domain/test_sizing.py",),
        "a guest without any local memory",
    ),
    Mutant(
        "leaving_buffer_is_lent",
        "pondstack/domain/buffer_choice.py",
        "        and not item.leaving\n        and (item.promised_to == borrower",
        "        and (item.promised_to == borrower",
        ("pondstack/tests/domain/test_buffer_choice.py",),
        "a buffer that its lender wants back is lent anew",
    ),
    Mutant(
        "extents_overlap",
        "pondstack/domain/allocator.py",
        "rest = (Extent(run.start + size, run.count - size),) if run.count > size else ()",
        "rest = (Extent(run.start + size - 1, run.count - size),) if run.count > size else ()",
        ("pondstack/tests/domain/test_allocator.py",),
        "two extents of one allocation share a slice",
    ),
)

LEDGER = (
    Mutant(
        "writes_after_hand_over",
        "pondstack/db/store/leadership.py",
        ".where(Leadership.id == ROW, Leadership.epoch == epoch, Leadership.expires_at > HANDED_OVER)",
        ".where(Leadership.id == ROW, Leadership.epoch == epoch)",
        ("pondstack/tests/db/store/test_leadership.py::test_handing_over_ends_the_lease_for_its_holder_too[sqlite]",),
        "a leader writes, and takes its lease back, after it has handed over",
    ),
    Mutant(
        "old_look_takes_the_lease",
        "pondstack/db/store/leadership.py",
        "and_(Leadership.id == ROW, Leadership.epoch == expected),",
        "and_(Leadership.id == ROW),",
        ("pondstack/tests/db/store/test_leadership.py::test_a_lease_that_is_over_is_taken_once[sqlite]",),
        "an election on an old look takes the row: two leaders with one epoch",
    ),
    Mutant(
        "slice_owner_not_compared",
        "pondstack/db/store/slices.py",
        "SliceRow.allocation_uuid.is_(None) if change.owner is None else SliceRow.allocation_uuid == change.owner,\n",
        "",
        tuple(
            "pondstack/tests/db/store/test_slices.py::test_what_is_not_as_it_was_seen_is_not_changed"
            f"[sqlite-seen{number}]"
            for number in (1, 2)
        ),
        "a change that rests on an old look takes a slice from its next owner",
    ),
    Mutant(
        "lost_compare_and_set",
        "pondstack/db/store/slices.py",
        '    if changed.rowcount != len(change.indexes):\n        raise CompareAndSetLost(f"slices',
        '    if changed.rowcount < 0:\n        raise CompareAndSetLost(f"slices',
        (
            "tests/fixtures/tests/memory/test_ledger.py::test_a_slice_that_is_no_longer_as_it_was_read_is_not_moved[sql]",
        ),
        "a lost compare-and-set goes unnoticed: journal and slices differ",
    ),
    Mutant(
        "fenced_host_gets_memory_back",
        "pondstack/ledger/slices.py",
        "            if host is not None and host.fenced is not None:\n                back = []",
        "            if host is None:\n                back = []",
        ("pondstack/tests/ledger/test_reinstate.py::test_a_fenced_hosts_memory_stays_aside[sqlite-True]",),
        "memory goes back online for a fenced host",
    ),
    Mutant(
        "repetition_enters_quarantine",
        "pondstack/ledger/slices.py",
        "if SliceState.QUARANTINED in states:",
        "if SliceState.RELEASING in states and not states:",
        (
            "pondstack/tests/ledger/test_failures.py::test_a_repeated_assignment_does_not_get_into_what_was_set_aside[sqlite]",
        ),
        "a repeated assignment lets its host into memory that was set aside since",
    ),
    Mutant(
        "lost_buffer_freed",
        "pondstack/ledger/buffers.py",
        "if item.incarnation == incarnation and item.index in wanted and is_fenced(item)",
        "if item.incarnation == incarnation and item.index in wanted and item.state is SliceState.QUARANTINED",
        ("pondstack/tests/ledger/test_buffers.py::test_a_host_may_take_back_what_somebody_has[sqlite]",),
        "a buffer whose memory its host has taken back is lent again",
    ),
    Mutant(
        "promise_of_a_dead_key",
        "pondstack/ledger/buffers.py",
        "same = generations is None or generations.get(item.index) == item.generation",
        "same = True",
        ("pondstack/tests/ledger/test_buffers.py::test_each_promise_has_keys_of_its_own[sqlite]",),
        "a buffer is promised to somebody who cannot open it",
    ),
    Mutant(
        "last_word_of_a_fenced_lender",
        "pondstack/ledger/buffers.py",
        'gone = replace(known, incarnation="", sequence=known.sequence + 1)',
        'gone = replace(known, incarnation="")',
        ("pondstack/tests/ledger/test_buffers.py::test_a_late_word_brings_nothing_back[sqlite-fenced]",),
        "a fenced lender's last word comes once more, and its lost memory is lent",
    ),
    Mutant(
        "withdrawn_buffers_stay",
        "pondstack/ledger/buffers.py",
        "if there.get(item.index) != item or item.index not in offsets_mib]",
        "if there.get(item.index) != item]",
        ("pondstack/tests/ledger/test_buffers.py::test_a_loan_from_lending_to_having_it_back[sqlite]",),
        "buffers that their lender has withdrawn are lent",
    ),
    Mutant(
        "generation_not_counted",
        "pondstack/db/store/buffers.py",
        "generation=rows.c.generation + (1 if change.assigned else 0),",
        "generation=rows.c.generation,",
        ("pondstack/tests/ledger/test_buffers.py::test_the_next_owner_has_the_next_generation[sqlite]",),
        "a late revoke of the former borrower's key kills the new one's",
    ),
    Mutant(
        "living_host_fenced",
        "pondstack/ledger/failures.py",
        "if not force and known.fenced is None and known.silent_seconds <= self._down:",
        "if not force and known.fenced is None and known.silent_seconds < 0:",
        ("pondstack/tests/ledger/test_failures.py::test_a_host_that_lives_is_fenced_by_force_only[sqlite]",),
        "the guests of a living host lose their memory",
    ),
    Mutant(
        "late_report_counts",
        "pondstack/ledger/hosts.py",
        'report["sequence"] < known.sequence and',
        'report["sequence"] < known.sequence - 1 and',
        ("pondstack/tests/ledger/test_ledger.py::test_a_late_report_is_dropped_unless_the_host_was_silent[sqlite]",),
        "a report that is late by one replaces a newer one",
    ),
    Mutant(
        "unfenced_on_an_old_report",
        "pondstack/ledger/failures.py",
        "if not host.reported_since_fenced:",
        "if host.reported_since_fenced is None:",
        (
            "pondstack/tests/ledger/test_failures.py::test_a_host_is_unfenced_once_it_reported_that_it_holds_nothing[sqlite]",
        ),
        "a fenced host takes part again on a report of before its fence",
    ),
    Mutant(
        "newest_operation_pruned",
        "pondstack/db/store/journal.py",
        "OperationRow.sequence < newest\n",
        "OperationRow.sequence <= newest\n",
        (
            "pondstack/tests/db/read/test_replica.py::test_the_newest_operation_is_never_pruned_away_from_a_follower[sqlite]",
        ),
        "followers of an idle journal lose their place",
    ),
)

CONTROLLER = (
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
)

ELECTION = (
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

AGENT = (
    Mutant(
        "epoch_forgotten",
        "agent/pondstack_agent/epoch.py",
        '                self._records.put(_KEY, {"seen": epoch})\n',
        "",
        (f"{_AGENT}/test_epoch.py",),
        "after a restart an agent obeys a deposed leader",
    ),
    Mutant(
        "grant_of_an_old_controller",
        "agent/pondstack_agent/pool/attach.py",
        "            self._epoch.check(grant.epoch)\n",
        "",
        (f"{_AGENT}/test_endpoint.py::test_a_grant_of_an_old_controller_is_given_back",),
        "memory is onlined on a deposed leader's grant",
    ),
    Mutant(
        "offline_on_an_old_report",
        "agent/pondstack_agent/endpoint.py",
        "if report_sequence is not None and self._operations.online_at(allocation_uuid) > report_sequence:",
        "if report_sequence is not None and self._operations.online_at(allocation_uuid) < 0:",
        (f"{_AGENT}/test_endpoint.py::test_an_offline_that_rests_on_an_old_report_changes_nothing",),
        "memory that came online just after the report is taken away",
    ),
    Mutant(
        "first_byte_only",
        "agent/pondstack_agent/drivers/emulated.py",
        "if first_written_byte(device.path, index * slice_bytes, (index + 1) * slice_bytes) is not None:",
        "if first_written_byte(device.path, index * slice_bytes, index * slice_bytes + 1) is not None:",
        (f"{_AGENT}/drivers/test_drivers.py::test_a_byte_of_somebody_anywhere_in_a_slice_refuses_it",),
        "another guest's bytes are handed on unless they are the first ones of a slice",
    ),
    Mutant(
        "permission_of_another_allocation",
        "agent/pondstack_agent/drivers/grant_records.py",
        "if entry is None or (entry.host, entry.tag) != (host, grant.allocation_uuid):",
        "if entry is None or entry.host != host:",
        (f"{_AGENT}/drivers/test_contract.py::test_attach_needs_the_permission_of_this_host_and_allocation",),
        "a host onlines slices that are let in for another of its allocations",
    ),
    Mutant(
        "late_export_makes_a_key",
        "agent/pondstack_agent/lending/buffer_table.py",
        "if wanted < live or wanted <= entry.ended:",
        "if wanted < live:",
        (f"{_AGENT}/lending/test_buffer_table.py::test_a_late_export_makes_no_key",),
        "a late export makes a key of a generation that has been ended",
    ),
    Mutant(
        "more_taken_back_than_asked",
        "agent/pondstack_agent/lending/reclaim_operation.py",
        "if item.index in freed][:missing]",
        "if item.index in freed]",
        (f"{_AGENT}/lending/test_reclaim_operation.py::test_what_the_controller_frees_goes_back",),
        "a host takes back more than it was told to",
    ),
    Mutant(
        "late_prepare_opens",
        "agent/pondstack_agent/borrower/borrower.py",
        "if key.number <= held.released.get(index, 0):",
        "if key.number <= 0:",
        (f"{_AGENT}/borrower/test_borrower.py::test_a_late_prepare_does_not_bring_back_what_was_given_back",),
        "a key that was given back comes back late: its borrower writes into another's buffer",
    ),
    Mutant(
        "durable_before_the_disk",
        "agent/pondstack_agent/pagestore/exporter.py",
        "        if flags & nbd.FUA:\n            self._pages.flush(self._flush_seconds)\n",
        "",
        (f"{_AGENT}/pagestore/test_exporter.py::test_nothing_is_told_to_be_durable_before_the_mirror_has_it[True]",),
        "a write with FUA is answered before it is durable",
    ),
    Mutant(
        "memory_without_a_region_released",
        "agent/pondstack_agent/drivers/cxl/driver.py",
        "if self._allocations.of_this_boot(record):\n                raise DeviceFailed(",
        "if record is None:\n                raise DeviceFailed(",
        (f"{_AGENT}/drivers/cxl/test_recover.py::test_memory_of_this_boot_stays_on_record",),
        "memory whose region is gone, and that the kernel may use, counts as released",
    ),
    Mutant(
        "room_counted_twice",
        "agent/pondstack_agent/mitigation/room.py",
        "others = sum(size for key, size in self._reserved.items() if key != name)",
        "others = 0",
        (f"{_AGENT}/mitigation/test_room.py::test_two_at_once_cannot_take_the_same_room",),
        "two mitigations count on the same local memory",
    ),
    Mutant(
        "left_lease_comes_late",
        "agent/pondstack_agent/pagestore/leases.py",
        "                if lease is None:\n                    self._ended.add(name)\n",
        "",
        (f"{_AGENT}/pagestore/test_leases.py::test_what_is_left_before_it_came_does_not_come",),
        "a lease that was given up before it arrived is used when it comes late",
    ),
)

RDMA = (
    Mutant(
        "flushed_before_the_disk",
        "rdma/pondstack_rdma/store/mirror/mirror.py",
        "for group in (self._writing, self._waiting) for",
        "for group in (self._writing,) for",
        ("rdma/tests/store/test_mirror.py::test_a_flush_returns_when_what_waits_is_durable",),
        "a flush returns before the pages of the next batch are durable",
    ),
    Mutant(
        "flushed_while_written",
        "rdma/pondstack_rdma/store/mirror/mirror.py",
        "for group in (self._writing, self._waiting) for",
        "for group in (self._waiting,) for",
        ("rdma/tests/store/test_mirror.py::test_a_flush_returns_when_what_is_being_written_is_durable",),
        "a flush returns before the pages of the present batch are durable",
    ),
    Mutant(
        "sent_request_told_as_unsent",
        "rdma/pondstack_rdma/rpc/call.py",
        "                self._posted = self._posted or last\n                return\n",
        "                return\n",
        ("rdma/tests/rpc/test_rpc.py::test_a_slot_is_used_again_while_its_former_call_is_carried_out_still",),
        "a request that reached its server is sent, and carried out, twice",
    ),
    Mutant(
        "older_headers_stay",
        "rdma/pondstack_rdma/store/mirror/mirror.py",
        "                self._disk.write(self._layout.header_at(slot), bytes(HEADER_BYTES))\n",
        "                pass\n",
        ("rdma/tests/store/test_mirror.py::test_a_lost_header_does_not_bring_back_an_older_page",),
        "after a crash an older version of a page is taken for the newest",
    ),
    Mutant(
        "retired_slot_used_again",
        "rdma/pondstack_rdma/store/leased_region.py",
        "            self._pages[slot] = _RETIRED\n",
        "            self._pages[slot] = _FREE\n            self._free.append(slot)\n",
        (f"{_PAGES}::test_a_write_that_nobody_answers",),
        "a write that may still come overwrites another page",
    ),
    Mutant(
        "read_after_the_end_of_a_key",
        "rdma/pondstack_rdma/shm/window.py",
        "where another key shares the region, among that one's bytes.\n            self.check_lives()\n",
        "where another key shares the region, among that one's bytes.\n",
        ("rdma/tests/test_window.py::test_a_key_that_is_revoked_meanwhile_is_told",),
        "a read tells what is there after the end of its key",
    ),
    Mutant(
        "memory_goes_on_to_the_next",
        "rdma/pondstack_rdma/lending.py",
        "            self._drop(region)\n\n    def _drop",
        "            pass\n\n    def _drop",
        ("rdma/tests/contract/test_keys.py::test_the_next_borrower_finds_zeros[shm]",),
        "the next borrower gets the former one's bytes",
    ),
    Mutant(
        "withdrawn_call_carried_out",
        "rdma/pondstack_rdma/rpc/slot.py",
        "if header.sequence > self.shown.sequence or self._parts:",
        "if self._parts:",
        ("rdma/tests/rpc/test_frames.py::test_what_was_withdrawn_before_it_was_taken_is_never_taken",),
        "a call that its client has withdrawn is carried out when its header comes late",
    ),
    Mutant(
        "page_thrown_off_its_new_place",
        "rdma/pondstack_rdma/store/mover.py",
        "if place >= 0 and lease_of(place) == holding.number:",
        "if place >= 0:",
        (f"{_PAGES}::test_a_page_that_is_written_elsewhere_while_its_lease_is_given_up_stays_there",),
        "a page that was written elsewhere meanwhile is lost, where there is no mirror",
    ),
    Mutant(
        "slot_of_a_changed_page_used_again",
        "rdma/pondstack_rdma/store/transfer.py",
        "        self._places.retire_slot(page, spot)\n",
        "",
        (f"{_PAGES}::test_a_slot_that_gave_a_changed_page_is_used_no_more",),
        "pages go to memory that has changed what it was given",
    ),
    Mutant(
        "given_up_without_a_mirror",
        "rdma/pondstack_rdma/store/mover.py",
        "if lost or (over and self._pages.mirror is not None):",
        "if lost or over:",
        (f"{_PAGES}::test_without_a_mirror_a_reclaimed_lease_is_copied",),
        "without a mirror the pages of a lease that is reclaimed are lost",
    ),
    Mutant(
        "another_borrowers_key",
        "rdma/pondstack_rdma/keyring.py",
        "        if key.borrower != borrower:\n",
        "        if not borrower:\n",
        ("rdma/tests/test_keyring.py::test_what_is_refused_says_why",),
        "a borrower reads and writes with another one's key",
    ),
)

NOVA = (
    Mutant(
        "claim_too_small",
        "nova_plugins/pondstack_nova/compute/claims.py",
        "if mib >= pool_mib), key=",
        "if mib), key=",
        ("nova_plugins/tests/compute/test_claims.py",),
        "a guest is attached to a pool where it claims less than it takes",
    ),
    Mutant(
        "split_does_not_add_up",
        "nova_plugins/pondstack_nova/scheduler/request_filter.py",
        " or answer.local_mib + answer.pool_mib != memory_mib:",
        ":",
        ("nova_plugins/tests/scheduler/test_request_filter.py::test_falls_back_to_all_local",),
        "a split that is not the flavor's RAM is used",
    ),
    Mutant(
        "quota_of_one_instance",
        "nova_plugins/pondstack_nova/scheduler/request_filter.py",
        "quota.check(ctxt, spec.project_id, answer.pool_mib * instances)",
        "quota.check(ctxt, spec.project_id, answer.pool_mib)",
        ("nova_plugins/tests/scheduler/test_request_filter.py",),
        "a request for many instances goes over its quota",
    ),
    Mutant(
        "failed_start_releases_all",
        "nova_plugins/pondstack_nova/compute/lifecycle.py",
        "            if is_new:\n                self._pond_release(instance)\n",
        "            self._pond_release(instance)\n",
        (
            "nova_plugins/tests/compute/test_lifecycle.py::"
            "test_a_rebuild_that_fails_to_spawn_keeps_the_slices_for_the_next_try",
        ),
        "a failed start releases memory that the guest had before",
    ),
    Mutant(
        "destination_keeps_memory",
        "nova_plugins/pondstack_nova/compute/lifecycle.py",
        "            if attachment:\n                self._pond_release(instance)\n            raise\n",
        "            raise\n",
        ("nova_plugins/tests/compute/test_migration.py::test_a_destination_that_cannot_prepare_is_undone",),
        "a live migration that fails at the destination leaks its memory there",
    ),
    Mutant(
        "interrupted_rebuild_leaks",
        "nova_plugins/pondstack_nova/compute/lifecycle.py",
        "rebuilding = instance.uuid in self._pond_rebuilding and instance.task_state == task_states.REBUILDING",
        "rebuilding = instance.uuid in self._pond_rebuilding",
        ("nova_plugins/tests/compute/test_lifecycle.py::test_a_delete_after_an_interrupted_rebuild_releases",),
        "a delete after a rebuild that broke off keeps the memory",
    ),
    Mutant(
        "retry_is_another_operation",
        "nova_plugins/pondstack_nova/compute/agent_client.py",
        "operation_id = str(uuid.uuid4())\n        return self._insist(lambda api: api.attach(operation_id, request))",
        "return self._insist(lambda api: api.attach(str(uuid.uuid4()), request))",
        ("nova_plugins/tests/compute/test_agent_client.py::test_a_lost_answer_is_asked_for_again_by_the_same_id",),
        "each retry of an attach takes slices again",
    ),
    Mutant(
        "old_migration_binds",
        "nova_plugins/pondstack_nova/migrations.py",
        "    if instance.task_state != task_states.MIGRATING:\n        return None\n",
        "",
        ("nova_plugins/tests/test_migrations.py::test_an_old_record_binds_no_guest_that_does_not_move_live",),
        "a guest that moves cold keeps a split that is not its own",
    ),
)

API = (
    Mutant(
        "all_projects_listed",
        "api/pondstack_api/handlers/allocation.py",
        "        project = context.project_id\n",
        '        project = query.get("project_id")\n',
        ("api/tests/test_gabbi.py",),
        "a project lists the allocations of all projects",
    ),
    Mutant(
        "other_projects_shown",
        "api/pondstack_api/handlers/allocation.py",
        'if not request.context.can(policy.SHOW, {"project_id": allocation.project_id}):',
        'if not request.context.can(policy.SHOW, {"project_id": request.context.project_id}):',
        ("api/tests/test_gabbi.py",),
        "a project sees another project's allocation",
    ),
    Mutant(
        "service_mends",
        "api/pondstack_api/handlers/audit.py",
        "    if repair:\n        request.context.require(policy.REPAIR)\n",
        "",
        ("api/tests/test_gabbi.py",),
        "a service has an audit change things",
    ),
    Mutant(
        "forged_identity",
        "api/pondstack_api/middleware/auth.py",
        "req.headers.pop(name, None)\n            return self._application\n        return self._checked",
        "req.headers.get(name)\n            return self._application\n        return self._checked",
        ("api/tests/test_auth.py",),
        "identity headers of the sender's own are believed on public paths",
    ),
    Mutant(
        "any_reader_sees_the_rack",
        "api/pondstack_api/policies/base.py",
        '"rule:admin_or_service_api or (role:reader and system_scope:all)"',
        '"rule:admin_or_service_api or role:reader"',
        ("api/tests/test_personas.py",),
        "any project's reader sees the whole rack",
    ),
    Mutant(
        "enabled_on_an_old_view",
        "api/pondstack_api/handlers/host.py",
        'reason=reason, generation=wanted["generation"]',
        "reason=reason, generation=None",
        ("api/tests/test_gabbi.py",),
        "a host is enabled on an outdated view",
    ),
)

MUTANTS = (*DOMAIN, *LEDGER, *CONTROLLER, *ELECTION, *AGENT, *RDMA, *NOVA, *API)
