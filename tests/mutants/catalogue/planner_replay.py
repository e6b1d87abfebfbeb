"""The planner's replay and what it answers."""

from tests.mutants.mutant import Mutant

_TESTS = "pondstack/tests/planner/replay"
_REPLAY = f"{_TESTS}/test_replay.py"
_KERNEL = "pondstack/planner/replay/kernel.py"
_AGREEMENT = "tests/bench/test_agreement.py"

MUTANTS = (
    Mutant(
        "planner_keeps_slices",
        _KERNEL,
        "    if slices > 0:\n        give(",
        "    if slices < 0:\n        give(",
        (f"{_REPLAY}::test_every_slice_comes_back",),
        "pools run empty, and pooling seems to need more memory than it does",
    ),
    Mutant(
        "planner_overfills_sockets",
        _KERNEL,
        "if sockets.cpu[socket] < cpu or sockets.local_mib[socket] < local_mib:",
        "if sockets.cpu[socket] < cpu:",
        (f"{_REPLAY}::test_no_socket_and_no_pool_ever_gives_more_than_it_has",),
        "no memory at all is enough",
    ),
    Mutant(
        "planner_gives_the_buffer_away",
        _KERNEL,
        "if slices <= offered and slices <= pools.ready[pool]:",
        "if slices <= pools.ready[pool]:",
        (f"{_REPLAY}::test_the_free_buffer_is_kept_back",),
        "savings are overstated by the buffer that production keeps",
    ),
    Mutant(
        "planner_rejects_for_want_of_a_pool",
        _KERNEL,
        "slices > 0 and rules.falls_back:",
        "slices > 0 and not rules.falls_back:",
        (f"{_REPLAY}::test_one_pool_serves_a_server_whole_or_not_at_all",),
        "servers are rejected that production places all local",
    ),
    Mutant(
        "planner_has_its_own_comfort",
        "pondstack/planner/replay/policy.py",
        "comfort = jit(host_choice.comfort)",
        "comfort = jit(lambda left_slices, buffer_slices: 1.0)",
        ("nova_plugins/tests/scheduler/test_planner.py",),
        "the planner places servers where the scheduler would not",
    ),
    Mutant(
        "planner_blames_memory_for_vcpus",
        "pondstack/planner/dram.py",
        "return by_cpu + int(",
        "return int(",
        (f"{_TESTS}/test_dram.py::test_rejections_for_want_of_vcpus_are_nobody_s_fault",),
        "no DRAM is ever enough for a cloud whose vCPUs run out",
    ),
    Mutant(
        "planner_forgets_the_pool_s_dram",
        "pondstack/planner/dram.py",
        "return cluster.local_mib + sum(cluster.slices) * slice_mib / cluster.sockets",
        "return float(cluster.local_mib)",
        (f"{_TESTS}/test_dram.py::test_all_dram_of_a_cluster_is_counted",),
        "whatever is pooled counts as saved",
    ),
    Mutant(
        "planner_counts_the_warm_up",
        "pondstack/planner/history.py",
        "return self.start >= self.counted_from",
        "return self.start >= 0",
        (f"{_TESTS}/test_history.py::test_warm_up_counts_for_nothing",),
        "servers that start on empty hosts dilute the rejections",
    ),
    Mutant(
        "planner_ssd_for_nothing",
        "pondstack/planner/money.py",
        "settings.ssd_price_per_gib * (required_gib - dram_gib)",
        "settings.ssd_price_per_gib * 0",
        (f"{_TESTS}/test_money.py::test_tiers_reproduce_the_paper",),
        "an SSD tier seems to cost nothing",
    ),
    Mutant(
        "planner_breaks_the_slowdown_budget",
        "pondstack/planner/answers/verdict.py",
        "if worth.policy != NOT_TO_BE_HAD and slowed.within_budget",
        "if worth.policy != NOT_TO_BE_HAD",
        (f"{_TESTS}/test_money.py::test_the_verdict_in_a_sentence",),
        "a pool is advised that slows more servers down than was allowed",
    ),
    Mutant(
        "planner_s_zombies_take_no_power",
        "pondstack/planner/energy/simulation.py",
        "zombies = min(asleep, needed)",
        "zombies = 0",
        (f"{_TESTS}/test_energy.py::test_zombies_leave_memory_behind",),
        "hosts that serve memory asleep seem to take no more than suspended ones",
    ),
    Mutant(
        "planner_sweeps_again",
        "pondstack/planner/sweep.py",
        "missing = [part for part in parts if part[0] not in found]",
        "missing = list(parts)",
        (f"{_TESTS}/test_sweep.py::test_an_interrupted_sweep_goes_on",),
        "an interrupted sweep begins from the start",
    ),
    Mutant(
        "agreement_believes_a_wrong_decision",
        "bench/agreement/reasons.py",
        "if decision.first != place.host:",
        "if False:",
        (f"{_AGREEMENT}::test_a_decision_whose_own_scores_choose_another_host_explains_nothing",),
        "a decision that was read wrong from Nova's log explains a difference",
    ),
    Mutant(
        "agreement_explains_memory_by_vcpus",
        "bench/agreement/situation.py",
        "if (sum(one.vcpus for one in some), sum(one.local_mib for one in some)) == (vcpus, local_mib):",
        "if sum(one.vcpus for one in some) == vcpus:",
        (f"{_AGREEMENT}::test_a_server_that_nova_had_not_counted_explains_a_host_and_no_other_difference_does",),
        "memory that Nova counts wrong is explained by any server of that many vCPUs",
    ),
)
