"""Wire values survive the trip as JSON, and an older reader survives a newer sender."""

import json

import pytest

from pondstack.domain.known_split import KnownSplit, Present
from pondstack.domain.model import Extent
from pondstack.domain.room import PoolRoom
from pondstack.domain.sizing import Split
from pondstack.rpc import wire

EXTENTS = (Extent(0, 2), Extent(7, 1))
LENDING = {"incarnation": "i", "kind": "active", "buffer_mib": 64, "buffers": [[0, 2, "h2", 1]]}
VALUES = [
    wire.Grant("a", "c", "h", "p", "pool0", {"path": "/x"}, 1024, EXTENTS, 3),
    wire.Report("h", 9, 3, "0.1", ("p",), (wire.Attached("a", "c", "p", EXTENTS, True),), ("b",)),
    wire.Report("h", 9, 3, "0.1", lending=LENDING, borrowed={"lenders": []}),
    wire.Attachment("a", "c", "p", "pool0", 3072, 3, EXTENTS, (wire.Backing("file", 2048, path="/x"),)),
    wire.Mitigation("c", "a", "o", "mitigated", 512, 512, 1.5, held=True),
    wire.DomainRewrite("rewritten", managed_save=True, changed=True),
    wire.SplitAnswer(256, 1024, "fixed", 1.0, "why", 1024),
    wire.UsedSplit({"instance_uuid": "i"}, 4096, 0, "timeout", 1.0, "all local: late", 2.5),
    wire.SplitView(
        4,
        7,
        predictor={"kind": "static", "percent": 15},
        rooms=(PoolRoom("pool0", 8192, 1024),),
        pending={"c": 1024},
        claimed=("d",),
        splits=(
            KnownSplit("i", Present(8192, 1024), "key", Split(7168, 1024, "static", 1.0, "15 %")),
            KnownSplit("j"),
        ),
    ),
    wire.Snapshot(4, (wire.PoolView("p", "pool0", "up", 1024, 16, 3, 2, 1, ("h",)),), ("h",), {"g": "disabled"}),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_round_trip_over_json(value: wire.Wire) -> None:
    assert type(value).from_wire(json.loads(json.dumps(value.to_wire()))) == value


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_fields_of_a_newer_sender_are_dropped(value: wire.Wire) -> None:
    assert type(value).from_wire({**value.to_wire(), "added_in_1_9": 1}) == value


def test_an_older_agents_report_lends_nothing() -> None:
    old = {"host": "h", "sequence": 9, "epoch": 3, "version": "0.1", "pools": [], "attached": [], "released": []}
    report = wire.Report.from_wire(old)
    assert (report.lending, report.borrowed) == (None, None)
