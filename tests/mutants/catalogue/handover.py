"""Faults planted in hand-overs: live migrations of guests with remote memory."""

from tests.mutants.mutant import Mutant

_REMOTE = "agent/pondstack_agent/remote"
_TESTS = "agent/tests/remote/test_handovers.py"
_NOVA = "nova_plugins/pondstack_nova/compute/remote"
_NOVA_TESTS = "nova_plugins/tests/compute/remote"

MUTANTS = (
    Mutant(
        "pages_given_up_under_a_guest",
        f"{_REMOTE}/handovers.py",
        'seen.state == "switched" and state == State.ENDING and alone_seconds',
        'seen.state == "switched" and alone_seconds',
        (f"{_TESTS}::test_what_is_given_up",),
        "a guest whose new host stands still for long loses pages, though Nova has not heard of its move yet",
    ),
    Mutant(
        "a_destination_that_is_there_passed_over",
        f"{_REMOTE}/handovers.py",
        "    if seen.connected:\n        return ",
        "    if not seen:\n        return ",
        (f"{_TESTS}::test_what_is_given_up",),
        "the source takes pages away while its destination fetches them",
    ),
    Mutant(
        "starting_guests_refused",
        f"{_REMOTE}/handovers.py",
        '("no shared writable mapping", "was not started with -uuid")',
        '("no shared writable mapping",)',
        (f"{_TESTS}::test_a_process_that_is_starting_is_waited_for",),
        "on a busy host a guest behind a shim does not arrive, and its migration fails",
    ),
    Mutant(
        "memory_copied_by_qemu",
        f"{_REMOTE}/handovers.py",
        "        if not self._find(guest, pid=extension.pid).is_file:\n",
        "        if not self._find(guest, pid=extension.pid):\n",
        (f"{_TESTS}::test_who_is_not_offered",),
        "QEMU writes the guest's memory at the destination, under the data plane, while the source still changes it",
    ),
    Mutant(
        "a_late_request_ends_a_hand_over",
        f"{_REMOTE}/handovers.py",
        '        if seen.handover.connected or seen.handover.state != "offered":\n',
        '        if seen.handover.state == "none":\n',
        (f"{_TESTS}::test_a_guest_is_offered",),
        "a request that a broker delivers late takes a guest back that runs at its destination",
    ),
    Mutant(
        "pages_kept_by_nobody",
        f"{_REMOTE}/handovers.py",
        "        if not seen.handover.kept:\n",
        "        if not seen.handover:\n",
        (f"{_TESTS}::test_who_is_not_offered",),
        "with a data plane of a former release, the guest's pages go with its process at the source",
    ),
    Mutant(
        "an_empty_memory_served",
        f"{_REMOTE}/extensions.py",
        "        if seen is None and wanted.incoming:\n",
        "        if seen is None and wanted.homing:\n",
        (f"{_TESTS}::test_a_guest_that_came_is_never_attached_as_if_it_had_been_here",),
        "a guest that came reads zeros for all pages that were still at its source",
    ),
    Mutant(
        "a_public_key_for_the_session_key",
        f"{_REMOTE}/session_keys.py",
        "        return made.derive(shared).hex()\n",
        "        return other\n",
        (f"{_TESTS}::test_both_sides_make_the_same_key",),
        "whoever reads the bus can have a guest's memory",
    ),
    Mutant(
        "memory_left_out_of_what_is_saved",
        f"{_NOVA}/left_out.py",
        "        self._pond_leave_nothing_out(self._host.get_guest(instance), instance)\n"
        "        return super().suspend",
        "        return super().suspend",
        (f"{_NOVA_TESTS}/test_remote_guests.py::test_what_is_saved_has_its_memory",),
        "a guest that is suspended after a live migration wakes up without its memory",
    ),
    Mutant(
        "borrowed_for_a_move_that_does_not_begin",
        f"{_NOVA}/life.py",
        "        except PoolMemoryUnavailable as error:\n            self._pond_give_back(instance)\n",
        "        except PoolMemoryUnavailable as error:\n",
        (f"{_NOVA_TESTS}/test_remote_memory.py::test_a_live_move_that_cannot_begin",),
        "each attempt to move a guest keeps as much lent memory as it has",
    ),
)
