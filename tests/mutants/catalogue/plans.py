"""Faults planted in what plans of consolidation are limited by, and in what they know of servers that cannot move."""

from tests.mutants.mutant import Mutant

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
)
