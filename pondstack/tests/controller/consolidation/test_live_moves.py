"""Which servers cannot be migrated live, by their flavors and by what agents report of their pool memory."""

import pytest

from pondstack.controller.consolidation.live_moves import LiveMoves, why_it_stays_now
from pondstack.domain.live_move import FILE_STAYS, SWAP_STAYS, UNKNOWN_STAYS
from pondstack.domain.model import Allocation, Extent
from pondstack.domain.purpose import Purpose
from pondstack.domain.rack import AgedAllocation, HostReport, RackView
from pondstack.rpc.wire import Attached

REMOTE, SWAP, POOL = {"pond:remote_mb": "1024"}, {"pond:swap_mb": "512"}, {"pond:policy": "auto"}


def rack(*attached, held=()):
    report = HostReport("a", True, "", None, 1.0, attached=tuple(item.to_wire() for item in attached))
    return RackView(hosts={"a": report}, allocations={item.item.uuid: item for item in held})


def attached(backing, purpose=Purpose.GUEST, consumer="vm"):
    return Attached("u", consumer, "pool", (Extent(0, 1),), True, str(purpose), backing)


@pytest.mark.parametrize(
    ("found", "specs", "reason"),
    [
        (rack(attached("file")), REMOTE, FILE_STAYS),
        (rack(attached("file")), POOL, ""),
        (rack(attached("node")), REMOTE, ""),
        (rack(attached("")), REMOTE, UNKNOWN_STAYS),
        (rack(attached("file", consumer="other")), REMOTE, ""),
        (rack(attached("file", purpose=Purpose.TIER)), REMOTE, ""),
        (rack(), REMOTE, ""),
        (rack(), SWAP, SWAP_STAYS),
        (rack(), {}, ""),
    ],
)
def test_who_stays_on_its_host(found, specs, reason):
    assert LiveMoves(found).why_it_stays("vm", "a", specs) == reason


def test_what_is_on_another_host_does_not_count():
    assert LiveMoves(rack(attached("file"))).why_it_stays("vm", "b", REMOTE) == ""


def test_pool_memory_that_no_agent_reports_is_of_an_unknown_kind():
    found = rack(held=(AgedAllocation(Allocation("u", "vm", "a", "pool", (Extent(0, 1),)), 1.0),))
    assert LiveMoves(found).why_it_stays("vm", "a", REMOTE) == UNKNOWN_STAYS


def test_a_report_of_a_former_release_has_no_kind():
    item = attached("").to_wire()
    del item["backing"]
    found = RackView(hosts={"a": HostReport("a", True, "", None, 1.0, attached=(item,))})
    assert LiveMoves(found).why_it_stays("vm", "a", REMOTE) == UNKNOWN_STAYS


def test_the_ledger_is_read_for_those_only_for_whom_it_matters():
    reads = []
    judge = why_it_stays_now(lambda: reads.append(1) or rack(attached("file")))
    assert judge("vm", "a", POOL) == "" == judge("vm", "a", {})
    assert reads == []
    assert judge("vm", "a", REMOTE) == FILE_STAYS
