"""The parts of `make torture-pager` that decide and judge."""

from collections import Counter

import pytest

from pondstack.domain.errors import Unavailable
from pondstack_agent.data_plane.views import GuestState, GuestView
from tests.robustness.extension.faults import KINDS
from tests.robustness.extension.pages import PageMeter, Pages
from tests.robustness.extension.plan import make_plan
from tests.robustness.extension.report import missed, text
from tests.robustness.extension.run import Event, Options, Result


def test_a_plan_follows_from_its_seed_and_has_every_kind_equally_often() -> None:
    plan = make_plan(1, 60)
    assert plan == make_plan(1, 60) != make_plan(2, 60)
    counts = Counter(step.kind for step in plan)
    assert set(counts) == set(KINDS)
    assert set(counts.values()) == {6, 7}
    assert [step.at for step in plan] == sorted(step.at for step in plan)
    assert plan[0].at > 0.0
    assert plan[-1].at < 1.0


def test_the_command_says_what_was_run() -> None:
    assert Options(10, 1).command == "make torture-pager MINUTES=10 SEED=1 GUEST=rack"
    assert Options(0.5, 2, 9).command == "make torture-pager MINUTES=0.5 SEED=2 EVENTS=9 GUEST=rack"
    assert len(Options(10, 1).steps) == 60


def _seen(loads: int, read_ahead: int, lenders: int) -> GuestView:
    counters, store = {"loads": loads, "read_ahead": read_ahead}, {"lender_reads": lenders}
    return GuestView("guest", 1, 1, 8, GuestState.SERVING, counters=counters, store=store)


def test_pages_are_counted_over_all_lives_of_a_data_plane() -> None:
    life, seen = 1, [_seen(10, 4, 8), _seen(20, 5, 9)]

    def view() -> GuestView | None:
        if not seen:
            raise Unavailable("it was killed")
        return seen.pop(0)

    meter = PageMeter(lambda: life, view)
    for _ in range(3):  # the last one hears nothing, and changes nothing
        meter.look()
    assert meter.total == Pages(15, 20, 9)
    life, seen = 2, [_seen(3, 0, 1)]
    meter.look()
    assert meter.total == Pages(18, 23, 10)


def test_what_another_life_said_is_not_counted_as_the_next_ones() -> None:
    lives = [1, 2]
    meter = PageMeter(lambda: lives.pop(0), lambda: _seen(10, 0, 0))
    meter.look()
    assert meter.total == Pages()


def _result(**changes: object) -> Result:
    options = Options(1, 1, 9)
    values: dict[str, object] = {
        "events": [Event(step.kind, 0.1) for step in options.steps],
        "pages": Pages(300, 400, 200),
        "counts": {"accesses": 1000, "wrong": 0},
    }
    return Result(options, **(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "target"),
    [
        ({}, None),
        ({"counts": {"accesses": 1000, "wrong": 1}}, "wrong words"),
        ({"pages": Pages(299, 400, 200)}, "accesses to pages that were not resident"),
        ({"events": []}, "events of each kind"),
        ({"disagreements": ["the ledger differs"]}, "agreement"),
        ({"leftovers": ["mirror x"]}, "all given back"),
    ],
)
def test_each_target_fails_by_itself(changes: dict[str, object], target: str | None) -> None:
    result = _result(**changes)
    assert missed(result) == ([target] if target else [])
    assert ("MISSED" in text(result)) == bool(target)
