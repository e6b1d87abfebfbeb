"""Planted faults: idle threads of executors that sleep."""

from tests.mutants.mutant import Mutant

_FILE = "pondstack/idle_threads.py"
_TESTS = "pondstack/tests/test_idle_threads.py"

MUTANTS = [
    Mutant(
        "idle_threads_wake_each_second",
        _FILE,
        "worker_class.MAX_IDLE_FOR = stop, run, LOOK_SECONDS",
        "worker_class.MAX_IDLE_FOR = stop, run, before[2]",
        (f"{_TESTS}::test_they_sleep_long_while_there_is_nothing_to_do",),
        "an idle leader has its processor woken 130 times a second",
    ),
    Mutant(
        "who_sleeps_is_not_woken_to_end",
        _FILE,
        "        if worker.executor_ref() is not None:\n",
        "        if worker.executor_ref() is None:\n",
        (f"{_TESTS}::test_all_end_with_their_executor_and_at_once",),
        "each service takes a minute to stop",
    ),
    Mutant(
        "who_ends_wakes_nobody",
        _FILE,
        "        if worker.should_stop:\n",
        "        if not worker.should_stop:\n",
        (f"{_TESTS}::test_who_ends_wakes_another_whose_wake_went_astray",),
        "a service with many threads takes a minute to stop, now and then",
    ),
    Mutant(
        "threads_without_an_executor_sleep_on",
        _FILE,
        "    atexit.register(wake)\n",
        "",
        (f"{_TESTS}::test_a_process_ends_at_once_also_with_threads_whose_executor_is_gone",),
        "a process that has dropped an executor takes a minute to end",
    ),
]
