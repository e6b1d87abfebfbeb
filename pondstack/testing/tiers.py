"""Tiers of tests: unit, functional, rack, hardware. Where a tier is required, a skip in it is a failure.

A tier that cannot run on a machine skips with the reason, which is right for a contributor's laptop and wrong for CI,
where it would hide that nothing was tested. A pytest plugin: with CI=true every tier is required;
PONDSTACK_REQUIRE_TIERS (a comma-separated list, may be empty) says it exactly. The tier of a test is its marker;
without one it is `unit`.
"""

import os
from collections.abc import Generator, Mapping
from typing import Any

import pytest

TIERS = ("unit", "functional", "rack", "hardware")
VARIABLE = "PONDSTACK_REQUIRE_TIERS"


def required_tiers(environment: Mapping[str, str]) -> frozenset[str]:
    """Return the tiers that must not be skipped; raises UsageError for an unknown one."""
    default = ",".join(TIERS) if environment.get("CI", "").lower() in {"1", "true"} else ""
    names = frozenset(filter(None, (name.strip() for name in environment.get(VARIABLE, default).split(","))))
    if unknown := names - set(TIERS):
        raise pytest.UsageError(f"{VARIABLE} names unknown tiers {sorted(unknown)}; legal: {', '.join(TIERS)}")
    return names


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test: the most demanding of its markers."""
    return next((tier for tier in reversed(TIERS) if item.get_closest_marker(tier)), "unit")


def pytest_configure(config: pytest.Config) -> None:
    """Read the requirement once."""
    config.stash[_REQUIRED] = required_tiers(os.environ)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of a required test into a failure; expected failures stay what they are."""
    report = yield
    tier = tier_of(item)
    if report.skipped and not hasattr(report, "wasxfail") and tier in item.config.stash[_REQUIRED]:
        _fail(report, f"tier {tier}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Likewise for a whole module that skips itself: its tests, hence their tiers, are not known."""
    report = yield
    if report.skipped and collector.config.stash[_REQUIRED]:
        _fail(report, "a module that no tier may skip")
    return report


_REQUIRED = pytest.StashKey[frozenset[str]]()


def _fail(report: Any, what: str) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{what} is required here ({VARIABLE}, CI), but was skipped: {reason.removeprefix('Skipped: ')}"
