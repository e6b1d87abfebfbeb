"""Faults planted in bench-extension: what it says of targets, and what it compares."""

from tests.mutants.mutant import Mutant

_TESTS = "tests/bench/test_extension.py"

MUTANTS = (
    Mutant(
        "endless_turns_are_quick",
        "bench/extension/penalties.py",
        "    if math.isinf(ours):\n        return not math.isinf(theirs)\n",
        "    if math.isinf(ours):\n        return False\n",
        (f"{_TESTS}::test_the_smaller_penalty_wins",),
        "a way whose work never ends is said to beat the others",
    ),
    Mutant(
        "one_place_is_enough",
        "bench/extension/penalties.py",
        "return Verdict(name, not lost,",
        "return Verdict(name, len(lost) < len(places),",
        (f"{_TESTS}::test_one_lost_place_loses",),
        "a target holds that is missed at most shares",
    ),
    Mutant(
        "better_of_two_rounds",
        "bench/extension/penalties.py",
        "return statistics.median_high(",
        "return statistics.median_low(",
        (f"{_TESTS}::test_of_two_rounds_the_worse_one_counts",),
        "of two rounds the one counts that looks better",
    ),
    Mutant(
        "guests_without_an_end",
        "bench/extension/guest.py",
        '    raise CannotMeasure("the guest ended before its work:\\n" + "\\n".join(tail))\n',
        "    return found\n",
        (f"{_TESTS}::test_a_guest_that_fails_is_told_of_with_its_last_lines",),
        "a guest that panicked counts as one that had nothing to do",
    ),
    Mutant(
        "all_dram_is_local",
        "bench/extension/overcommit.py",
        "local = int(memory_mib / ratio / 2)",
        "local = int(memory_mib / ratio)",
        (f"{_TESTS}::test_dram_is_a_part_of_the_memory_by_the_ratio_and_half_of_it_is_local",),
        "the slowdown by overcommit is measured with twice the DRAM",
    ),
)
