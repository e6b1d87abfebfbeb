"""Faults planted where guests leave the pool for good: in the agent, and in what Nova's computes do with them later."""

from tests.mutants.mutant import Mutant

_COMPUTE, _TESTS = "nova_plugins/pondstack_nova/compute", "nova_plugins/tests/compute"
_MITIGATION, _AGENT = "agent/pondstack_agent/mitigation", "agent/tests/mitigation"
_RECONCILE = "pondstack/controller/reconcile"
_RULES = "pondstack/tests/controller/reconcile/rules/test_mitigations.py"

MUTANTS = (
    Mutant(
        "held_slices_go_without_an_order",
        f"{_MITIGATION}/mitigations.py",
        "if state is State.MITIGATED and not entry.hold:",
        "if state is State.MITIGATED:",
        (f"{_AGENT}/test_held.py::test_a_held_one_keeps_its_slices_until_they_are_ordered_back",),
        "slices go before what is stored of their guest was rewritten",
    ),
    Mutant(
        "held_slices_go_with_the_next_start",
        f"{_MITIGATION}/mitigations.py",
        "entry.allocation_uuid in held and not entry.hold:",
        "entry.allocation_uuid in held:",
        (f"{_AGENT}/test_held.py::test_a_held_one_killed_at_each_step",),
        "an agent that is killed gives back what nobody ordered back",
    ),
    Mutant(
        "order_to_release_is_not_on_disk",
        f"{_MITIGATION}/mitigations.py",
        "            entry = self._entries.put(entry, hold=False)\n",
        "            pass\n",
        (f"{_AGENT}/test_held.py::test_a_held_one_killed_at_each_step",),
        "an agent that is killed while it releases forgets the order",
    ),
    Mutant(
        "aborted_on_its_way_begins",
        f"{_MITIGATION}/mitigations.py",
        "if operation_id and not under_way and",
        "if False and",
        (f"{_AGENT}/test_held.py::test_one_that_was_aborted_on_its_way_never_begins",),
        "a copy begins after its claim of local memory was taken back",
    ),
    Mutant(
        "managed_save_keeps_the_pools_node",
        f"{_MITIGATION}/domains.py",
        'changed |= self._put("managed save", image, nodes, domain.managedSaveDefineXML)',
        "changed |= bool(image) and changed",
        (f"{_AGENT}/test_domains.py",),
        "a guest that was suspended before its mitigation takes other guests' slices when it is resumed",
    ),
    Mutant(
        "suspended_later_keeps_the_pools_node",
        f"{_COMPUTE}/stored_domains.py",
        "if saved in wrong:",
        "if False:",
        (f"{_TESTS}/test_stored_domains.py::test_what_is_bound",),
        "a guest that is suspended after its mitigation takes other guests' slices when it is resumed",
    ),
    Mutant(
        "resume_takes_a_guests_pool_memory",
        f"{_COMPUTE}/stored_domains.py",
        "if not wrong or not is_local():",
        "if not wrong:",
        (f"{_TESTS}/test_stored_domains.py::test_a_guest_that_claims_pool_memory_keeps_it",),
        "a guest with pool memory is resumed on local memory that nobody claimed",
    ),
    Mutant(
        "moved_to_local_memory_on_a_file",
        f"{_COMPUTE}/znuma.py",
        '        cell.attrib.pop("memAccess", None)\n',
        "        pass\n",
        (f"{_TESTS}/test_znuma.py",),
        "a guest that left a pool of files has its node on a file of the new host's disk",
    ),
    Mutant(
        "reboot_keeps_what_is_not_claimed",
        f"{_COMPUTE}/lifecycle.py",
        "instance.uuid in self._pond_rebooting - self._pond_given_up",
        "instance.uuid in self._pond_rebooting",
        (f"{_TESTS}/test_corrected.py::test_a_reboot_leaves_it_without_pool_memory",),
        "a guest that was rebooted during its mitigation holds slices that it does not use",
    ),
    Mutant(
        "unknown_split_is_all_local",
        f"{_COMPUTE}/lifecycle.py",
        "                if source:\n                    raise claim\n",
        "",
        (f"{_TESTS}/test_migration.py::test_nobody_says_how_it_is_split_at_the_destination",),
        "a guest moves to local memory that nobody claimed for it",
    ),
    Mutant(
        "what_a_moved_guest_left_behind_stays",
        f"{_RECONCILE}/rules/mitigations.py",
        "if found.state in GIVING_BACK and ",
        "if False and ",
        (f"{_RULES}::test_what_a_guest_left_behind_where_it_moved_from_is_taken_offline",),
        "a mitigation waits for ever for slices whose release failed at the former host",
    ),
    Mutant(
        "what_may_be_moved_back_is_taken",
        f"{_RECONCILE}/rules/mitigations.py",
        "if found.state in GIVING_BACK and ",
        "if ",
        (f"{_RULES}::test_what_may_still_be_moved_back_is_not_taken",),
        "the slices of a guest that Nova still moves are taken offline",
    ),
    Mutant(
        "slices_of_a_guest_that_stayed_are_taken",
        f"{_RECONCILE}/holders.py",
        "        return item.consumer_uuid not in self.hosts.get(item.host, {item.consumer_uuid: 0})\n",
        "        return True\n",
        (f"{_RULES}::test_slices_that_it_needs_are_not_taken",),
        "the reconciler takes slices offline that a mitigation by copy still needs",
    ),
)
