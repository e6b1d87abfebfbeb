"""When a lender whose link is down is tried again."""

from pondstack_agent.borrowing.link import backoff_seconds


def test_the_wait_doubles_up_to_a_bound() -> None:
    assert [backoff_seconds(failures, 60.0) for failures in (0, 1, 2, 3, 8, 1000)] == [0.0, 0.5, 1.0, 2.0, 60.0, 60.0]
