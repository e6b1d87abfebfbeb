"""Faults planted in what limits plans, in what they know of servers that cannot move, and in waking on demand."""

from tests.mutants.mutant import Mutant

_LIVE_MOVE = "pondstack/domain/live_move.py"
_LIVE_MOVES = "pondstack/tests/controller/consolidation/test_live_moves.py"
_INPUTS = "pondstack/tests/controller/consolidation/test_inputs.py"
_APPLIER = "pondstack/tests/consolidation/applier/test_applier.py"
_UNPLACED = "pondstack/controller/consolidation/unplaced.py"
_UNPLACED_TESTS = "pondstack/tests/controller/consolidation/test_unplaced.py"
_SUPPLY = "pondstack/tests/consolidation/decision/test_supply.py"
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
    Mutant(
        "nova_asked_while_nobody_sleeps",
        _UNPLACED,
        "if not any(sleep.state is SleepState.ASLEEP for sleep in self._sleeps.unended()):",
        "if not list(self._sleeps.unended()):",
        (f"{_UNPLACED_TESTS}::test_while_nobody_sleeps_nova_is_not_asked",),
        "hosts that are on their way to sleep are planned for",
    ),
    Mutant(
        "a_plan_beside_one_under_way",
        _UNPLACED,
        "return state is not PlanState.PROPOSED or",
        "return state is PlanState.PROPOSED and",
        (f"{_UNPLACED_TESTS}::test_each_server_has_one_plan_whoever_leads",),
        "two plans wake hosts at a time",
    ),
    Mutant(
        "hints_lost",
        _UNPLACED,
        "(self._hinted or self._clock() >= self._look_at)",
        "self._clock() >= self._look_at",
        (f"{_UNPLACED_TESTS}::test_it_looks_when_it_is_time_and_by_a_hint",),
        "a notification of Nova brings nothing forward",
    ),
    Mutant(
        "hinted_for_ever",
        _UNPLACED,
        "self._hinted, self._look_at = False,",
        "self._hinted, self._look_at = self._hinted,",
        (f"{_UNPLACED_TESTS}::test_it_looks_when_it_is_time_and_by_a_hint",),
        "after one notification Nova is asked in each round",
    ),
    Mutant(
        "old_failures_wake_hosts",
        _UNPLACED,
        "timedelta(seconds=pace.within_seconds)",
        "timedelta(days=pace.within_seconds)",
        (f"{_UNPLACED_TESTS}::test_while_nobody_sleeps_nova_is_not_asked",),
        "hosts are woken for servers whose users have given up",
    ),
    Mutant(
        "plans_for_all_at_once",
        _UNPLACED,
        "key=lambda item: item.uuid)[:MOST]",
        "key=lambda item: item.uuid)",
        (f"{_UNPLACED_TESTS}::test_a_plan_is_for_so_many_at_most",),
        "a plan grows without bound",
    ),
    Mutant(
        "unplaced_traits_unknown_are_none",
        _UNPLACED,
        "traits=None if traits is None else tuple(traits)",
        "traits=tuple(traits or ())",
        (f"{_UNPLACED_TESTS}::test_traits_that_nova_does_not_show_stay_unknown",),
        "a host is woken for a server that wants traits which it may lack",
    ),
    Mutant(
        "woken_without_a_limit",
        "pondstack/consolidation/decision/decider.py",
        "if len(self._draft.woken) >= self._settings.most_woken:",
        "if len(self._draft.woken) > self._settings.most_woken:",
        (f"{_SUPPLY}::test_a_burst_wakes_as_many_as_it_needs",),
        "a burst of servers wakes more hosts than the operator allows",
    ),
)
