"""Faults planted in memory over RDMA."""

from tests.mutants.mutant import Mutant

_PAGES = "rdma/tests/store/test_pages.py"

MUTANTS = (
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
