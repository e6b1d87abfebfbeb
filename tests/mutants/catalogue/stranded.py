"""Planted faults: guests that wait for pages of a host that is lost, and what SELinux denies."""

from tests.mutants.mutant import Mutant

_STRANDED = "agent/pondstack_agent/remote/stranded.py"
_LOST = "nova_plugins/pondstack_nova/compute/remote/lost_guests.py"
_SELINUX = "agent/pondstack_agent/data_plane/selinux.py"
_AGENT_TESTS = "agent/tests/remote/test_stranded.py"
_NOVA_TESTS = "nova_plugins/tests/compute/remote/test_lost_guests.py"
_SELINUX_TESTS = "agent/tests/data_plane/test_selinux.py"

MUTANTS = [
    Mutant(
        "who_waits_is_told_of_by_nobody",
        "agent/pondstack_agent/remote/extensions.py",
        "            self.stranded.look(mine.consumer_uuid, seen.handover)\n",
        "            pass\n",
        (f"{_AGENT_TESTS}::test_the_agent_tells_who_cannot_go_on",),
        "a guest whose source is lost waits for ever, and nobody knows",
    ),
    Mutant(
        "lost_after_a_moment_of_silence",
        _STRANDED,
        "return seconds > self._limits.abandoned_seconds",
        "return seconds > self._limits.silence_seconds",
        (f"{_AGENT_TESTS}::test_it_is_told_after_the_silence_and_lost_at_the_end",),
        "a guest is ended because the data plane of its source was restarted",
    ),
    Mutant(
        "lost_while_its_pages_come",
        _STRANDED,
        "return seen is not None and not seen.connected and seen.state not in _HERE",
        "return seen is not None and seen.state not in _HERE",
        (f"{_AGENT_TESTS}::test_who_lacks_pages",),
        "a large guest is ended in the middle of its move",
    ),
    Mutant(
        "time_of_an_earlier_silence_counts",
        _STRANDED,
        "            self._since.pop(guest, None)\n",
        "",
        (f"{_AGENT_TESTS}::test_who_gets_its_pages_waits_no_more",),
        "a guest is ended for a silence that was over long ago",
    ),
    Mutant(
        "a_guest_on_its_way_is_ended",
        _LOST,
        "if instance.node != node or instance.task_state is not None:",
        "if instance.node != node:",
        (f"{_NOVA_TESTS}::test_who_is_on_its_way_or_elsewhere_is_let_be",),
        "a reboot, or another move, is broken in its middle",
    ),
    Mutant(
        "a_guest_of_another_host_is_ended",
        _LOST,
        "if instance.node != node or instance.task_state is not None:",
        "if instance.task_state is not None:",
        (f"{_NOVA_TESTS}::test_who_is_on_its_way_or_elsewhere_is_let_be",),
        "a server in good order is set to ERROR for what another host has of it",
    ),
    Mutant(
        "the_end_has_no_reason",
        _LOST,
        "        compute_utils.add_instance_fault_from_exc(context, instance, error)\n",
        "",
        (f"{_NOVA_TESTS}::test_it_is_in_error_with_the_reason_before_it_is_off",),
        "a server is in ERROR, and nobody can see why",
    ),
    Mutant(
        "selinux_of_the_next_permission",
        _SELINUX,
        "allowed >> (int(bit) - 1) & 1",
        "allowed >> int(bit) & 1",
        (f"{_SELINUX_TESTS}::test_each_denial_is_named_as_the_kernel_names_it",),
        "guests are refused, or attached in vain, for another permission's sake",
    ),
    Mutant(
        "permissive_domains_deny",
        _SELINUX,
        "return not flags & _PERMISSIVE and not allowed",
        "return not allowed",
        (f"{_SELINUX_TESTS}::test_where_nothing_is_enforced_nothing_is_denied",),
        "no guest has remote memory where SELinux only warns",
    ),
    Mutant(
        "what_nova_forgot_stays",
        "agent/pondstack_agent/remote/remote.py",
        "if used or not mine.guaranteed or now - since < FORGOTTEN_SECONDS:",
        "if True:",
        ("agent/tests/remote/test_remote.py::test_what_an_instance_had_that_nova_forgot_ends",),
        "the mirror of an instance that is gone keeps others from a host for good",
    ),
    Mutant(
        "what_is_served_is_ended_as_forgotten",
        "agent/pondstack_agent/remote/remote.py",
        "used = mine.extension is not None or self._borrowed.mib(mine) > 0",
        "used = self._borrowed.mib(mine) > 0",
        ("agent/tests/remote/test_remote.py::test_what_is_served_or_claimed_again_stays",),
        "a guest that runs loses what it is to borrow anew",
    ),
]
