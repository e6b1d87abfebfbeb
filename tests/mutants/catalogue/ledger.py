"""Faults planted in the ledger."""

from tests.mutants.mutant import Mutant

_WATCH = "pondstack/tests/db/connection/test_watch.py"
_PAUSED = "now - self._looked > PAUSE_SECONDS"

MUTANTS = (
    Mutant(
        "writes_after_hand_over",
        "pondstack/db/store/leadership.py",
        '.where(_C.id == ROW, _C.epoch == bindparam("own_epoch"), _C.expires_at > HANDED_OVER)',
        '.where(_C.id == ROW, _C.epoch == bindparam("own_epoch"))',
        ("pondstack/tests/db/store/test_leadership.py::test_handing_over_ends_the_lease_for_its_holder_too[sqlite]",),
        "a leader writes, and takes its lease back, after it has handed over",
    ),
    *(
        Mutant(
            name,
            "pondstack/db/connection/watch.py",
            f"return now - self._taken > KEEP_SECONDS or {_PAUSED}",
            new,
            (f"{_WATCH}::test_after_a_pause_and_after_a_while_the_pool_looks_at_it[mariadb-{looks}]",),
            "a stand-by looks at the lease over a connection that is past its age, or that its server has ended",
        )
        for name, new, looks in (
            ("kept_after_a_pause", "return now - self._taken > KEEP_SECONDS", "looks0"),
            ("kept_for_good", f"return {_PAUSED}", "looks1"),
        )
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
        "if item.incarnation == incarnation and item.index in wanted and waits_for_its_key(item)",
        "if item.incarnation == incarnation and item.index in wanted and item.state is SliceState.QUARANTINED",
        ("pondstack/tests/ledger/test_buffers.py::test_a_host_may_take_back_what_somebody_has[sqlite]",),
        "a buffer whose memory its host has taken back is lent again",
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
        "OperationRow.sequence < newest,\n",
        "OperationRow.sequence <= newest,\n",
        (
            "pondstack/tests/db/read/test_replica.py::test_the_newest_operation_is_never_pruned_away_from_a_follower[sqlite]",
        ),
        "followers of an idle journal lose their place",
    ),
    Mutant(
        "removed_while_it_reports",
        "pondstack/ledger/removal.py",
        "if known.silent_seconds <= self._down:",
        "if known.silent_seconds < 0:",
        ("pondstack/tests/ledger/test_removal.py::test_a_host_whose_agent_reports_stays[sqlite]",),
        "a host that lives is removed, and is back with its next report, enabled",
    ),
    Mutant(
        "lender_survives_its_removal",
        "pondstack/ledger/removal.py",
        "            self._store.buffers.remove_lender(tx, name)\n",
        "",
        ("pondstack/tests/ledger/test_removal.py::test_a_host_that_comes_back_starts_clean[sqlite]",),
        "a host that comes back under its name cannot lend: its first word counts as late",
    ),
    Mutant(
        "removed_dirt_is_free",
        "pondstack/ledger/pools.py",
        "[] if known else self._dirty(tx, uuid)",
        "[]",
        (
            "pondstack/tests/ledger/test_removal.py"
            "::test_what_was_aside_when_a_pool_was_removed_is_zeroed_if_it_comes_back",
        ),
        "a device that comes back gives what a guest wrote to the next one",
    ),
    Mutant(
        "removal_of_a_pool_is_pruned",
        "pondstack/db/store/journal.py",
        "            OperationRow.kind != REMOVE_POOL,\n",
        "",
        (
            "pondstack/tests/ledger/test_removal.py"
            "::test_what_was_aside_when_a_pool_was_removed_is_zeroed_if_it_comes_back",
        ),
        "the same, a week later",
    ),
    Mutant(
        "resize_forgets_misses",
        "pondstack/ledger/free_buffers.py",
        "self._put(tx, pool_uuid, replace(size, misses=before.misses))",
        "self._put(tx, pool_uuid, size)",
        ("pondstack/tests/ledger/test_free_buffers.py::test_a_start_that_asks_again_is_one_miss[sqlite]",),
        "misses of the buffer are lost as soon as it is sized",
    ),
    Mutant(
        "miss_counts_twice_as_demand",
        "pondstack/ledger/churn.py",
        "self._taken.setdefault(entry.operation_id, (",
        "self._taken.setdefault(entry.operation_id + entry.kind, (",
        (
            "pondstack/tests/ledger/test_free_buffers.py"
            "::test_a_start_that_missed_and_got_its_slices_later_asked_once[sqlite]",
        ),
        "starts that waited count twice, and the buffer grows without a reason",
    ),
    Mutant(
        "offline_time_not_measured",
        "pondstack/ledger/churn.py",
        "began = entry.at - (entry.effect.get(UNCLAIMED_SECONDS) or 0.0)",
        "began = entry.at",
        ("pondstack/tests/ledger/test_free_buffers.py",),
        "the time that hosts need to take memory offline does not count, and the buffer stays too small",
    ),
    Mutant(
        "claim_used_twice",
        "pondstack/domain/lending.py",
        "    if held_mib + request.remote_mib > claimed_mib:",
        "    if request.remote_mib > claimed_mib:",
        ("pondstack/tests/ledger/test_loans.py::test_what_is_guaranteed_is_never_more_than_the_claim",),
        "one claim admits any number of loans",
    ),
    Mutant(
        "whole_loan_asked_back_for_a_part",
        "pondstack/ledger/loans.py",
        "if only is None or (item.incarnation, item.index) in set(only)]",
        "]",
        ("pondstack/tests/ledger/test_loans.py::test_a_loan_is_asked_back_whole_or_in_part",),
        "a guest loses all of its remote memory for one buffer",
    ),
    Mutant(
        "late_fence_counts",
        "pondstack/ledger/failures.py",
        "            check_generation(known, generation, STALE_FENCE)\n",
        "",
        (
            "pondstack/tests/ledger/test_failures.py::"
            "test_a_fence_that_is_repeated_and_late_fences_nobody_who_is_back[sqlite]",
        ),
        "a fence that was repeated and is late takes the memory of a host that is back",
    ),
    Mutant(
        "fence_is_another_by_its_generation",
        "pondstack/ledger/failures.py",
        'arguments = {"name": name, "reason": reason, "force": force}\n',
        'arguments = {"name": name, "reason": reason, "force": force, "generation": generation}\n',
        (
            "pondstack/tests/ledger/test_failures.py::"
            "test_a_fence_of_a_former_client_names_no_generation_and_is_the_same_request[sqlite]",
        ),
        "a fence that is repeated across an upgrade is refused as another one",
    ),
)
