"""Faults planted in the hand-over of slices: ledger, devices, reconciler."""

from tests.mutants.mutant import Mutant

_LEDGER = "tests/fixtures/tests/memory/test_ledger.py"
_SQL = "pondstack/tests/ledger/test_slice_inheritance.py"
_DEVICES = "pondstack/tests/devices/test_contract.py"
_ENDPOINT = "pondstack/tests/controller/pool/test_hand_overs.py"
_DRIVER = "agent/tests/drivers/test_hand_over.py"
_RULES = "pondstack/tests/controller/reconcile/rules/test_inheritance.py"

MUTANTS = (
    Mutant(
        "slices_sanitised_at_the_sources_release",
        "pondstack/ledger/slices.py",
        "        if heir is not None:\n            return pass_on(",
        "        if heir is not None and False:\n            return pass_on(",
        (f"{_LEDGER}::test_the_switch_is_the_owners_release",),
        "the pool memory of a server that has moved is zeroed under it",
    ),
    Mutant(
        "slices_of_a_fenced_source_sanitised",
        "pondstack/ledger/slices.py",
        "            heirs = {entry.uuid: entry.heir for entry in known if entry.heir is not None}\n",
        "            heirs: dict[str, str] = {}\n",
        (f"{_LEDGER}::test_a_fenced_source_hands_over_once_the_device_keeps_it_out",),
        "a server that has just moved loses its pool memory with the host that it came from",
    ),
    Mutant(
        "fenced_destination_inherits_slices",
        "pondstack/ledger/failures.py",
        "disinherit(self._store, tx, self._store.allocations.of_heirs(tx, name))",
        "disinherit(self._store, tx, [])",
        (f"{_LEDGER}::test_a_fenced_destination_inherits_nothing",),
        "a dead host gets the slices that a server lets go of",
    ),
    Mutant(
        "slices_on_their_way_back_are_handed_over",
        "pondstack/ledger/inheritance.py",
        "        if states == [SliceState.ONLINE] * wanted:\n",
        "        if states:\n",
        (f"{_LEDGER}::test_only_what_is_online_is_handed_over",),
        "a server moves to memory that its host is about to give back",
    ),
    Mutant(
        "two_heirs_of_slices",
        "pondstack/ledger/inheritance.py",
        "        if entry.heir is not None or sum(shape)",
        "        if sum(shape)",
        (f"{_LEDGER}::test_there_is_one_heir_at_most",),
        "two hosts wait for the same slices",
    ),
    Mutant(
        "an_heir_is_forgotten_as_empty",
        "pondstack/db/store/allocations.py",
        "if uuid not in heirs]",
        "]",
        (f"{_SQL}::test_a_late_undo_leaves_what_is_acknowledged",),
        "a host that a server moves to has memory that the ledger does not know",
    ),
    Mutant(
        "device_locks_the_heir_out",
        "pondstack/devices/folder_device.py",
        '                    table[index] = {**heir, "epoch": epoch}\n',
        "                    del table[index]\n",
        (f"{_DEVICES}::test_an_heir_has_what_its_owner_lets_go",),
        "a server that has moved cannot be started again, and its slices may be zeroed",
    ),
    Mutant(
        "device_takes_any_heir",
        "pondstack/devices/folder_device.py",
        '                if entry.get("tag") != owner or entry.get("heir", plain) != plain:\n',
        '                if entry.get("tag") != owner:\n',
        (f"{_DEVICES}::test_there_is_one_heir_at_most",),
        "a second host gets into the memory of a server that moves to another one",
    ),
    Mutant(
        "fenced_heir_stays",
        "pondstack/devices/base.py",
        "            if entry.heir is not None and entry.heir.host == host:\n",
        "            if False:\n",
        (f"{_DEVICES}::test_an_owner_keeps_what_its_heir_lets_go",),
        "a fenced host can write to the memory of a server that did not come",
    ),
    Mutant(
        "an_heirs_attachment_is_a_conflict",
        "pondstack/controller/reconcile/rules/reports.py",
        "    whose = {uuid, owner.uuid if owner else uuid}",
        "    whose = {uuid}",
        (f"{_RULES}::test_a_move_is_in_order",),
        "the reconciler takes the memory of a server offline in the middle of its move",
    ),
    Mutant(
        "the_switch_is_taken_for_a_stranger",
        "pondstack/controller/reconcile/rules/devices.py",
        '        elif entry.heir == Heir(item.host or "", item.allocation_uuid):\n',
        "        elif False:\n",
        (f"{_RULES}::test_the_device_follows_the_ledgers_switch",),
        "the slices of a server that has moved are quarantined",
    ),
    Mutant(
        "an_orphaned_heir_stays",
        "pondstack/controller/reconcile/rules/rules.py",
        "    if not states and item.uuid in observation.owner_of:\n",
        "    if False:\n",
        (f"{_RULES}::test_an_heir_that_nobody_claims_is_taken_offline",),
        "a host keeps access to the memory of a server that never came",
    ),
    Mutant(
        "a_source_needs_no_claim_on_the_host",
        "pondstack/controller/pool/hand_overs.py",
        "        return provider in held and held.get",
        "        return held.get",
        (f"{_ENDPOINT}::test_nobody_gets_the_memory_of_a_guest_that_nova_does_not_move_there",),
        "any compute host reads the memory of any server by naming its host",
    ),
    Mutant(
        "a_source_needs_no_claim_on_the_pool",
        "pondstack/controller/pool/hand_overs.py",
        "        return provider in held and held.get(pool_uuid, {}).get(RESOURCE_CLASS, 0) >= request.pool_mib\n",
        "        return provider in held\n",
        (f"{_ENDPOINT}::test_nobody_gets_the_memory_of_a_guest_that_nova_does_not_move_there",),
        "a server gets pool memory that Placement does not grant it",
    ),
    Mutant(
        "a_source_counts_without_placement",
        "pondstack/controller/pool/hand_overs.py",
        "        if not request.source or self._placement is None or pool_uuid",
        "        if self._placement is None:\n            return True\n        if not request.source or pool_uuid",
        (f"{_ENDPOINT}::test_without_placement_nothing_is_handed_over",),
        "nobody says which server moves where, and hosts get what they ask for",
    ),
    Mutant(
        "an_heir_is_granted_at_once",
        "pondstack/controller/leader/endpoint.py",
        "            if handed:\n",
        "            if False:\n",
        (f"{_ENDPOINT}::test_the_destination_gets_the_same_slices_and_the_source_keeps_them",),
        "no server with pool memory moves live: the device refuses a second holder",
    ),
    Mutant(
        "a_former_heir_stays_at_the_device",
        "pondstack/controller/pool/hand_overs.py",
        "            device.revoke(indexes, tag=tag, epoch=epoch)\n",
        "            pass\n",
        (f"{_ENDPOINT}::test_a_second_try_comes_before_the_device_has_followed_the_end_of_the_first",),
        "a live migration that is repeated at once fails",
    ),
    Mutant(
        "a_repetition_ends_the_next_heir",
        "pondstack/controller/pool/hand_overs.py",
        " if index in indexes and entry.tag == owner]",
        " if index in indexes]",
        (f"{_ENDPOINT}::test_a_late_repetition_takes_nothing_from_the_next_heir",),
        "a late message takes a server's memory from the host that it moves to",
    ),
)
