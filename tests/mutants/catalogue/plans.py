"""Faults planted in what plans of consolidation are limited by, and in what they know of servers that cannot move."""

from tests.mutants.mutant import Mutant

_LIVE_MOVE = "pondstack/domain/live_move.py"
_LIVE_MOVES = "pondstack/tests/controller/consolidation/test_live_moves.py"
_INPUTS = "pondstack/tests/controller/consolidation/test_inputs.py"
_APPLIER = "pondstack/tests/consolidation/applier/test_applier.py"
_SETTINGS = "pondstack/tests/controller/consolidation/test_plan_settings.py"

MUTANTS = (
    Mutant(
        "reserve_of_the_option_only",
        "pondstack/controller/consolidation/plan_settings.py",
        "options | self._limits().given | dict(changes)",
        "options | dict(changes)",
        (f"{_SETTINGS}::test_what_is_set_at_run_time_holds_at_once_even_if_it_is_zero",),
        "an operator's reserve is shown, and plans empty the hosts that are needed for it",
    ),
    Mutant(
        "zero_limits_are_none",
        "pondstack/domain/consolidation_limits.py",
        "if value is not None}",
        "if value}",
        (f"{_SETTINGS}::test_what_is_set_at_run_time_holds_at_once_even_if_it_is_zero",),
        "an operator who sets no reserve has that of the option",
    ),
    Mutant(
        "plans_ask_for_fewer_awake",
        "pondstack/controller/consolidation/plan_settings.py",
        "if given is None else given",
        "if not given else given",
        (f"{_SETTINGS}::test_what_is_set_at_run_time_holds_at_once_even_if_it_is_zero",),
        "plans fail at hosts that the operator lets sleep",
    ),
    Mutant(
        "swap_disks_move",
        _LIVE_MOVE,
        "    if specs.swap_mib:\n",
        "    if specs.swap_mib and backings:\n",
        (f"{_LIVE_MOVES}::test_who_stays_on_its_host", "nova_plugins/tests/compute/remote/test_swap_disk.py"),
        "a guest is moved away from its swapped pages",
    ),
    Mutant(
        "unknown_backings_move",
        _LIVE_MOVE,
        "UNKNOWN in backings",
        "None in backings",
        (f"{_LIVE_MOVES}::test_pool_memory_that_no_agent_reports_is_of_an_unknown_kind",),
        "a plan fails at the migration of a guest of which its agent has not told",
    ),
    Mutant(
        "plans_move_who_stays",
        "pondstack/controller/consolidation/inputs.py",
        ' or ("" if item.running else "it is not running") or stays',
        ' or ("" if item.running else "it is not running")',
        (f"{_INPUTS}::test_a_host_with_a_server_that_cannot_be_moved_is_not_emptied_and_the_plan_says_why",),
        "hosts are chosen whose servers Nova refuses to migrate",
    ),
    Mutant(
        "applied_though_it_stays",
        "pondstack/consolidation/applier/actions.py",
        "        if stays:\n",
        "        if False:\n",
        (f"{_APPLIER}::test_a_server_that_cannot_move_for_where_its_memory_is_is_not_asked_to",),
        "a server that was resized meanwhile is migrated, and Nova refuses",
    ),
    Mutant(
        "slices_of_the_host_itself_count",
        "pondstack/controller/consolidation/live_moves.py",
        'if item.get("purpose", Purpose.GUEST) == Purpose.GUEST:',
        "if item:",
        (f"{_LIVE_MOVES}::test_who_stays_on_its_host",),
        "a server stays for memory that is its host's",
    ),
)
