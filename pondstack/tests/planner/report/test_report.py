"""What people and programs get to see of answers."""

import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.planner.report import charts, document, page, summary, tables, text
from pondstack.planner.trace import Dropped, Trace
from pondstack.planner.traces import synthetic
from pondstack.planner.traces.imported import Hosts, Imported
from tests.fixtures.sample_answers import answers

COMMAND = "pondstack-planner run cloud.parquet --html '<report>.html'"


def made(*, generated: bool = False) -> document.Document:
    """Return a document as it comes out of its file."""
    found = synthetic.generate(synthetic.Model(50, 1), 1)
    if not generated:
        trace = Trace("a <cloud>", "csv", found.trace.servers, 86_400, (Dropped("it has no <end>", 3, 17),))
        found = Imported(trace, 60, ("a note",), Hosts(4, 192, 4 << 19))
    whole = document.made(found, answers(synthetic=generated), COMMAND, datetime(2026, 1, 2, tzinfo=UTC))
    return dict(json.loads(json.dumps(whole)))


def test_a_document_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    document.write(made(), path)
    assert document.read(path) == made()
    assert made()["trace"]["dropped"] == [{"reason": "it has no <end>", "rows": 3, "first_row": 17}]


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "is no JSON"), ("[]", "lacks version"), ("{}", "lacks version"), ("5", "is no JSON")],
)
def test_what_is_no_document_is_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "answers.json"
    path.write_text(content)
    with pytest.raises(BadRequest, match=said):
        document.read(path)


def test_a_document_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    document.write({**made(), "version": 1}, path)
    with pytest.raises(BadRequest, match="version 1"):
        document.read(path)


def test_the_summary_is_one_screen_with_intervals_verdict_and_command() -> None:
    shown = summary.lines(made())
    assert len(shown) <= 24
    assert all(len(line) <= 160 for line in shown)
    whole = "\n".join(shown)
    for part in (
        "4 hosts with 192 vCPUs and 2,048 GiB",
        "3 rows dropped: it has no <end> (first: row 17)",
        "pool of 16 sockets (3 seeds, 95 %)",
        "7.1 % (5.6 to 8.4)",
        "energy saved, modified history: neat 36.0 % (34.5 to 37.2), zombie 67.0 % (65.5 to 68.2)",
        "32.2 % at R = 1.5",
        "Verdict: do not buy",
        f"Made by: {COMMAND}",
    ):
        assert part in whole
    assert "SYNTHETIC" not in whole


def test_what_is_synthetic_says_so_first() -> None:
    assert summary.lines(made(generated=True))[0] == "SYNTHETIC trace: a model, no cloud"
    assert '<p class="label">SYNTHETIC' in page.html(made(generated=True))
    assert "SYNTHETIC" not in page.html(made())


class _Tags(HTMLParser):
    """Collects what a page loads from elsewhere, its tags and its ids."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect one tag."""
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "data", "action") and not str(value).startswith("#"):
                self.loaded.append(f"{tag} {name}={value}")
            if name == "id":
                self.ids.append(str(value))


def test_the_page_needs_nothing_from_elsewhere() -> None:
    shown = page.html(made())
    tags = _Tags()
    tags.feed(shown)
    assert tags.loaded == []
    assert not {"script", "link", "iframe", "img", "object", "embed"} & set(tags.tags)
    assert not re.findall(r"@import|url\((?!#)", shown)
    assert tags.tags.count("svg") == 5
    assert len(tags.ids) == len(set(tags.ids))


def test_the_page_shows_each_figure_with_its_interval_its_command_and_its_seeds() -> None:
    shown = page.html(made())
    assert shown.count("Made by <code>pondstack-planner run cloud.parquet") == 10
    assert "&#39;&lt;report&gt;.html&#39;" in shown
    assert "<td>7.1 % (5.6 to 8.4)</td>" in shown
    assert "<td>5.1, 7.1, 9.1</td>" in shown
    assert "it has no &lt;end&gt;" in shown
    assert "a <cloud>" not in shown
    assert "&lt;hardware&gt;" in shown
    assert "<td>dram_price_per_gib</td><td>4.875</td><td>$/GiB</td>" in shown


def test_references_within_a_chart_lead_to_its_own_ids() -> None:
    shown = charts.saved(made()["answers"]["dram"])
    ids = set(re.findall(r'\bid="([^"]+)"', shown))
    wanted = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', shown))
    assert wanted
    assert {one or other for one, other in wanted} <= ids
    assert all(name.startswith("dram-saved-by-pool-size-") for name in ids)
    assert 'role="img" aria-label="DRAM saved by pool size' in shown
    assert all(colour.lower() in shown.lower() for colour in charts.COLOURS[:2])


def test_parts_without_answers_are_left_out() -> None:
    small = made()
    for kind in tables.COLUMNS:
        small["answers"][kind] = []
    assert "<svg" not in page.html(small)
    assert summary.lines(small)[-1].startswith("Made by")


@pytest.mark.parametrize(("value", "shown"), [(1234.56, "1,234.6"), (-0.04, "0.0"), (-0.06, "-0.1"), (0, "0.0")])
def test_numbers(value: float, shown: str) -> None:
    assert text.number(value) == shown
