"""Faults planted in the escrow: keys of lenders that sleep, who is told them, and when they are dead."""

from tests.mutants.mutant import Mutant

_LENDING = "pondstack/tests/controller/lending"
_LEDGER = "pondstack/tests/ledger/test_escrow.py"
_SEALING = f"{_LENDING}/test_sealing.py"
_TABLE = "agent/tests/lending/test_buffer_table.py"

MUTANTS = (
    Mutant(
        "row_of_another_borrower_opens",
        "pondstack/controller/lending/sealing.py",
        '["pondstack escrow", key.incarnation, key.index, key.borrower]',
        '["pondstack escrow", key.incarnation, key.index]',
        (f"{_SEALING}::test_a_row_in_the_place_of_another_one_does_not_open",),
        "who can write the database has a host be told another host's key",
    ),
    Mutant(
        "sealing_keys_open_to_others",
        "pondstack/controller/lending/sealing.py",
        "_OPEN_TO_OTHERS = 0o077",
        "_OPEN_TO_OTHERS = 0o007",
        (f"{_SEALING}::test_a_file_that_others_read_is_refused",),
        "a group reads the keys that all others are sealed with",
    ),
    Mutant(
        "reseals_with_the_old_key",
        "pondstack/controller/lending/sealing.py",
        "return [self.seal(key, self.open(key)) for key in known]",
        "return list(known)",
        (f"{_SEALING}::test_keys_are_changed_in_steps",),
        "an old sealing key can never be removed",
    ),
    Mutant(
        "dead_generation_is_good",
        "pondstack/domain/escrow.py",
        "return item.escrowed and self.keys.get((item.incarnation, item.index)) == item.generation",
        "return item.escrowed and (item.incarnation, item.index) in self.keys",
        ("pondstack/tests/domain/test_buffer_choice.py::test_what_a_borrower_cannot_have",),
        "a key that was ended is told, and its borrower reaches nothing",
    ),
    Mutant(
        "reach_without_a_link",
        "pondstack/domain/escrow.py",
        "return self.has_key(item) and (item.lender, item.incarnation) in self.links",
        "return self.has_key(item)",
        (f"{_LEDGER}::test_without_a_link_nothing_of_a_sleeping_lender_can_be_had[memory]",),
        "a host whose data plane crashed is given memory that it cannot reach",
    ),
    Mutant(
        "disclosed_is_for_all",
        "pondstack/domain/buffer_choice.py",
        "return item.promised_to in (None, borrower) and reach.covers(item)",
        "return reach.covers(item)",
        ("pondstack/tests/domain/test_buffer_choice.py::test_what_a_borrower_cannot_have",),
        "a buffer whose former user has a live key is given to another host",
    ),
    Mutant(
        "woken_lender_lends_with_keys_in_escrow",
        "pondstack/domain/buffer_choice.py",
        "return item.promised_to is None and not item.escrowed",
        "return item.promised_to is None",
        ("pondstack/tests/domain/test_buffer_choice.py::test_what_a_borrower_cannot_have",),
        "an awake lender is asked for a key while others have one",
    ),
    Mutant(
        "memory_with_keys_goes_back",
        "pondstack/domain/lending.py",
        "item.promised_to is None and not item.escrowed\n",
        "item.promised_to is None\n",
        (f"{_LEDGER}::test_a_lender_that_is_awake_gives_nothing_before_all_keys_are_dead[memory]",),
        "a host takes memory back whose keys live",
    ),
    Mutant(
        "key_of_another_generation_is_kept",
        "pondstack/ledger/escrow.py",
        "return item.escrowed and wants_escrow(item) and item.generation == key.generation",
        "return item.escrowed and wants_escrow(item)",
        (f"{_LEDGER}::test_keys_that_come_late_are_left_out[memory]",),
        "a key that was made for an ended generation takes the place of a good one",
    ),
    Mutant(
        "sleeper_gets_back_what_it_cannot_end",
        "pondstack/ledger/loans.py",
        "return [item for item in asleep if reach.has_key(item)]",
        "return asleep",
        (
            "pondstack/tests/ledger/test_escrow.py::"
            "test_a_key_that_the_former_release_promised_is_not_told_again[memory]",
        ),
        "a buffer is free for a host for which there is no key",
    ),
    Mutant(
        "dead_keys_stay_in_escrow",
        "pondstack/ledger/escrow.py",
        "    store.escrow.remove(tx, mine)\n",
        "",
        (f"{_LEDGER}::test_dead_keys_leave_nothing_in_escrow[memory]",),
        "keys that are dead fill the database, sealed for ever",
    ),
    Mutant(
        "placement_offers_what_one_host_can_have",
        "pondstack/controller/lending/inventory.py",
        "return item.promised_to is None and item.escrowed == (item.kind is LenderKind.ZOMBIE)",
        "return item.escrowed == (item.kind is LenderKind.ZOMBIE)",
        (f"{_LENDING}/test_inventory.py::test_what_of_sleeping_lenders_is_not_for_all_is_reserved",),
        "Placement admits servers that find no memory",
    ),
    Mutant(
        "anothers_key_lives_beside_the_owners",
        "agent/pondstack_agent/lending/buffer_table.py",
        "self._try_to_end(entry, *(entry.keys.keys() - {owner}))",
        "self._try_to_end(entry)",
        (f"{_TABLE}::test_who_gets_a_buffer_in_escrow_keeps_its_key_and_the_others_end",),
        "keys in escrow outlive the waking of their lender",
    ),
    Mutant(
        "escrow_of_what_is_somebodys",
        "agent/pondstack_agent/lending/buffer_table.py",
        "if entry.keys and not entry.escrow:",
        "if entry.failed:",
        (f"{_TABLE}::test_who_gets_a_buffer_in_escrow_keeps_its_key_and_the_others_end",),
        "another host gets a key of a buffer that is in use",
    ),
    Mutant(
        "begun_for_nobody",
        "pondstack/controller/lending/escrow.py",
        "        if not linked:\n            return\n",
        "",
        (f"{_LENDING}/test_escrow.py::test_nothing_is_begun_for_nobody",),
        "Placement offers memory of a sleeping lender that no host can use",
    ),
    Mutant(
        "owners_key_ends_when_its_lender_wakes",
        "pondstack/controller/lending/lenders.py",
        "lambda item: _free(item) and _awake(item) and _has_keys(item)",
        "lambda item: _awake(item) and _has_keys(item)",
        (f"{_LENDING}/test_escrow.py::test_awake_again_a_lender_ends_all_keys_but_those_of_owners",),
        "the pages of a guest are gone when the lender wakes",
    ),
)
