"""Steps run in parallel after their needs, once where they say so, and a failure names step and log."""

import threading
from pathlib import Path

import pytest

from pondstack_rack.layout import RackError
from pondstack_rack.steps import Progress, Step, run_steps


@pytest.fixture
def progress() -> Progress:
    return Progress(lambda _: None)


def test_steps_wait_for_what_they_need(tmp_path: Path, progress: Progress) -> None:
    order: list[str] = []
    steps = [
        Step("last", lambda: order.append("last"), ("left", "right")),
        Step("left", lambda: order.append("left"), ("first",)),
        Step("right", lambda: order.append("right"), ("first",)),
        Step("first", lambda: order.append("first")),
    ]
    run_steps(steps, tmp_path, progress)
    assert order[0] == "first"
    assert order[-1] == "last"
    assert sorted(order) == ["first", "last", "left", "right"]


def test_independent_steps_run_at_the_same_time(tmp_path: Path, progress: Progress) -> None:
    meeting = threading.Barrier(2, timeout=10)
    run_steps(
        [Step("a", lambda: meeting.wait() and None), Step("b", lambda: meeting.wait() and None)], tmp_path, progress
    )


def test_a_failure_names_step_and_log_and_what_was_finished_is_not_done_again(
    tmp_path: Path, progress: Progress
) -> None:
    runs: list[str] = []
    broken = [True]

    def second() -> None:
        if broken[0]:
            raise OSError("disk on fire")
        runs.append("second")

    steps = [
        Step("first", lambda: runs.append("first"), once=True),
        Step("second", second, ("first",), once=True, log=Path("/logs/second.log")),
        Step("third", lambda: runs.append("third"), ("second",)),
    ]
    with pytest.raises(RackError, match=r"step 'second' failed: disk on fire\n  log: /logs/second.log"):
        run_steps(steps, tmp_path, progress)
    assert runs == ["first"]
    broken[0] = False
    run_steps(steps, tmp_path, progress)
    assert runs == ["first", "second", "third"]


def test_an_unknown_need_is_an_error_not_a_hang(tmp_path: Path, progress: Progress) -> None:
    with pytest.raises(RackError, match="unknown steps: nothing"):
        run_steps([Step("a", lambda: None, ("nothing",))], tmp_path, progress)


def test_a_circle_is_an_error_not_a_hang(tmp_path: Path, progress: Progress) -> None:
    circle = [Step("a", lambda: None, ("b",)), Step("b", lambda: None, ("a",))]
    with pytest.raises(RackError, match="need each other: a, b"):
        run_steps(circle, tmp_path, progress)


def test_progress_is_shown_with_seconds(tmp_path: Path) -> None:
    lines: list[str] = []
    run_steps([Step("slow", lambda: threading.Event().wait(0.3) and None)], tmp_path, Progress(lines.append))
    assert len(lines) == 1
    assert "slow" in lines[0]
    assert " s  " in lines[0]
