"""The page about Nova names every option, extra spec, reason and hook."""

from pathlib import Path

import pytest

from pondstack.conf import compute, scheduler
from pondstack.domain.sizing import LEGAL
from pondstack_nova.api import hooks as api_hooks
from pondstack_nova.scheduler import hooks as scheduler_hooks

PAGE = (Path(__file__).resolve().parents[2] / "doc" / "source" / "admin" / "nova.md").read_text()

NAMES = [
    *(opt.name for opt in (*scheduler.OPTS, *compute.OPTS)),
    *(f"pond:{key}" for key in LEGAL),
    *(hook for hook, _ in (*scheduler_hooks.CHECKS, *api_hooks.CHECKS)),
    "pondstack_split_fallbacks_total",
    "pondstack_filter_rejects_total",
]


@pytest.mark.parametrize("name", NAMES)
def test_named(name: str) -> None:
    """A new one needs a line."""
    assert f"`{name}" in PAGE
