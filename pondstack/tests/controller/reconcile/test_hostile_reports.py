"""Reports of a host that was taken over: refused where they come in, so that no audit of the rack ends by them."""

from typing import Any

import pytest

from pondstack.controller.lending.endpoint import LendingEndpoint
from pondstack.controller.lending.lenders import Lenders
from pondstack.domain.errors import BadRequest
from pondstack.rpc.wire import Report
from pondstack.tests.controller.conftest import call
from tests.security.fuzzers.hostile_host import LENT


def told(rack: Any, **changes: Any) -> dict[str, Any]:
    return {**rack.agents["h1"].report().to_wire(), **changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"lending": {}},
        {"lending": {**LENT, "buffers": [[0, 10**15, "", 0]]}},
        {"lending": {**LENT, "buffers": [[0, 600_000, "", 0], [600_000, 600_000, "", 0]]}},
        {"lending": {**LENT, "buffers": [[0, 1, "", 0, 1, 2]]}},
        {"lending": {**LENT, "buffers": 5}},
        {"lending": {**LENT, "kind": "dragon"}},
        {"lending": {**LENT, "buffer_mib": float("nan")}},
        {"lending": {**LENT, "operations": [{"state": "done"}]}},
        {"borrowed": {"lenders": [{"lender": "h2"}]}},
        {"borrowed": {"lenders": [{"lender": "h2", "incarnation": "x", "leaving": {}, "released": []}]}},
        {
            "borrowed": {
                "lenders": [
                    {
                        "lender": "h2",
                        "incarnation": "x",
                        "allocations": {"a": [10**12]},
                        "leaving": {},
                        "released": [],
                    }
                ]
            }
        },
        {"tiering": {"tiers": [1]}},
        {"attached": [{"allocation_uuid": "a"}]},
        {"attached": [{"allocation_uuid": "a", "consumer_uuid": "c", "pool_uuid": "p", "extents": "all"}]},
        {
            "attached": [
                {
                    "allocation_uuid": "a",
                    "consumer_uuid": "c",
                    "pool_uuid": "p",
                    "extents": [{"start": 0, "count": 10**15}],
                }
            ]
        },
        {"sequence": "1"},
        {"sequence": 10**30},
        {"pools": [["p"]]},
        {"stuck": {"a": None}},
        {"not_zero": {"a": "all"}},
        {"host": None},
    ],
)
def test_what_no_agent_reports_is_refused_and_changes_nothing(rack: Any, changes: dict[str, Any]) -> None:
    grant = rack.online("h2")
    before = rack.reader.rack()
    with pytest.raises(BadRequest, match="one version"):
        call(rack.endpoint.heartbeat, report=told(rack, **changes))
    assert rack.reader.rack().hosts["h1"].attached == before.hosts["h1"].attached
    rack.beat("h2")
    rack.reconcile()
    assert {item.allocation_uuid for item in rack.reader.slices(grant.pool_uuid) if item.host == "h2"} == {
        grant.allocation_uuid
    }


def test_what_a_lender_reports_and_a_newer_sender_adds_is_taken(rack: Any) -> None:
    report = told(rack, lending={**LENT, "of a newer agent": [1]}, of_a_newer_agent={"a": 1})
    assert call(rack.endpoint.heartbeat, report=report)["epoch"]
    assert Report.from_wire(report).lending == report["lending"]
    rack.reconcile()


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("acknowledge", {"operation_id": "o", "allocation_uuid": ["a"], "host": "h1"}),
        ("telemetry", {"host": "h1", "samples": [{"consumer_uuid": "c", "metric": "m", "mean": float("inf")}]}),
        ("telemetry", {"host": "h1", "samples": {"a": 1}}),
        *(
            ("telemetry", {"host": "h1", "samples": [{"consumer_uuid": "c", "metric": "m", **beyond}]})
            for beyond in ({"age_seconds": 1e300}, {"node": -(2**40)}, {"readings": 2**40}, {"metric": "m" * 33})
        ),
        ("set_host", {"name": "h1", "enabled": "no", "reason": "", "generation": 0}),
    ],
)
def test_arguments_of_another_type_than_declared_are_refused(rack: Any, verb: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match="one version"):
        call(getattr(rack.endpoint, verb), **arguments)


@pytest.mark.parametrize("buffer", [{}, {"index": 0}, {"index": 10**15, "offset_mib": 0}, [0, 64]])
def test_buffers_that_no_host_lends_are_refused(rack: Any, buffer: Any) -> None:
    lenders = Lenders(rack.ledger, rack.agents, lambda: None)
    endpoint = LendingEndpoint(
        ledger=rack.ledger, reader=rack.reader, lenders=lenders, agents=rack.agents, gate=rack.endpoint.gate
    )
    with pytest.raises(BadRequest, match="buffers/0"):
        call(
            endpoint.delegate,
            host="h1",
            sequence=1,
            incarnation=LENT["incarnation"],
            kind="active",
            buffer_mib=64,
            buffers=[buffer],
        )
    assert not rack.ledger.buffers.find("h1")
