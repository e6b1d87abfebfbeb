"""What every controller answers, leading or not."""

from typing import Any

import pytest

from pondstack.controller.node.endpoint import NodeEndpoint
from pondstack.domain.errors import Unavailable
from pondstack.rpc.wire import Snapshot
from pondstack.tests.controller.conftest import POOL, Rack
from tests.fixtures.rpc_call import call


def endpoint(rack: Rack, **named: Any) -> NodeEndpoint:
    made = {
        "view": lambda: (rack.reader.rack(), 3),
        "controllers": list,
        "failover": lambda _to: None,
        "confirm": lambda *_who: True,
        "revoked": dict,
        "down_seconds": 20.0,
    }
    return NodeEndpoint(**{**made, **named})


def test_the_schedulers_view_has_the_rack_and_who_is_shut_out(rack: Rack) -> None:
    known = {"controller/c2": 7.0}
    answer = call(endpoint(rack, revoked=lambda: known).snapshot)
    snapshot = Snapshot.from_wire(answer)
    assert (snapshot.epoch, [pool.uuid for pool in snapshot.pools]) == (3, [POOL])
    assert answer["revoked"] == known
    assert answer["revoked"] is not known, "what crosses the bus changes nothing here"


def test_a_migration_is_confirmed_by_who_holds_and_who_asks(rack: Rack) -> None:
    asked: list[tuple[str, str, str]] = []

    def confirm(*who: str) -> bool:
        asked.append(who)
        return who[2] == "h2"

    made = endpoint(rack, confirm=confirm)
    assert call(made.confirm_migration, host="h1", consumer_uuid="vm", destination="h2") is True
    assert call(made.confirm_migration, host="h1", consumer_uuid="vm", destination="h3") is False
    assert asked == [("vm", "h1", "h2"), ("vm", "h1", "h3")]


def test_that_nobody_can_tell_crosses_the_bus_as_such(rack: Rack) -> None:
    def confirm(*_who: str) -> bool:
        raise Unavailable("Placement does not answer")

    with pytest.raises(Unavailable):
        call(endpoint(rack, confirm=confirm).confirm_migration, host="h1", consumer_uuid="vm", destination="h2")
