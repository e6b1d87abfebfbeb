"""Tests side by side in workers of pytest-xdist (`make test`), and what they tell printed at the end.

A pytest plugin. What shares something dear, the rack or the emulated hosts, goes to one worker as a whole; everything
else goes by file. The long ones begin first, so that the workers end together.
"""

from collections.abc import Generator, Sequence
from typing import Any

import pytest

from pondstack.testing.tiers import TIERS, tier_of

WHOLE = ("tests/rack/", "tests/hardware/")
"""Folders whose tests share what is made once a session."""

SECTIONS = {
    "log": "logs of emulated hosts",
    "figure": "figures of emulated hosts",
    "tempest": "Tempest on the rack",
}
"""Properties of test reports that the summary shows, in this order."""


def group_of(nodeid: str) -> str:
    """Return the name of the group that stays together in one worker."""
    file = nodeid.partition("::")[0]
    return next((folder for folder in WHOLE if file.startswith(folder)), file)


def longest_first(tiers: Sequence[str]) -> list[int]:
    """Return the order in which to begin tests of these tiers: the most demanding first, else as collected."""
    return sorted(range(len(tiers)), key=lambda index: -TIERS.index(tiers[index]))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the long ones first in a worker: the scheduler goes by the workers' order."""
    if hasattr(config, "workerinput"):
        items[:] = [items[index] for index in longest_first([tier_of(item) for item in items])]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return the scheduler that keeps groups together; imported here, as the plugin works without xdist."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return Groups(config, log)


def tell(report: pytest.TestReport, name: str, lines: Sequence[str]) -> None:
    """Have the summary show lines under a title of SECTIONS; they cross from a worker with the report."""
    report.user_properties.extend((name, line) for line in lines)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Generator[None, None, None]:
    """Print what reports tell, after all else."""
    yield
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    told = [told for report in reports for told in getattr(report, "user_properties", ())]
    for name, title in SECTIONS.items():
        if lines := [line for key, line in told if key == name]:
            terminalreporter.section(title)
            terminalreporter.write("\n".join(lines) + "\n")
