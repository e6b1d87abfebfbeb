"""The table of metrics in doc/source/admin/monitoring.md is the table of the code."""

import re
from pathlib import Path

from pondstack.telemetry.metrics import TABLE, Kind

PAGE = Path(__file__).resolve().parents[2] / "doc" / "source" / "admin" / "monitoring.md"


def wanted() -> list[str]:
    """Return the rows as they must be."""
    rows = []
    for metric in TABLE:
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "-"
        rows.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.meaning} |")
    return rows


def section() -> str:
    """Return the part of the page that is about them."""
    return PAGE.read_text().split("## Metrics of the controllers")[1].split("\n## ")[0]


def test_each_metric_is_documented_as_it_is() -> None:
    found = [line for line in section().splitlines() if line.startswith("| `pondstack_")]
    assert found == wanted()


def test_the_rest_of_the_section_names_metrics_that_exist() -> None:
    named = set(re.findall(r"pondstack_\w+", section()))
    assert named == {metric.name for metric in TABLE}


def test_names_say_what_prometheus_expects_of_them() -> None:
    assert len({metric.name for metric in TABLE}) == len(TABLE)
    for metric in TABLE:
        assert metric.name.endswith("_total") is (metric.kind is Kind.COUNTER), metric.name
        assert not {"host", "project", "server", "instance", "consumer"} & set(metric.labels), metric.name
        assert metric.kind is not Kind.HISTOGRAM or metric.name.endswith("_seconds")
