"""Figures as text, each with its interval."""

from collections.abc import Mapping
from typing import Any

DAY = 86_400


def estimate(value: Mapping[str, Any], unit: str = "", digits: int = 1) -> str:
    """Return a mean with its interval: `9.1 % (8.2 to 9.9)`."""
    unit = f" {unit}" if unit else ""
    return f"{number(value['mean'], digits)}{unit} ({number(value['low'], digits)} to {number(value['high'], digits)})"


def number(value: float, digits: int = 1) -> str:
    """Return a number with thousands separated; -0.0 is 0.0."""
    shown = f"{value:,.{digits}f}"
    return shown.removeprefix("-") if not shown.strip("-0.,") else shown


def days(seconds: float) -> str:
    """Return a time in days."""
    return f"{number(seconds / DAY)} days"


def label(document: Mapping[str, Any]) -> str:
    """Return what has to stand over figures of a trace that nobody measured, "" for one of a cloud."""
    return "SYNTHETIC trace: a model, no cloud" if document["answers"]["source"]["synthetic"] else ""


def hosts(trace: Mapping[str, Any]) -> str:
    """Return what is known of the hosts."""
    found = trace["hosts"]
    if not found:
        return "hosts are not in the trace"
    return f"{found['number']} hosts with {found['vcpus']:,} vCPUs and {number(found['memory_mib'] / 1024, 0)} GiB"


def dropped(trace: Mapping[str, Any]) -> list[str]:
    """Return a line for each reason for which rows were dropped."""
    return [
        f"{item['rows']:,} rows dropped: {item['reason']} (first: row {item['first_row']})" for item in trace["dropped"]
    ]
