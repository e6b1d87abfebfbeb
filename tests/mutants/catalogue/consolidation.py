"""Faults planted in consolidation: what is decided, what is written down of it, and how it is carried out."""

from tests.mutants.mutant import Mutant

_DECIDER = "pondstack/tests/consolidation/decision/test_decider.py"
_APPLIER = "pondstack/tests/consolidation/applier/test_applier.py"
_DEMAND = "pondstack/tests/consolidation/decision/test_demand.py"
_STATISTICS = "pondstack/tests/consolidation/decision/test_statistics.py"
_LEDGER = "pondstack/tests/ledger/test_plans.py"
_INPUTS = "pondstack/tests/controller/consolidation/test_inputs.py"

MUTANTS = (
    Mutant(
        "plans_beyond_placement",
        "pondstack/consolidation/decision/rooms.py",
        "return all(free.get(name, 0) >= amount for name, amount in demand.claim)",
        "return True",
        (f"{_DECIDER}::test_placement_s_room_is_never_exceeded",),
        "servers are packed beyond what Placement lets be claimed",
    ),
    Mutant(
        "freed_claims_used_again",
        "pondstack/consolidation/decision/rooms.py",
        "            self.free[name] += sign * amount\n",
        "            self.free[name] += 0\n",
        (f"{_DECIDER}::test_two_servers_do_not_get_the_same_room",),
        "two servers get the same room",
    ),
    Mutant(
        "old_figures_believed",
        "pondstack/consolidation/decision/eligibility.py",
        "if reading.age_seconds > settings.metric_seconds:",
        "if False:",
        (f"{_DECIDER}::test_a_figure_that_is_unknown_or_old_leaves_a_host_out",),
        "hosts are emptied by loads of yesterday",
    ),
    Mutant(
        "unknown_loads_are_none",
        "pondstack/consolidation/decision/eligibility.py",
        '        return f"{what} is unknown"\n',
        '        return ""\n',
        (f"{_DECIDER}::test_so_does_that_of_a_server",),
        "a server that nobody measured counts as idle",
    ),
    Mutant(
        "receivers_emptied",
        "pondstack/consolidation/decision/decider.py",
        "        if self._rooms[host.name].taken:\n",
        "        if False:\n",
        (f"{_DECIDER}::test_a_host_that_takes_servers_is_not_emptied_as_well",),
        "servers are sent to a host that is being emptied",
    ),
    Mutant(
        "most_borrowed_zombie_woken",
        "pondstack/consolidation/decision/decider.py",
        "key=lambda host: (host.lent_mib, host.name)):",
        "key=lambda host: (-host.lent_mib, host.name)):",
        (f"{_DECIDER}::test_the_zombie_that_lends_the_least_is_woken_only_when_nothing_else_fits",),
        "the most memory is taken from borrowers",
    ),
    Mutant(
        "nobody_stays_awake",
        "pondstack/consolidation/decision/decider.py",
        "- len(draft.emptied) <= settings.least_awake:",
        "< 0:",
        (f"{_DECIDER}::test_some_hosts_stay_awake",),
        "the last host is emptied",
    ),
    Mutant(
        "thirty_percent_of_all_servers",
        "pondstack/consolidation/decision/demand.py",
        "    if server.extendable:\n",
        "    if server.working_set_mib:\n",
        (f"{_DEMAND}::test_the_local_memory_that_has_to_fit",),
        "memory of a guest without a pager has nowhere to go",
    ),
    Mutant(
        "mean_for_median",
        "pondstack/consolidation/decision/statistics.py",
        "    return median(abs(value - middle) for value in values)",
        "    return sum(abs(value - middle) for value in values) / len(values)",
        (f"{_STATISTICS}::test_the_median_absolute_deviation",),
        "one burst makes a host seem restless",
    ),
    Mutant(
        "two_plans_on_a_host",
        "pondstack/ledger/plans.py",
        "            if shared:\n",
        "            if False:\n",
        (f"{_LEDGER}::test_a_host_is_of_one_plan_at_a_time",),
        "one plan fills the host that another one empties",
    ),
    Mutant(
        "overtaken_steps_count",
        "pondstack/ledger/plans.py",
        "            if mine != before:\n",
        "            if False:\n",
        (f"{_LEDGER}::test_an_action_that_another_leader_took_further_is_left_alone",),
        "a former leader's view overwrites what was done since",
    ),
    Mutant(
        "freeze_ignored_by_apply",
        "pondstack/ledger/plans.py",
        "            self._check_thawed(tx, plan.kind)\n",
        "",
        (f"{_LEDGER}::test_frozen_consolidation_begins_nothing_but_drains",),
        "the off switch switches nothing off",
    ),
    Mutant(
        "freeze_ignored_by_running",
        "pondstack/consolidation/applier/applier.py",
        "elif frozen is None and (",
        "elif (",
        (f"{_APPLIER}::test_frozen_it_does_not_even_disable_a_host",),
        "a plan that runs cannot be stopped",
    ),
    Mutant(
        "begun_before_written_down",
        "pondstack/consolidation/applier/applier.py",
        "        self._plans.note(plan, action, begun)\n        try:\n            handler.execute(plan, begun)\n",
        "        try:\n            handler.execute(plan, begun)\n            self._plans.note(plan, action, begun)\n",
        (f"{_APPLIER}::test_what_nova_refuses_is_tried_again_and_then_undone",),
        "a refusal is not counted, and tried for ever",
    ),
    Mutant(
        "failed_hosts_stay_disabled",
        "pondstack/consolidation/applier/applier.py",
        "            self._revert(plan, chain)\n",
        "            pass\n",
        (f"{_APPLIER}::test_what_nova_refuses_is_tried_again_and_then_undone",),
        "a plan that fails takes hosts out of service",
    ),
    Mutant(
        "others_hosts_enabled",
        "pondstack/consolidation/applier/actions.py",
        "if service.enabled or service.disabled_reason.startswith(OURS):",
        "if True:",
        (f"{_APPLIER}::test_a_restoration_enables_what_a_plan_disabled",),
        "a host that was taken out of service is put back",
    ),
    Mutant(
        "all_migrations_at_once",
        "pondstack/consolidation/applier/applier.py",
        "        room = pace.migrations_at_a_time - moving\n",
        "        room = pace.migrations_at_a_time\n",
        (f"{_APPLIER}::test_so_many_migrations_at_a_time",),
        "migrations fill the network",
    ),
    Mutant(
        "ratio_of_placement_forgotten",
        "pondstack/controller/consolidation/inputs.py",
        "(item.total - item.reserved) * item.allocation_ratio",
        "item.total * item.allocation_ratio",
        (f"{_INPUTS}::test_a_host_is_what_its_sources_say",),
        "what is reserved for the host is given to servers",
    ),
)
