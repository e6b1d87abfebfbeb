"""Faults planted in the hand-over of guests by reference: ledger, controller, data plane."""

from tests.mutants.mutant import Mutant

_LEDGER = "pondstack/tests/ledger/test_inheritance.py"
_LENDERS = "pondstack/tests/controller/lending/test_lenders.py"
_MOVES = "rdma/tests/data_plane/attached/test_handover_by_reference.py"
_TABLE = "agent/tests/lending/test_buffer_table.py"

MUTANTS = (
    Mutant(
        "freed_at_the_sources_release",
        "pondstack/ledger/loans.py",
        "            handed = [item for item in mine if item.heir is not None]\n",
        "            handed: list[Buffer] = []\n",
        (f"{_LEDGER}::test_the_switch_is_the_owners_release",),
        "the memory of a server that has moved is given to another one",
    ),
    Mutant(
        "fenced_source_takes_it_along",
        "pondstack/ledger/buffers.py",
        "        handed = [item for item in held if item.heir is not None]\n"
        "        mine = [item for item in held if item.heir is None and item.state in OWNED]\n",
        "        handed, mine = list[Buffer](), [item for item in held if item.state in OWNED]\n",
        (f"{_LEDGER}::test_a_source_that_is_fenced_in_the_middle",),
        "a server that has just moved loses its memory with the host that it came from",
    ),
    Mutant(
        "fenced_destination_inherits",
        "pondstack/ledger/buffers.py",
        '        self._store.buffers.mark(tx, self._store.buffers.of_heirs(tx, name), {"heir": None})\n',
        "",
        (f"{_LEDGER}::test_a_destination_that_is_fenced_in_the_middle",),
        "a dead host gets the memory that a server lets go of",
    ),
    Mutant(
        "handed_over_out_of_reach",
        "pondstack/domain/inheritance.py",
        "        return reach.covers(item)\n",
        "        return True\n",
        (f"{_LEDGER}::test_what_the_destination_is_not_linked_to_is_borrowed_anew",),
        "a server moves to a host that has no key of its memory",
    ),
    Mutant(
        "keys_end_before_the_switch",
        "pondstack/controller/lending/lenders.py",
        "(item.shared and item.heir is None)",
        "item.shared",
        (f"{_LENDERS}::test_the_host_that_a_consumer_moves_to_gets_second_keys",),
        "the destination of a move reads nothing of the lender, and all is copied",
    ),
    Mutant(
        "former_key_lives_on",
        "pondstack/controller/lending/lenders.py",
        "    return item.escrowed or (item.shared and item.heir is None)\n",
        "    return item.escrowed\n",
        (f"{_LENDERS}::test_the_host_that_a_consumer_moves_to_gets_second_keys",),
        "the host that a server has left can write to its memory for good",
    ),
    Mutant(
        "dead_keys_are_shared",
        "agent/pondstack_agent/lending/buffer_table.py",
        "if not entry.keys or wanted != entry.generation or wanted <= entry.ended:",
        "if not entry.keys:",
        (f"{_TABLE}::test_only_what_lives_is_shared",),
        "a late call gives a host a key of what is another server's by now",
    ),
    Mutant(
        "handed_memory_is_written",
        "rdma/native/store/leases.c",
        "uint32_t free_count = lease == NULL || state_of(lease) != LEASE_ACTIVE ? 0 : lease->free_count;",
        "uint32_t free_count = lease == NULL || state_of(lease) == LEASE_LOST ? 0 : lease->free_count;",
        (f"{_MOVES}::test_no_remote_page_is_copied",),
        "a guest that its source has back finds another host's pages with its lender",
    ),
    Mutant(
        "taken_slots_count_as_free",
        "rdma/native/store/leases.c",
        "            if ((lease->taken[slot / 8] & 1U << slot % 8) == 0) {\n",
        "            if (slot < lease->slots) {\n",
        (f"{_MOVES}::test_no_remote_page_is_copied",),
        "pages that stayed with their lender are overwritten once the guest has moved",
    ),
    Mutant(
        "mirrored_without_a_mirror",
        "rdma/native/store/page_store.c",
        "    int error = given == 0 ? 0 : store->mirror->type->write(",
        "    int error = given < STORE_MOST_PAGES ? 0 : store->mirror->type->write(",
        (f"{_MOVES}::test_the_destination_is_killed",),
        "a guest that has moved waits for ever for a page, once its data plane was killed",
    ),
    Mutant(
        "copies_that_nobody_counts",
        "rdma/native/store/page_store.c",
        "    store->handed_copied++;\n",
        "",
        (f"{_MOVES}::test_a_lender_that_the_destination_cannot_reach",),
        "an operator is told that no remote page was copied, and all were",
    ),
    Mutant(
        "any_file_of_that_name_is_the_mirror",
        "rdma/native/store/page_store.c",
        "    if (error == 0 && !open_page(store, first, scratch)) {\n        error = EBADMSG;",
        "    if (error == EDOM && !open_page(store, first, scratch)) {\n        error = EBADMSG;",
        (f"{_MOVES}::test_a_mirror_that_is_not_the_sources",),
        "a guest that has moved reads another file's bytes once its lender is gone, and stops",
    ),
    Mutant(
        "unsealed_mirrors_are_believed",
        "rdma/native/handover/former_mirror.c",
        "!incoming->pager->store->sealed ||",
        "",
        (f"{_MOVES}::test_mirrors_that_are_not_sealed_are_not_copied",),
        "a guest whose pages are not sealed takes any file of that name for its memory",
    ),
    Mutant(
        "one_mirror_for_two_hosts",
        "agent/pondstack_agent/remote/remote.py",
        'f"{consumer_uuid}.{self._host}"[:_MOST_NAME]',
        "consumer_uuid",
        ("agent/tests/remote/test_inheritance.py::test_the_mirror_of_a_shared_folder_is_told_of",),
        "a server whose hosts share the folder of mirrors cannot move live",
    ),
    Mutant(
        "mirror_out_of_its_folder",
        "agent/pondstack_agent/remote/moves.py",
        ' or name.startswith(".") or "/" in name or ',
        " or ",
        ("agent/tests/remote/test_inheritance.py::test_the_mirror_of_a_shared_folder_is_told_of",),
        "an agent that was broken into has another host's data plane open any file",
    ),
)
