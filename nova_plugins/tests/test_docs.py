"""The pages about Nova name every option, extra spec, reason and hook."""

from pathlib import Path

import pytest

from pondstack.conf import compute, scheduler
from pondstack.domain.sizing import LEGAL
from pondstack_nova.api import hooks as api_hooks
from pondstack_nova.scheduler import hooks as scheduler_hooks

DOC = Path(__file__).resolve().parents[2] / "doc" / "source"
PAGES = ("admin/nova.md", "reference/extra-specs.md", "contributor/nova-hooks.md")
TEXT = "".join((DOC / page).read_text() for page in PAGES)

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
    assert f"`{name}" in TEXT
