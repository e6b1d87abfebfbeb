"""Faults planted in rdma/native: the data plane."""

from tests.mutants.mutant import Mutant

_TESTS = "rdma/tests/data_plane"
_STORE = (f"{_TESTS}/test_native_parts.py::test_the_store",)
_POLICIES = f"{_TESTS}/test_replacement.py::test_a_policy_chooses_what_its_model_chooses"

MUTANTS = (
    Mutant(
        "hole_before_the_page_is_stored",
        "rdma/native/pager/eviction.c",
        '    CRASH_POINT("copied");\n',
        '    punch(pager, run);\n    CRASH_POINT("copied");\n',
        (f"{_TESTS}/attached/test_torture.py::test_a_death_while_it_serves[copied]",),
        "a killed data plane takes the pages along that it was evicting",
    ),
    Mutant(
        "nobody_is_woken_after_a_kill",
        "rdma/native/pager/pager.c",
        "    /* What a dead pager had protected is free again, and whose event it had read asks again. */\n",
        "    return 0;\n",
        (f"{_TESTS}/attached/test_torture.py::test_a_death_while_it_serves[read]",),
        "a guest whose fault a killed data plane had read waits for ever",
    ),
    Mutant(
        "discarded_pages_come_back",
        "rdma/native/pager/faults.c",
        "        store_drop(pager->store, page);\n        pager->evicted_at",
        "        pager->evicted_at",
        (f"{_TESTS}/attached/test_pager.py::test_what_the_guest_gives_up_is_zero",),
        "memory that a guest gave up has its former content, and not zeros",
    ),
    Mutant(
        "any_file_a_mirror",
        "rdma/native/control/guests.c",
        " && strchr(path + size + 1, '/') == NULL;",
        ";",
        (f"{_TESTS}/attached/test_client.py::test_a_client_attaches_guests_only",),
        "the agent's user, who is not root, has the data plane make and remove files anywhere",
    ),
    Mutant(
        "any_user_a_client",
        "rdma/native/control/server.c",
        "client->mirrors != NULL && peer.uid == client->user",
        "client->mirrors != NULL",
        (f"{_TESTS}/attached/test_client.py::test_nobody_else_gets_in",),
        "who can reach the socket may have guests' processes served as he likes",
    ),
    Mutant(
        "evicted_pages_forgotten_by_a_restart",
        "rdma/native/pager/residency.c",
        "evicted += !is_resident(pager, page)",
        "evicted += 0 && !is_resident(pager, page)",
        (f"{_TESTS}/attached/test_pager.py::test_evicted_pages_are_counted[random]",),
        "after a restart of the data plane, telemetry takes evicted pages for untouched ones",
    ),
    Mutant(
        "a_lease_freed_while_it_is_looked_at",
        "rdma/native/store/leases.c",
        "        atomic_store(&leases->list[at], NULL);\n        atomic_store(&lease->state, LEASE_LEFT);",
        "        atomic_store(&lease->state, LEASE_LEFT);",
        (f"{_TESTS}/attached/test_threads.py::test_no_race",),
        "the data plane dies, or writes a page anywhere, while a lease is left",
    ),
    Mutant(
        "a_version_used_again",
        "rdma/native/store/page_store.c",
        "        row->version++;\n",
        "",
        _STORE,
        "a page is sealed twice under one nonce, which tells what both contents have in common",
    ),
    Mutant(
        "failed_write_is_found",
        "rdma/native/store/page_store.c",
        "        store_drop(store, first + at);\n",
        "        (void)at;\n",
        _STORE,
        "a page whose write failed is taken for what lies in the store",
    ),
    Mutant(
        "another_guests_table",
        "rdma/native/store/shared_state.c",
        "header->pages != pages ||\n        strncmp(header->guest, guest, sizeof header->guest) != 0) {",
        "header->pages != pages) {",
        _STORE,
        "pages of one guest are looked for by the table of another",
    ),
    Mutant(
        "an_empty_mirror_for_a_lost_one",
        "rdma/native/store/file_tier.c",
        "open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);",
        "open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);",
        (*_STORE, f"{_TESTS}/attached/test_refusals.py::test_a_lost_mirror_is_no_empty_one"),
        "a guest whose mirror is gone goes on with zeros",
    ),
    Mutant(
        "mixed_looks_at_one_more",
        "rdma/native/replacement/mixed.c",
        "looks < fifo->parameter",
        "looks <= fifo->parameter",
        (f"{_POLICIES}[mixed]",),
        "Mixed is not the policy of the paper",
    ),
    Mutant(
        "clock_gives_no_second_chance",
        "rdma/native/replacement/clock.c",
        "if (!accessed(context, page)) {",
        "if (accessed(context, page) || true) {",
        (f"{_POLICIES}[clock]",),
        "Clock is FIFO",
    ),
    Mutant(
        "ghosts_without_bound",
        "rdma/native/replacement/s3_fifo.c",
        "    while (s3->ghost.count > s3->small.count + s3->main.count + 1) {",
        "    while (false) {",
        (f"{_POLICIES}[s3-fifo]",),
        "S3-FIFO takes every page for one that is wanted again soon",
    ),
)
