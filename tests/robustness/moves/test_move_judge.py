"""What is found wrong after a live migration: each part that does not agree, and nothing where all do."""

from dataclasses import replace
from typing import Any

import pytest

from pondstack.domain.lending import REMOTE_CLASS
from pondstack.domain.remote_share import MIRROR_CLASS
from pondstack_agent.data_plane.views import GuestState, GuestView, HandoverView
from tests.robustness.moves.judge import MEMORY_CLASS, Seen, Sizes, broken
from tests.robustness.moves.plan import Step
from tests.robustness.moves.strike import step_of

SIZES = Sizes(local_mib=64, mirror_mib=256, remote_mib=192, buffers=3)
OWN = {MEMORY_CLASS: 64, MIRROR_CLASS: 256, "VCPU": 1}
GOOD = Seen(
    "ACTIVE",
    "",
    "host2",
    {"h2": OWN, "lent": {REMOTE_CLASS: 192}},
    {"host2": "running"},
    {"host2": ("serving", "")},
    {"host2": "active"},
    ("free", "free", "free", "online", "online", "online"),
)


def wrong(seen: Seen) -> list[str]:
    return broken(seen, {"host1": "h1", "host2": "h2"}[seen.host], SIZES)


def test_nothing_is_wrong_where_all_agree() -> None:
    assert wrong(GOOD) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "ERROR"},
        {"task": "migrating"},
        {"host": "host1"},
        {"domains": {"host1": "running", "host2": "running"}},
        {"domains": {"host2": "paused"}},
        {"domains": {"host1": "shut off", "host2": "running"}},
        {"domains": {}},
        {"planes": {"host2": ("serving", "taking")}},
        {"planes": {"host1": ("serving", "switched"), "host2": ("serving", "")}},
        {"planes": {"host2": ("failed", "")}},
        {"agents": {"host1": "ending", "host2": "active"}},
        {"agents": {}},
        {"buffers": ("online", "online", "online", "releasing")},
        {"buffers": ("online", "online", "free")},
        {"buffers": ("online",) * 6},
        {"claims": {"h1": OWN, "h2": OWN, "lent": {REMOTE_CLASS: 192}}},
        {"claims": {"h1": OWN, "lent": {REMOTE_CLASS: 192}}},
        {"claims": {"h2": OWN}},
        {"claims": {"h2": OWN, "lent": {REMOTE_CLASS: 384}}},
    ],
)
def test_each_part_that_disagrees_is_found(changes: dict[str, Any]) -> None:
    assert wrong(replace(GOOD, **changes))


def test_how_far_a_migration_is() -> None:
    def seen(state: str, connected: bool) -> GuestView:
        return GuestView("g", 1, 1, 64, GuestState.SERVING, handover=HandoverView(state, connected))

    calm = replace(seen("offered", False), handover=None)
    assert step_of(None, None) is step_of(calm, None) is Step.ASKED
    assert step_of(seen("offered", False), None) is Step.OFFERED
    assert step_of(seen("offered", True), seen("waiting", True)) is Step.CONNECTED
    assert step_of(seen("frozen", True), seen("taking", True)) is Step.FETCHING
    assert step_of(None, seen("taking", False)) is Step.FETCHING
    assert step_of(None, calm) is Step.ASKED, "it is over, as far as this can say: Nova says the rest"
