"""A host of the rack lends memory, another one uses it, and the lender gets it back: by the API and real agents."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from keystoneauth1.adapter import Adapter

from pondstack.domain.admission import LENT_CLASS
from pondstack.domain.requests import BorrowRequest
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone, pondstack_services
from pondstack_rack.wait import wait_until
from pondstack_rdma.errors import AccessRefused, TransportGone
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.shm import ShmTransport
from tests.rack.lent_claims import claimed
from tests.rack.outages import Days

pytestmark = [pytest.mark.rack, pytest.mark.timeout(600)]

LENDER, BORROWER = "fake1", "fake2"
BUFFER, BUFFERS = 64, 4
SECONDS = 60.0


class Memory:
    """The API as an operator calls it."""

    def __init__(self, rack: Rack) -> None:
        session = keystone.session(rack.layout)
        self._api = Adapter(session, "memory", region_name="RegionOne", default_microversion="1.10", raise_exc=False)
        self._placement = Adapter(session, "placement", region_name="RegionOne", default_microversion="1.36")

    def post(self, action: str, **body: Any) -> dict[str, Any]:
        """Have the lender do something."""
        answer = self._api.post(f"/hosts/{LENDER}/{action}", json=body)
        assert answer.status_code == 202, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def lender(self) -> dict[str, Any]:
        """Return it, {} when it lends nothing."""
        answer = self._api.get(f"/lenders/{LENDER}")
        return {} if answer.status_code == 404 else dict(answer.json())

    def epoch(self) -> int:
        """Return the leader's."""
        return int(self._api.get("/leader").json()["epoch"])

    def admitted_mib(self) -> int:
        """Return what of it may be borrowed."""
        return int(self._api.get(f"/hosts/{LENDER}").json()["lending"]["admitted_mib"])

    def reserved_mib(self) -> int:
        """Return what Placement has of it as lent, no part of what may be placed there."""
        (provider,) = self._placement.get(f"/resource_providers?name={LENDER}").json()["resource_providers"]
        records = self._placement.get(f"/resource_providers/{provider['uuid']}/inventories").json()["inventories"]
        lent: int = records.get(LENT_CLASS, {}).get("total", 0)
        assert records["MEMORY_MB"]["reserved"] == lent, "the rack's hosts reserve nothing else"
        return lent

    def states(self) -> list[str]:
        """Return the states of its buffers by index."""
        buffers = self._api.get(f"/lenders/{LENDER}/buffers").json()["buffers"]
        return [item["state"] for item in buffers]


@pytest.fixture
def memory(rack: Rack) -> Iterator[Memory]:
    made = Memory(rack)
    yield made
    if made.lender():
        made.post("reclaim", mib=BUFFERS * BUFFER, seconds=0)
        assert wait_until(lambda: not made.lender(), SECONDS), made.lender()


def test_memory_is_lent_used_and_taken_back(rack: Rack, memory: Memory) -> None:
    begun = memory.post("delegate", mib=BUFFERS * BUFFER, kind="active")
    assert begun["verb"] == "lend"
    assert wait_until(lambda: memory.admitted_mib() == BUFFERS * BUFFER, SECONDS), memory.lender()
    assert memory.reserved_mib() == memory.lender()["lent_mib"] == BUFFERS * BUFFER
    assert memory.states() == ["free"] * BUFFERS
    assert len(pondstack_services.lender_processes(rack.layout)) == 1
    with Days(rack) as days:
        transport = days.transport()
        consumer = str(uuid4())
        try:
            with claimed(days.cloud, consumer, BORROWER, 2 * BUFFER):
                _use(rack, memory, ControllerAPI(transport), AgentAPI(transport), consumer)
        finally:
            transport.cleanup()


def _use(rack: Rack, memory: Memory, controller: ControllerAPI, agents: AgentAPI, consumer: str) -> None:
    wanted = BorrowRequest(consumer, BORROWER, remote_mib=2 * BUFFER, guaranteed=True)
    operation = str(uuid4())
    given = controller.borrow(operation, wanted)
    assert controller.borrow(operation, wanted) == given
    shown = given["lenders"][LENDER]
    keys = {int(index): Key.from_dict(key) for index, key in shown["keys"].items()}
    # The borrower's agent has them on its books, or the reconciler would ask for them back.
    agents.prepare(BORROWER, epoch=memory.epoch(), lender=LENDER, allocation_uuid=given["allocation_uuid"], **shown)
    page = bytes(range(256)) * 16
    with ShmTransport(rack.layout.lenders).connect(Ticket.from_dict(shown["ticket"]), 5.0) as link:
        for key in keys.values():
            link.open(key)
            link.write(key, 4096, page)
        controller.acknowledge_borrowed(
            operation_id=operation,
            allocation_uuid=given["allocation_uuid"],
            host=BORROWER,
            opened=[(item["incarnation"], item["index"]) for item in given["buffers"]],
        )
        assert memory.states() == ["online", "online", "free", "free"]
        # Its agent goes, and comes back: what is lent is another process's.
        rack.service(f"pondstack-agent-{LENDER}").restart()
        assert all(link.read(key, 4096, 4096) == page for key in keys.values())
        memory.post("reclaim", mib=BUFFERS * BUFFER, seconds=SECONDS)
        assert wait_until(lambda: not memory.lender(), SECONDS), memory.states()
        for key in keys.values():
            # With its last buffer the lender ends.
            with pytest.raises((AccessRefused, TransportGone)):
                link.read(key, 4096, 4096)
    assert wait_until(lambda: pondstack_services.lender_processes(rack.layout) == [], SECONDS)
    assert wait_until(lambda: memory.reserved_mib() == 0, SECONDS)
