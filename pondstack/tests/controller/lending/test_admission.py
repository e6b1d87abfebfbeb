"""The leader has hosts lend what a real Placement lets leave them; agents and nova-compute are plain objects."""

from types import SimpleNamespace

import pytest

from pondstack.clients.placement import Inventory
from pondstack.controller.gate import Gate
from pondstack.controller.lending.admission import Admission
from pondstack.controller.lending.endpoint import LendingEndpoint
from pondstack.domain.admission import LENT_CLASS, MEMORY_CLASS, LendStage, consumers, mark
from pondstack.domain.errors import Conflict, HostUnusable, NotAligned, Unavailable
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.rack import RackView
from pondstack.tests.controller.conftest import register_host
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.reader import MemoryReader
from tests.fixtures.memory.store import MemoryStore
from tests.fixtures.rpc_call import call

SIZE, HOST_MIB = 64, 1024
LIFE = "22222222-2222-4222-8222-222222222222"
GUEST = "44444444-4444-4444-8444-444444444444"


class World:
    """Host h1 of 1024 MiB. `done`: its agent registers at once what it is told to lend. `reclaimed`: what it is told
    to take back; `kept`: it ends that at once, with nothing taken.
    """

    def __init__(self, placement):
        self.placement, store = placement, MemoryStore()
        self.ledger = MemoryLedger(store, take_over(store))
        self.reader = MemoryReader(store)
        self.ledger.hosts.heartbeat(report("h1", pools=[]))
        self.done, self.refuses, self.held, self.reclaimed, self.settled = True, None, 0, [], 0
        self.operations, self.words, self.kept = [], 0, False
        self.admission = Admission(self.ledger, self, placement, self.reader.rack, self._settle)
        self.endpoint = LendingEndpoint(
            ledger=self.ledger,
            reader=self.reader,
            lenders=SimpleNamespace(settle=lambda: None),
            agents=self,
            gate=Gate(),
            admit=lambda: None,
        )

    def _settle(self):
        self.settled += 1

    # nova-compute

    def known(self, ratio=1.0, max_unit=HOST_MIB):
        register_host(self.placement, "h1")
        self.placement.ensure_resource_class(LENT_CLASS)
        self.reports(lent=0, ratio=ratio, max_unit=max_unit)
        return self

    @property
    def provider(self):
        return self.placement.provider_by_name("h1")

    def reports(self, lent=None, names=None, ratio=1.0, max_unit=HOST_MIB):
        lent = self.held if lent is None else lent
        dram = Inventory(HOST_MIB, lent, 1, 1, max_unit, ratio)
        self.placement.set_inventory(self.provider, MEMORY_CLASS, dram)
        if lent:
            names = mark((LIFE, index) for index in range(lent // SIZE)) if names is None else names
            self.placement.set_inventory(self.provider, LENT_CLASS, Inventory(lent, lent, 1, 1, names))

    def guest(self, mib, consumer=GUEST):
        return self.placement.claim(self.provider, MEMORY_CLASS, {consumer: mib})

    def claimed(self):
        held = self.placement.allocations_of(self.provider)
        return sum(held[consumer][MEMORY_CLASS] for consumer in consumers("h1") if consumer in held)

    # The agent

    def lend(self, _host, *, operation_id, mib, **_said):
        if self.refuses:
            raise self.refuses
        assert self.claimed() + self.placement.inventories(self.provider)[MEMORY_CLASS].reserved >= mib
        if self.done:
            self.delegates(mib)
        return {"operation_id": operation_id, "state": "done" if self.done else "pending", "reason": ""}

    def reclaim(self, _host, *, operation_id, mib, **_said):
        self.reclaimed.append((operation_id, mib))
        return {"state": "done" if self.kept else "pending"}

    def get_lending(self, _host):
        return {"buffer_mib": SIZE, "operations": self.operations}

    def delegates(self, mib):
        self.held, self.words = mib, self.words + 1
        offsets = {index: index * SIZE for index in range(mib // SIZE)}
        self.ledger.buffers.delegate(Lender("h1", LIFE, LenderKind.ACTIVE, SIZE), self.words, offsets, admitted=False)

    # The operator

    def delegate(self, mib=256, operation="op-1"):
        return call(self.endpoint.delegate_host, name="h1", mib=mib, kind="active", operation_id=operation)

    def round(self, mib=256, operation="op-1"):
        self.admission.run()
        return self.delegate(mib, operation)

    def admitted(self):
        return sum(item.size_mib for item in self.ledger.buffers.find("h1") if item.admitted)


@pytest.fixture
def world(placement):
    return World(placement)


def test_claimed_lent_reserved_read_back_admitted(world) -> None:
    world.known().done = False
    begun = world.delegate()
    assert (begun["verb"], begun["state"], begun["done_mib"]) == ("lend", "pending", 0)
    assert world.round()["state"] == "pending"
    assert world.claimed() == 256
    world.done = True
    waits = world.round()
    assert "nova-compute of host h1 has not reserved all" in waits["reason"]
    assert (world.admitted(), world.claimed()) == (0, 256)
    world.reports()
    ended = world.round()
    assert (ended["state"], ended["done_mib"], ended["reason"]) == ("done", 256, "")
    assert (world.admitted(), world.claimed(), world.settled) == (256, 0, 1)
    assert world.delegate() == ended, "a repetition is told the same"


def test_more_than_half_of_a_host_is_lent(world) -> None:
    """While it is claimed and reserved, Placement has more claimed than can be: the claim is our own."""
    world.known()
    world.delegate(640)
    world.round(640)
    world.reports()
    assert world.round(640)["done_mib"] == 640
    assert world.reclaimed == []


def test_what_instances_have_is_waited_for(world) -> None:
    world.known()
    assert world.guest(900)
    world.delegate()
    waits = world.round()
    assert waits["reason"] == "256 MiB are to leave the host, and instances leave 124 MiB: move some away"
    assert world.ledger.lends.of_host("h1").stage is LendStage.WAITING
    assert (world.held, world.claimed()) == (0, 0)
    world.placement.drop_claim(GUEST)
    world.round()
    world.reports()
    assert world.round()["done_mib"] == 256


def test_only_what_is_not_reserved_yet_is_claimed(world) -> None:
    world.known()
    world.delegate()
    world.round()
    world.reports()
    world.round()
    world.done = False
    world.delegate(384, "op-2")
    world.round(384, "op-2")
    assert world.claimed() == 128


def test_an_old_report_of_as_much_memory_proves_nothing(world) -> None:
    world.known()
    world.delegate()
    world.round()
    world.reports(names=mark([("a former life", 0)]))
    assert world.round()["state"] == "pending"
    assert world.admitted() == 0


def test_what_was_sold_although_it_was_claimed_goes_back(world) -> None:
    world.known()
    world.delegate()
    world.round()
    world.placement.drop_claim(consumers("h1")[0])
    assert world.guest(900)
    world.reports()
    world.round()
    world.round()
    assert world.admitted() == 0
    assert len(set(world.reclaimed)) == 1
    assert world.reclaimed[0][1] == 256
    world.delegates(0)
    ended = world.round()
    assert (ended["state"], ended["done_mib"]) == ("done", 0)
    assert ended["reason"] == "instances got the memory while it was claimed"


def test_what_a_host_could_not_take_back_is_asked_for_again(world) -> None:
    """A reclaim ends without what the device did not let go of; that may come free later."""
    world.known()
    world.delegate()
    world.round()
    world.placement.drop_claim(consumers("h1")[0])
    assert world.guest(900)
    world.reports()
    world.kept = True
    world.round()
    world.round()
    assert [mib for _, mib in world.reclaimed] == [256, 256]
    assert len({operation_id for operation_id, _ in world.reclaimed}) == 2


def test_of_what_was_lent_before_an_upgrade_only_what_nobody_has_goes_back(world) -> None:
    world.known()
    world.delegates(256)
    world.ledger.buffers.admit("h1", LIFE, [0])
    assert world.guest(900)
    world.reports()
    world.admission.run()
    assert [mib for _, mib in world.reclaimed] == [192]
    world.placement.drop_claim(GUEST)
    world.admission.run()
    assert world.admitted() == 256


def test_with_overcommit_more_is_claimed_than_leaves(world) -> None:
    world.known(ratio=2.0, max_unit=300)
    world.done = False
    world.delegate()
    world.round()
    assert world.claimed() == 512
    held = world.placement.allocations_of(world.provider)
    assert [held[consumer][MEMORY_CLASS] for consumer in consumers("h1")[:2]] == [300, 212]
    assert not world.guest(HOST_MIB * 2 - 512 + 1, GUEST)


def test_a_host_that_nova_does_not_know_waits(world) -> None:
    world.delegate()
    assert "Nova does not know host h1" in world.round()["reason"]
    world.known()
    world.round()
    assert world.claimed() == 256


def test_a_placement_that_is_away_admits_nothing(world, monkeypatch) -> None:
    world.known()
    world.delegate()
    world.round()
    world.reports()

    def away(*_arguments):
        raise Unavailable("Placement does not answer")

    with monkeypatch.context() as broken:
        broken.setattr(world.placement, "inventories", away)
        assert "Placement does not answer" in world.round()["reason"]
    assert world.admitted() == 0
    assert world.round()["state"] == "done"


def test_a_host_that_refuses_for_good_is_asked_no_more(world) -> None:
    world.known().refuses = HostUnusable("host h1 takes no part in lending")
    world.delegate()
    ended = world.round()
    assert (ended["state"], ended["done_mib"]) == ("done", 0)
    assert "takes no part" in ended["reason"]
    assert world.claimed() == 0


def test_the_next_leader_drops_claims_that_no_lend_needs(world) -> None:
    world.known()
    world.placement.claim(world.provider, MEMORY_CLASS, {consumers("h1")[0]: 64})
    world.admission.run()
    assert world.claimed() == 0
    world.placement.claim(world.provider, MEMORY_CLASS, {consumers("h1")[0]: 64})
    world.admission.run()
    assert world.claimed() == 64, "it has looked"
    world.admission.forget()
    world.admission.run()
    assert world.claimed() == 0
    assert isinstance(world.reader.rack(), RackView)


def test_a_lend_that_a_fence_ends_leaves_no_claim(world) -> None:
    world.known().done = False
    world.delegate()
    world.admission.run()
    assert world.claimed() == 256
    world.ledger.failures.fence_host("h1", "it burns", force=True)
    world.admission.run()
    assert world.claimed() == 0


def test_what_the_host_would_refuse_is_refused_at_once(world) -> None:
    world.known()
    with pytest.raises(NotAligned):
        world.delegate(100)
    world.operations = [{"operation_id": "op-0", "verb": "reclaim", "state": "pending"}]
    with pytest.raises(Conflict, match="reclaim op-0 is under way"):
        world.delegate()


def test_a_reclaim_ends_the_wait(world) -> None:
    world.known()
    assert world.guest(HOST_MIB)
    world.delegate()
    with pytest.raises(Conflict, match="lend op-1 is under way"):
        call(world.endpoint.reclaim_host, name="h1", mib=64, seconds=None, operation_id="op-2")
    world.round()
    call(world.endpoint.reclaim_host, name="h1", mib=64, seconds=None, operation_id="op-2")
    ended = world.delegate()
    assert (ended["state"], ended["reason"]) == ("done", "reclaim op-2 came first")
