"""`make planner` judges a report: each thing that is wanted, and each way to lack it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from bench import planner_report
from pondstack.planner.report import document, page
from pondstack.planner.traces import synthetic
from tests.fixtures.sample_answers import answers


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> document.Document:
    """A report of three seeds, which are enough here."""
    monkeypatch.setattr(planner_report, "LEAST_SEEDS", 3)
    return whole()


@pytest.fixture(scope="module")
def html() -> str:
    """Its page."""
    return page.html(whole())


def whole() -> document.Document:
    """Return the document."""
    found = synthetic.generate(synthetic.Model(50, 1), 1)
    made = document.made(found, answers(synthetic=True), "pondstack-planner run --name 'x y'", datetime.now(UTC))
    return dict(json.loads(json.dumps(made)))


def test_a_whole_report_holds(made: document.Document, html: str) -> None:
    assert list(planner_report.faults(made, html)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found.update(seeds=[1, 2]), "2 seeds, 3 are wanted"),
        (lambda found: found.update(energy=[]), "no answers of energy"),
        (lambda found: found["dram"][0]["pool_gib"]["by_seed"].pop(), "dram[0].pool_gib has 2 values for 3 seeds"),
        (lambda found: found["money"][1]["net_saved"].update(low=1e9), "money[1].net_saved: -410"),
        (lambda found: found["tiering"][1].update(saved_percent=70.0), "R = 4 save 70.0 %, the paper has 72.5 %"),
        (lambda found: found["source"].update(synthetic=False), "does not say that it is synthetic"),
    ],
)
def test_what_is_missing_is_said(made: document.Document, html: str, change: Callable[[Any], Any], said: str) -> None:
    change(made["answers"])
    assert any(said in text for text in planner_report.faults(made, html))


@pytest.mark.parametrize(
    "more", ['<script src="x.js"></script>', '<a href="http://x">', "<style>@import 'x'</style>", "background: url(x)"]
)
def test_a_page_that_loads_something_does_not_hold(made: document.Document, html: str, more: str) -> None:
    assert any("from elsewhere" in text for text in planner_report.faults(made, html + more))
