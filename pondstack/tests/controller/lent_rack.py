"""A rack whose host h1 lends to h2: real ledger, real Placement, agents as plain objects."""

from uuid import uuid4

from pondstack.clients.placement import Inventory
from pondstack.controller.gate import Gate
from pondstack.controller.lending.claims import RemoteClaims
from pondstack.controller.lending.endpoint import LendingEndpoint
from pondstack.controller.lending.inventory import PROVIDER, LendingInventory
from pondstack.controller.lending.lenders import Lenders
from pondstack.domain.lending import REMOTE_CLASS, Lender, LenderKind
from pondstack.domain.remote_share import MIRROR_CLASS
from pondstack.domain.requests import BorrowRequest
from pondstack.rpc.wire import to_arguments
from pondstack.tests.controller.conftest import call

LIFE, SIZE = "22222222-2222-4222-8222-222222222222", 64
VERSION = {"OpenStack-API-Version": "placement 1.36"}


def books(loans):
    """What a borrower reports to have of h1, by allocation."""
    return {"lender": "h1", "incarnation": LIFE, "allocations": loans, "leaving": {}, "released": []}


class LentRack:
    """Host h1 lends four buffers, h2 borrows."""

    def __init__(self, placed, http):
        self.placed, self._http = placed, http
        self.placement, self.ledger = placed.placement, placed.ledger
        for agent in placed.agents.values():
            agent.borrowed = {"lenders": []}
        self.report()
        placed.beat()
        self.delegate(range(4))
        LendingInventory(self.placement, self.ledger).write()
        for host in placed.agents:
            provider = self.placement.provider_by_name(host)
            self.placement.set_inventory(provider, "MEMORY_MB", Inventory(65536, 0, 1, 1, 65536))
        self.endpoint = LendingEndpoint(
            ledger=self.ledger,
            reader=placed.reader,
            lenders=Lenders(self.ledger, self, lambda: None),
            agents=self,
            gate=Gate(),
            claims=RemoteClaims(self.placement),
        )

    def export(self, _host, *, indexes, incarnation, **_named):
        """Answer as a lender does."""
        return {"incarnation": incarnation, "ticket": {}, "keys": {str(index): {} for index in indexes}}

    def delegate(self, indexes):
        offsets = {index: index * SIZE for index in indexes}
        # Told with a report's number, as agents do.
        self.placed.agents["h1"].sequence += 1
        sequence = self.placed.agents["h1"].sequence
        self.ledger.buffers.delegate(Lender("h1", LIFE, LenderKind.ACTIVE, SIZE), sequence, offsets)

    def report(self, *runs):
        """Have h1 report these runs of buffers, or four of which nobody has a key."""
        self.placed.agents["h1"].lending = {
            "incarnation": LIFE,
            "kind": "active",
            "buffer_mib": SIZE,
            "answers": True,
            "operations": [],
            "buffers": list(runs or ([0, 4, "", 0],)),
        }

    def books(self, loans):
        """Have h2 report what it has, by allocation."""
        self.placed.agents["h2"].borrowed = {"lenders": [books(loans)]}

    def claim(self, consumer, mib, host="h2"):
        body = {
            "allocations": {
                PROVIDER: {"resources": {REMOTE_CLASS: mib}},
                self.placement.provider_by_name(host): {"resources": {"MEMORY_MB": 512}},
            },
            "consumer_generation": None,
            "project_id": "p",
            "user_id": "u",
        }
        answer = self._http.put(f"/allocations/{consumer}", json=body, headers=VERSION)
        assert answer.status_code == 204, answer.text

    def claim_mirror(self, consumer, mib, host="h2"):
        provider = self.placement.provider_by_name(host)
        self.placement.ensure_resource_class(MIRROR_CLASS)
        self.placement.set_inventory(provider, MIRROR_CLASS, Inventory(65536, 0, 1, 1, 65536))
        self.placement.claim(provider, MIRROR_CLASS, {consumer: mib})

    def drop(self, consumer):
        assert self._http.delete(f"/allocations/{consumer}", headers=VERSION).status_code == 204

    def borrow(self, consumer, count, operation=None, *, guaranteed=True):
        wanted = BorrowRequest(consumer, "h2", count * SIZE, guaranteed)
        return call(self.endpoint.borrow, operation_id=operation or str(uuid4()), **to_arguments(wanted))

    def lend(self, consumer=None, count=2):
        """Lend to a claimed consumer, and have both hosts report it."""
        consumer = consumer or str(uuid4())
        self.claim(consumer, count * SIZE)
        uuid = self.borrow(consumer, count)["allocation_uuid"]
        self.ledger.loans.acknowledge(str(uuid4()), uuid, "h2")
        self.books({uuid: list(range(count))})
        self.report([0, count, "h2", 1], [count, 4 - count, "", 0])
        self.placed.beat()
        return consumer, uuid

    def states(self):
        return [str(item.state) for item in self.ledger.buffers.find("h1")]
