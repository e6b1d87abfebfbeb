"""Planted faults: swap disks of guests, from the flavor to the data plane."""

from tests.mutants.mutant import Mutant

_REMOTE = "agent/pondstack_agent/remote"
_TESTS = "agent/tests/remote/test_swap_disks.py"
_RECONCILE = "pondstack/controller/reconcile"
_LOANS = "pondstack/tests/controller/reconcile/rules/test_loans.py"
_LENT = "pondstack/tests/controller/reconcile/test_lent_memory.py"
_NOVA = "nova_plugins/pondstack_nova"
_NOVA_TESTS = "nova_plugins/tests/compute/remote/test_swap_disk.py"

MUTANTS = (
    Mutant(
        "lost_pages_become_zeros",
        f"{_REMOTE}/swap_disks.py",
        "        if self._has_process(mine):\n            raise Unavailable(",
        "        if not mine.mib:\n            raise Unavailable(",
        (f"{_TESTS}::test_pages_that_are_lost_are_no_zeros",),
        "a running guest reads zeros where it had swapped out its memory",
    ),
    Mutant(
        "a_disk_is_released_under_a_guest",
        f"{_REMOTE}/swap_disks.py",
        "        if seen is not None and seen.connected:",
        "        if seen is None:",
        (f"{_TESTS}::test_a_disk_that_is_open_is_not_released",),
        "a running guest loses what it had swapped out",
    ),
    Mutant(
        "disks_without_a_bound",
        f"{_REMOTE}/records.py",
        "        return extended + sum(each.mib for each in others if each.is_disk)",
        "        return extended",
        (f"{_TESTS}::test_mirrors_of_guests_and_disks_share_the_room",),
        "the mirrors of a host outgrow what Placement was told",
    ),
    Mutant(
        "a_disk_under_its_own_name",
        f"{_REMOTE}/borrow_requests.py",
        "consumer_uuid=mine.borrower_uuid,",
        "consumer_uuid=mine.consumer_uuid,",
        (f"{_TESTS}::test_a_disk_is_served_and_given_back",),
        "an operator does not see whose the buffers of a disk are",
    ),
    Mutant(
        "buffers_of_a_former_store_go_back_under_it",
        f"{_REMOTE}/former_stores.py",
        "        if lock_held(lock):",
        "        if not lock:",
        ("agent/tests/remote/test_former_stores.py::test_one_that_runs_keeps_what_it_has",),
        "a process of a former release goes on with buffers that are another's by then",
    ),
    Mutant(
        "mirror_of_a_disk_is_free",
        "pondstack/domain/remote_share.py",
        "        return (self.node_mib if self.remote_mib else 0) + self.swap_mib",
        "        return self.node_mib if self.remote_mib else 0",
        ("nova_plugins/tests/scheduler/test_remote_request.py::test_a_swap_disk_claims_its_mirror_only",),
        "servers are placed on hosts that have no room for their disks",
    ),
    Mutant(
        "a_disk_moves_live",
        f"{_NOVA}/compute/remote/life.py",
        "    if stays:\n        raise exception.MigrationPreCheckError",
        "    if False:\n        raise exception.MigrationPreCheckError",
        (f"{_NOVA_TESTS}::test_it_stays_on_its_host",),
        "a guest arrives without the memory that it had swapped out",
    ),
    Mutant(
        "remote_memory_left_without_its_disk",
        f"{_NOVA}/compute/remote/life.py",
        "            if borrowed:\n                self.remote_memory.give_back(host, instance.uuid)\n",
        "            pass\n",
        (f"{_NOVA_TESTS}::test_a_disk_that_cannot_be_had_leaves_no_remote_memory",),
        "a build that went elsewhere keeps its loan on the host that refused it",
    ),
    Mutant(
        "a_disk_is_ended_under_a_guest",
        f"{_REMOTE}/swap_disks.py",
        "        if self._has_process(mine):\n            raise InUse(",
        "        if self._has_process(mine) and not mine.mib:\n            raise InUse(",
        (f"{_TESTS}::test_a_disk_that_nova_forgot_is_reported_and_ended",),
        "a guest that runs loses what it had swapped out, as its claim was missing in Placement",
    ),
    Mutant(
        "a_disk_is_ended_as_it_is_asked_for",
        f"{_REMOTE}/remote.py",
        "            mine = self._consumers.put(mine, at=self._consumers.clock())\n",
        "",
        (f"{_TESTS}::test_a_disk_that_nova_forgot_is_reported_and_ended",),
        "a server that comes back to its former host starts on a disk that ends",
    ),
    Mutant(
        "a_disk_without_grace",
        f"{_RECONCILE}/rules/loans.py",
        "        if seconds < observation.limits.unclaimed_grace_seconds:",
        "        if seconds < 0.0:",
        (f"{_LOANS}::test_not_before_the_grace_of_a_disk_is_over",),
        "the disk of a server is ended in a moment in which its claim has another name",
    ),
    Mutant(
        "a_move_does_not_claim_its_disk",
        f"{_RECONCILE}/holders.py",
        "any(has >= mib and other not in known for other, has in held.items())",
        "False",
        (f"{_LOANS}::test_who_claims_a_swap_disk",),
        "a resize that is reverted finds no disk at its source",
    ),
    Mutant(
        "loans_of_a_disk_in_use_are_asked_back",
        f"{_RECONCILE}/rules/loans.py",
        "    kept = not item.guaranteed and observation.host_up(item.host)",
        "    kept = False",
        (f"{_LENT}::test_one_whose_instance_runs_keeps_what_it_borrowed",),
        "a guest that runs borrows and gives back for ever",
    ),
)
