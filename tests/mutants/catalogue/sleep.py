"""Planted faults: how hosts sleep, what that saves, and which of them sleep deeper."""

from tests.mutants.mutant import Mutant

_LOW_POWER = "agent/pondstack_agent/power/low_power.py"
_DOORBELL = "agent/pondstack_agent/power/doorbell.py"
_DOORBELL_TESTS = "agent/tests/power/test_doorbell.py"
_ACTOR = "pondstack/controller/sleep/actor.py"
_GUARD_TESTS = "pondstack/tests/controller/sleep/test_service_guard.py"
_ACTOR_TESTS = "pondstack/tests/controller/sleep/test_doorbells.py"
_DRIVERS = "agent/tests/power/test_drivers.py"
_DEEPER = "pondstack/domain/deeper_sleep.py"
_DEEPER_TESTS = "pondstack/tests/domain/test_deeper_sleep.py"

MUTANTS = [
    Mutant(
        "asleep_while_processes_run",
        _LOW_POWER,
        "            self._await_frozen(groups, woken)\n",
        "",
        (f"{_DRIVERS}::test_a_host_with_a_process_that_does_not_freeze_stays_awake",),
        "a host says that it sleeps while a process of it goes on",
    ),
    Mutant(
        "another_boot_undone",
        _LOW_POWER,
        'same_boot = found["boot"] == read(self._boot_id)',
        "same_boot = True",
        (f"{_DRIVERS}::test_after_a_reset_there_is_nothing_to_undo",),
        "after a reset a waker changes CPUs and groups that nobody had put to sleep",
    ),
    Mutant(
        "watchdog_resets_a_sleeper",
        _LOW_POWER,
        'if read(state) == "active":',
        "if False:",
        (f"{_DRIVERS}::test_a_host_that_its_watchdog_would_reset_stays_awake",),
        "a host is reset a minute after it fell asleep, and what it lent is lost",
    ),
    Mutant(
        "any_bytes_ring",
        _DOORBELL,
        "if not hmac.compare_digest(found, self._token):",
        "if found == SILENT:",
        (f"{_DOORBELL_TESTS}::test_another_token_wakes_nobody_and_keeps_nobody_from_ringing",),
        "who has no token wakes a host",
    ),
    Mutant(
        "rung_for_a_former_sleep",
        _DOORBELL,
        "self._armed.operation_id != operation_id:",
        "False:",
        (f"{_DOORBELL_TESTS}::test_what_was_for_one_sleep_is_worth_nothing_for_the_next",),
        "the token of a former sleep wakes a host",
    ),
    Mutant(
        "rung_for_ever",
        _DOORBELL,
        "self._lender.store(self._region, 0, SILENT)",
        "pass",
        (f"{_DOORBELL_TESTS}::test_who_is_connected_rings_as_often_as_it_takes",),
        "one ring is taken for many",
    ),
    Mutant(
        "told_to_sleep_before_anybody_can_ring",
        _ACTOR,
        "step = step._replace(ringers=self._doorbells.connect(item, self._ledger.epoch))",
        "pass",
        (f"{_ACTOR_TESTS}::test_others_are_connected_before_a_host_is_told_to_sleep",),
        "no host has a doorbell",
    ),
    Mutant(
        "rung_in_vain_for_ever",
        _ACTOR,
        "ways if item.work.calls % 2 == 0 else reversed(ways)",
        "ways",
        (f"{_ACTOR_TESTS}::test_who_did_not_wake_by_a_ring_is_called_over_the_bus_the_next_time",),
        "a waker that does not hear its doorbell is never called over the bus",
    ),
    Mutant(
        "watts_that_nobody_measured",
        "pondstack/domain/energy.py",
        "known is None and driver in MODES and MODES[driver].emulated",
        "known is None",
        ("pondstack/tests/domain/test_energy.py::test_nobody_claims_what_nobody_has_measured",),
        "a figure is shown that neither the paper nor anybody else has",
    ),
    Mutant(
        "memory_in_use_sleeps_deeper",
        _DEEPER,
        "if all(map(_is_for_anybody, mine)) and free - lent > lent:",
        "if free - lent > lent:",
        (f"{_DEEPER_TESTS}::test_the_next_one_where_the_first_is_in_use",),
        "a borrower loses the memory that it uses",
    ),
    Mutant(
        "two_sleep_deeper_at_once",
        _DEEPER,
        "if not driver or any(map(is_changing, sleeps)):",
        "if not driver:",
        (f"{_DEEPER_TESTS}::test_one_at_a_time",),
        "two hosts each take what the other one counts on, and the rack has no free memory",
    ),
    Mutant(
        "deeper_though_wanted_back",
        "pondstack/ledger/host_sleeps.py",
        "            elif item.work.deeper and not item.is_deeper:\n",
        "            elif False:\n",
        ("pondstack/tests/ledger/test_host_sleeps.py::test_one_that_is_wanted_back_does_not_sleep_deeper",),
        "a host that an operator wakes goes to sleep again",
    ),
    Mutant(
        "deeper_by_the_old_order",
        "pondstack/controller/sleep/observer.py",
        'f"suspend by {item.driver}" if item.is_deeper else "suspend"',
        '"suspend"',
        ("pondstack/tests/controller/sleep/test_keeper.py::test_a_sleeper_that_nobody_needs_sleeps_deeper",),
        "its waker takes the order for the one that it has carried out, and the host stays awake",
    ),
    Mutant(
        "sleepers_stay_enabled",
        "pondstack/domain/sleeper_services.py",
        "not service.enabled and (sleep.work",
        "(service.enabled or sleep.work",
        ("pondstack/tests/domain/test_sleeper_services.py", _GUARD_TESTS),
        "Nova may place servers on a host that sleeps, once somebody enabled it late",
    ),
    Mutant(
        "awake_hosts_stay_disabled",
        "pondstack/domain/sleeper_services.py",
        "not service.enabled and service.disabled_reason == DISABLED_REASON",
        "False",
        ("pondstack/tests/domain/test_sleeper_services.py", _GUARD_TESTS),
        "a host that is awake gets no servers any more, and nothing says why",
    ),
    Mutant(
        "operators_orders_fall",
        "pondstack/domain/sleeper_services.py",
        "not service.enabled and service.disabled_reason == DISABLED_REASON",
        "not service.enabled",
        ("pondstack/tests/domain/test_sleeper_services.py", _GUARD_TESTS),
        "a host that an operator disabled is enabled",
    ),
    Mutant(
        "a_plans_late_order_stays",
        "pondstack/domain/sleeper_services.py",
        "(sleep.work.kept_disabled or not service.disabled_reason.startswith(OURS))",
        "True",
        ("pondstack/tests/domain/test_sleeper_services.py", _GUARD_TESTS),
        "Nova says of a host that sleeps that a plan has disabled it, and it stays so once it is woken",
    ),
    Mutant(
        "an_operators_drain_falls",
        "pondstack/domain/sleeper_services.py",
        "sleep.work.kept_disabled or ",
        "",
        ("pondstack/tests/domain/test_sleeper_services.py",),
        "a host that was drained before it slept is enabled once it is woken",
    ),
    Mutant(
        "cancelled_plans_stand",
        "pondstack/domain/sleeper_services.py",
        "if plan.state is PlanState.CANCELLED or wakes:",
        "if wakes:",
        ("pondstack/tests/domain/test_sleeper_services.py", _GUARD_TESTS),
        "a host that a former leader disabled late, for a plan that was cancelled, gets no servers any more",
    ),
    Mutant(
        "open_plans_fall",
        "pondstack/domain/sleeper_services.py",
        "    if plan.is_open:\n        return True\n",
        "",
        ("pondstack/tests/domain/test_sleeper_services.py", _GUARD_TESTS),
        "servers come to a host that a plan is just emptying",
    ),
    Mutant(
        "hosts_that_are_down_are_enabled",
        "pondstack/controller/sleep/service_guard.py",
        "if item.up or name in asked",
        "",
        (_GUARD_TESTS,),
        "after a restored ledger a host that still sleeps is enabled",
    ),
]
