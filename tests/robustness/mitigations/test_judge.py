"""What is found wrong after a mitigation: each part that does not agree, and nothing where all do."""

from dataclasses import replace
from typing import Any

import pytest

from pondstack.domain.admission import MEMORY_CLASS
from pondstack.domain.mitigation import MitigationState
from pondstack.domain.units import RESOURCE_CLASS
from tests.robustness.mitigations.judge import broken
from tests.robustness.mitigations.servers import Seen

BEFORE = Seen(
    "ACTIVE",
    "",
    "host1",
    {"h1": {MEMORY_CLASS: 256, "VCPU": 1}, "pool": {RESOURCE_CLASS: 1024}},
    {"a": ("host1", "online")},
    corrected=False,
    cells={"host1": ("pool", "pool")},
)
AFTER = Seen("ACTIVE", "", "host2", {"h2": {MEMORY_CLASS: 1280, "VCPU": 1}}, {}, True, {"host2": ("local", "local")})


def wrong(after: Seen, state: MitigationState) -> list[str]:
    """What is found of a server of 1280 MiB."""
    return broken(BEFORE, after, state, {"host1": "h1", "host2": "h2"}[after.host], 1280)


def test_done_and_undone_are_as_they_should_be() -> None:
    assert wrong(AFTER, MitigationState.DONE) == []
    assert wrong(replace(AFTER, cells=None), MitigationState.DONE) == []
    assert wrong(BEFORE, MitigationState.FAILED) == []
    assert wrong(BEFORE, MitigationState.ABORTED) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "ERROR"},
        {"task": "migrating"},
        {"claims": {"h2": {MEMORY_CLASS: 256}}},
        {"claims": {"h1": {MEMORY_CLASS: 1280}}},
        {"claims": {"h2": {MEMORY_CLASS: 1280}, "pool": {RESOURCE_CLASS: 1024}}},
        {"claims": {"h1": {MEMORY_CLASS: 1280}, "h2": {MEMORY_CLASS: 1280}}},
        {"allocations": {"a": ("host1", "releasing")}},
        {"corrected": False},
        {"cells": {"host2": ("local", "pool")}},
        {"cells": {"host2": ("pool", "local")}},
        {"cells": {"host1": ("local", "local"), "host2": ("local", "local")}},
        {"cells": {"host1": ("local", "local")}},
        {"cells": {}},
    ],
)
def test_each_part_that_disagrees_with_done_is_found(changes: dict[str, Any]) -> None:
    assert wrong(replace(AFTER, **changes), MitigationState.DONE)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "SHUTOFF"},
        {"host": "host2", "cells": {"host2": ("pool", "pool")}},
        {"claims": {"h1": {MEMORY_CLASS: 1280}, "pool": {RESOURCE_CLASS: 1024}}},
        {"allocations": {}},
        {"allocations": {"b": ("host1", "online")}},
        {"corrected": True},
        {"cells": {"host1": ("pool", "local")}},
    ],
)
@pytest.mark.parametrize("state", [MitigationState.FAILED, MitigationState.ABORTED])
def test_what_is_not_as_before_when_it_is_undone_is_found(changes: dict[str, Any], state: MitigationState) -> None:
    assert wrong(replace(BEFORE, **changes), state)
