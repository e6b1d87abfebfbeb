"""Faults planted in RAM extension by the agent: instances whose process the data plane serves."""

from tests.mutants.mutant import Mutant

_REMOTE = "agent/pondstack_agent/remote"
_TESTS = "agent/tests/remote/test_extension.py"
_DENIALS = "agent/pondstack_agent/data_plane/denials.py"
_DENIAL_TESTS = "agent/tests/data_plane/test_denials.py"

MUTANTS = (
    Mutant(
        "buffers_given_back_under_a_guest",
        f"{_REMOTE}/extensions.py",
        "        if mine.extension is not None and self._lives(mine.extension):\n            raise Conflict(",
        "        if False:\n            raise Conflict(",
        (f"{_TESTS}::test_memory_is_not_given_back_under_a_guest",),
        "an instance that runs loses what it has borrowed, and its guest lives on the mirror",
    ),
    Mutant(
        "silence_taken_for_an_end",
        f"{_REMOTE}/leased.py",
        "        except DataPlaneGone:\n            return set()",
        "        except PondError:\n            return set()",
        (f"{_TESTS}::test_silence_is_no_answer",),
        "a frozen data plane goes on writing to buffers that are said to be given back",
    ),
    Mutant(
        "leases_told_once",
        f"{_REMOTE}/leases.py",
        "if number not in there):",
        "if there and number not in there):",
        (f"{_TESTS}::test_the_data_plane_is_told_anew_after_its_death",),
        "after a death of the data plane a guest has its mirror only, for ever",
    ),
    Mutant(
        "lost_leases_kept",
        f"{_REMOTE}/leases.py",
        "there.get(number) is LeaseState.LOST",
        "there.get(number) is LeaseState.LEFT",
        (f"{_TESTS}::test_what_a_lender_lost_is_borrowed_elsewhere",),
        "what a dead lender lost is not borrowed elsewhere",
    ),
    Mutant(
        "sleepers_out_of_reach_kept",
        f"{_REMOTE}/leased.py",
        "        if held.name in self._links():\n",
        "        if True:\n",
        ("agent/tests/remote/test_sleeping_lender.py::test_it_serves_and_then_the_mirror_does",),
        "after a death of the data plane a guest has its mirror only, until a lender wakes",
    ),
    Mutant(
        "a_dead_key_holds_up_all",
        f"{_REMOTE}/leases.py",
        "    late = [index for index in indexes if index in set(refused)]\n"
        "    first = [index for index in indexes if index not in set(refused)]\n",
        "    late: list[int] = []\n    first = list(indexes)\n",
        (f"{_TESTS}::test_a_key_that_its_lender_refuses_holds_up_no_other",),
        "one key that its lender refuses keeps a guest from all other buffers of that lender",
    ),
    Mutant(
        "leases_of_others_kept",
        f"{_REMOTE}/leases.py",
        "if n not in mine and state is not LeaseState.LEFT)",
        "if n in mine and state is LeaseState.LEFT)",
        (f"{_TESTS}::test_leases_that_are_not_held_are_left",),
        "the data plane goes on with buffers that this host has not",
    ),
    Mutant(
        "the_order_to_come_home_forgotten",
        f"{_REMOTE}/extensions.py",
        "replace(mine.extension, homing=True)",
        "replace(mine.extension, homing=False)",
        (f"{_TESTS}::test_pages_that_take_long_to_come_home",),
        "an agent that restarts has pages leave that were to come home",
    ),
    Mutant(
        "mirrors_without_a_bound",
        f"{_REMOTE}/records.py",
        "        if taken + mib > room_mib:",
        "        if taken + mib < 0:",
        (f"{_TESTS}::test_mirrors_have_a_bound",),
        "mirrors fill the disk of a host, and guests over their limit its memory",
    ),
    Mutant(
        "evicted_taken_for_untouched",
        "agent/pondstack_agent/telemetry/memory.py",
        "        if figure.nodes != (0,):\n",
        "        if figure.nodes:\n",
        ("agent/tests/telemetry/test_samples.py::test_what_the_data_plane_has_evicted_is_not_untouched",),
        "predictions take a guest's evicted memory for untouched, and give it to the pool",
    ),
    Mutant(
        "huge_pages_under_the_pager",
        "agent/pondstack_agent/qemu/wrapper.py",
        "            forbid_huge_pages()\n",
        "            pass\n",
        ("agent/tests/qemu/test_wrapper.py::test_a_guest_with_a_shared_node_gets_no_huge_pages",),
        "the data plane refuses guests that have got huge pages before they were extended",
    ),
    Mutant(
        "attached_though_denied",
        f"{_REMOTE}/extensions.py",
        "            if denied := self._denials(wanted.pid):\n",
        "            if denied := self._denials(wanted.pid)[:0]:\n",
        ("agent/tests/remote/test_denied_guests.py::test_a_guest_that_is_denied_is_not_tried",),
        "nova-compute gets an errno, and nobody knows what denies the data plane a guest",
    ),
    Mutant(
        "scope_of_no_attach_passed_over",
        _DENIALS,
        "host.ptrace_scope < NO_ATTACH:",
        "host.ptrace_scope <= NO_ATTACH:",
        (f"{_DENIAL_TESTS}::test_a_scope_that_forbids_all",),
        "servers come to a host where no guest can have remote memory",
    ),
    Mutant(
        "rules_out_of_sight_taken_for_none",
        _DENIALS,
        "    if host.rules is None or _lets_trace(host.rules, own):\n",
        "    if _lets_trace(host.rules or '', own):\n",
        (f"{_DENIAL_TESTS}::test_a_confined_data_plane_needs_the_guests_rule",),
        "an agent in a container, which sees none of its host's rules, refuses guests that could be served",
    ),
)
