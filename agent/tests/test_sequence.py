"""Sequence numbers."""

from concurrent.futures import ThreadPoolExecutor

from pondstack_agent.records import Records
from pondstack_agent.sequence import Sequence


def test_grows_over_restarts(tmp_path) -> None:
    first = Sequence(Records(tmp_path))
    numbers = [first.next() for _ in range(2500)]
    second = Sequence(Records(tmp_path))
    numbers += [second.next() for _ in range(5)]
    assert numbers == sorted(set(numbers))


def test_threads_get_different_numbers(tmp_path) -> None:
    sequence = Sequence(Records(tmp_path))
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda _: sequence.next(), range(3000)))) == 3000
