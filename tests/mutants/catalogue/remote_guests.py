"""Planted faults: guests with remote memory, in Nova."""

from tests.mutants.mutant import Mutant

_DOMAIN = "pondstack/domain/remote_share.py"
_DOMAIN_TESTS = "pondstack/tests/domain/test_remote_share.py"
_COMPUTE = "nova_plugins/pondstack_nova/compute"
_TESTS = "nova_plugins/tests/compute"

MUTANTS = [
    Mutant(
        "remote_leaves_nothing_local",
        _DOMAIN,
        "if remote_mib and local_mib < LEAST_LOCAL_MIB:",
        "if remote_mib and local_mib < 0:",
        (f"{_DOMAIN_TESTS}::test_some_local_memory_is_left",),
        "a guest that can hold no page",
    ),
    Mutant(
        "mirror_of_the_remote_part_only",
        _DOMAIN,
        "return self.local_mib + self.remote_mib + self.disk_mib",
        "return self.remote_mib + self.disk_mib",
        (f"{_DOMAIN_TESTS}::test_three_shares_are_all_of_a_guest",),
        "a mirror that does not fit is admitted",
    ),
    Mutant(
        "mirror_without_what_is_on_disk_alone",
        _DOMAIN,
        "return self.local_mib + self.remote_mib + self.disk_mib",
        "return self.local_mib + self.remote_mib",
        (f"{_DOMAIN_TESTS}::test_a_share_that_is_on_disk_alone",),
        "a guest is placed where its mirror does not fit, and cannot start",
    ),
    Mutant(
        "a_disk_share_without_limit",
        _DOMAIN,
        "if (remote_mib + disk_mib) * 100 > memory_mib * max_remote_percent:",
        "if remote_mib * 100 > memory_mib * max_remote_percent:",
        (f"{_DOMAIN_TESTS}::test_a_share_that_is_on_disk_alone",),
        "flavors that thrash, against the operator's word",
    ),
    Mutant(
        "a_disk_share_is_taken_for_pool",
        f"{_COMPUTE}/holdings.py",
        "claimed_mib = flavor.memory_mb - given_specs(flavor.extra_specs).disk_mib",
        "claimed_mib = flavor.memory_mb",
        (f"{_TESTS}/remote/test_remote_memory.py::test_a_part_that_is_on_disk_alone",),
        "a guest with a disk share does not start",
    ),
    Mutant(
        "pool_share_takes_what_is_to_stay_local",
        "nova_plugins/pondstack_nova/scheduler/request_filter.py",
        "specs = remote_request.leave_local(_capped(specs, settings), spec.flavor.memory_mb)",
        "specs = _capped(specs, settings)",
        ("nova_plugins/tests/scheduler/test_remote_request.py::test_beside_an_automatic_pool_share",),
        "a predictor's share makes boots fail",
    ),
    Mutant(
        "remote_is_taken_for_pool",
        f"{_COMPUTE}/claims.py",
        "pool_mib = memory_mib - local_mib - remote_mib",
        "pool_mib = memory_mib - local_mib",
        (f"{_TESTS}/test_claims.py::test_remote_memory_is_no_pool_memory",),
        "a guest with remote memory does not start",
    ),
    Mutant(
        "it_runs_before_it_is_served",
        f"{_COMPUTE}/remote/guests.py",
        "pause=pause or remote,",
        "pause=pause,",
        (f"{_TESTS}/remote/test_remote_guests.py::test_it_is_served_before_it_runs",),
        "a guest takes memory that its host does not have",
    ),
    Mutant(
        "what_is_not_served_stays",
        f"{_COMPUTE}/remote/guests.py",
        "                guest.poweroff()\n",
        "                pass\n",
        (f"{_TESTS}/remote/test_remote_guests.py::test_what_is_not_served_does_not_run",),
        "a process is left behind",
    ),
    Mutant(
        "soft_reboot_is_not_served",
        f"{_COMPUTE}/remote/guests.py",
        "        if not remote_mib_of(instance):\n            return bool(super()._soft_reboot",
        "        if True:\n            return bool(super()._soft_reboot",
        (f"{_TESTS}/remote/test_remote_guests.py::test_a_soft_reboot_makes_the_process_anew",),
        "after a soft reboot the guest takes all of its memory of the host",
    ),
    Mutant(
        "o_direct_is_let_in",
        f"{_COMPUTE}/remote/node.py",
        'DIRECT = frozenset({"none", "directsync"})',
        'DIRECT = frozenset({"directsync"})',
        (f"{_TESTS}/remote/test_remote_node.py::test_what_reaches_memory_behind_the_page_tables",),
        "a disk reads into a page that has left",
    ),
    Mutant(
        "failed_build_keeps_its_loan",
        f"{_COMPUTE}/lifecycle.py",
        "            if borrowed:\n                self._pond_give_back(instance)\n",
        "",
        (f"{_TESTS}/remote/test_remote_memory.py::test_a_build_that_fails_gives_it_back",),
        "buffers of builds that failed are gone until the reconciler comes",
    ),
    Mutant(
        "mirrors_vanish_from_placement",
        f"{_COMPUTE}/remote/mirror_inventory.py",
        "    elif former is not None:\n",
        "    elif former is not None and room_mib is None:\n",
        (f"{_TESTS}/remote/test_mirror_room.py::test_what_was_offered_stays",),
        "Placement refuses the host's whole inventory",
    ),
    Mutant(
        "mitigation_claims_remote_memory_twice",
        "pondstack/controller/mitigation/claims.py",
        "MEMORY_CLASS: local_mib - remote_mib, **mirror",
        "MEMORY_CLASS: local_mib, **mirror",
        ("pondstack/tests/controller/mitigation/test_claims.py::test_what_is_remote_stays_remote",),
        "a mitigated guest claims local memory for what is remote",
    ),
    Mutant(
        "loan_of_a_moving_guest_is_unclaimed",
        "pondstack/controller/reconcile/observation.py",
        "return moves and claims.moves_remote(item.host, least_mib, borrowers)",
        "return False",
        ("pondstack/tests/controller/reconcile/rules/test_loans.py::test_a_migration_holds_the_claim_at_the_source",),
        "a guest that runs while its move begins loses its buffers",
    ),
    Mutant(
        "pool_memory_is_left_out_of_a_live_migration",
        f"{_COMPUTE}/remote/left_out.py",
        "check_move(instance, (FILE,) if on_files else ())",
        "check_move(instance)",
        (f"{_TESTS}/remote/test_remote_guests.py::test_qemu_leaves_no_pool_memory_out",),
        "a guest's pool memory is empty after its move",
    ),
]
