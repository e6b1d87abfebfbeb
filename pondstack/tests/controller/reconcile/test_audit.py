"""The operator's audit end to end: what it finds, counts and mends."""

from uuid import uuid4

import pytest

from pondstack.clients.placement import Inventory
from pondstack.domain.causes import Cause
from pondstack.domain.errors import Conflict
from pondstack.domain.model import Extent
from pondstack.domain.units import RESOURCE_CLASS
from pondstack.rpc.wire import Attached
from pondstack.tests.controller.conftest import POOL, audit, call
from pondstack.tests.controller.reconcile.test_reconciler import boot, nova

__all__ = ["nova"]


def test_a_clean_audit_counts_everything(placed, nova):
    boot(placed, nova)
    placed.sync.write(placed.reader.rack())
    answer = audit(placed)
    assert answer["findings"] == []
    assert answer["clean"] is True
    assert answer["totals"] == {
        "pools": 1,
        "hosts": 2,
        "allocations": 1,
        "slices": 8,
        "slices_free": 6,
        "slices_assigning": 0,
        "slices_online": 2,
        "slices_releasing": 0,
        "slices_sanitizing": 0,
        "slices_quarantined": 0,
        "claimed_mib": 2048,
    }


def test_an_audit_only_looks_and_a_repair_mends(placed):
    placed.ledger.slices.quarantine(POOL, [3], Cause.SANITIZE_FAILED, "EIO")
    placed.sync.write(placed.reader.rack())
    answer = audit(placed)
    assert not answer["clean"]
    assert [(item["code"], item["action"]) for item in answer["findings"]] == [
        ("quarantined", "sanitise them and set them free")
    ]
    assert placed.states()[3] == "quarantined"
    assert audit(placed, repair=True)["findings"][0]["action"] == "done: sanitise them and set them free"
    placed.sanitizer.drain()
    assert placed.count("free") == 8


def test_an_audit_sees_an_inventory_that_somebody_changed(placed):
    wrong = Inventory(8192, 0, 1024, 1024, 8192)
    placed.placement.set_inventory(POOL, RESOURCE_CLASS, wrong)
    assert [item["code"] for item in audit(placed)["findings"]] == ["inventory_differs"]
    placed.sync.write(placed.reader.rack())
    assert audit(placed)["clean"]


def test_an_audit_asks_live_agents_afresh(placed):
    agent = placed.agents["h2"]
    agent.attached["stranger"] = Attached("stranger", str(uuid4()), POOL, (Extent(6, 2),))
    assert "unknown_attachment" in {item["code"] for item in audit(placed)["findings"]}


def test_without_placement_the_audit_says_so(rack):
    answer = call(rack.endpoint.audit, repair=False)
    assert [item["code"] for item in answer["findings"]] == ["placement_disabled"]
    assert answer["clean"]
    assert answer["totals"]["claimed_mib"] is None


def test_one_audit_at_a_time(placed, monkeypatch):
    """Each keeps a thread of the API; whoever may audit could take all of them."""
    seen = []

    def another_meanwhile(*_):
        with pytest.raises(Conflict, match="an audit is under way"):
            audit(placed)
        seen.append(True)
        return []

    monkeypatch.setattr(placed.reconciler, "_placement_findings", another_meanwhile)
    audit(placed)
    audit(placed)
    assert len(seen) == 2
