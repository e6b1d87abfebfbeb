"""Hosts and pools are removed from the ledger and from Placement; what Nova owns there stays."""

from functools import partial
from unittest import mock
from uuid import uuid4

import pytest
from sqlalchemy import text

from pondstack.controller.gate import Gate
from pondstack.controller.leader.removal_endpoint import RemovalEndpoint
from pondstack.controller.lending import inventory as lending
from pondstack.controller.pool.devices import DeviceRegistry
from pondstack.controller.pool.inventory import InventorySync, aggregate_uuid
from pondstack.controller.pool.remover import Remover
from pondstack.domain.errors import NotEmpty, NotLeader, Unavailable
from pondstack.domain.units import RESOURCE_CLASS, SHARING_TRAIT
from pondstack.tests.controller.conftest import POOL, audit, call
from pondstack.tests.controller.reconcile.test_reconciler import boot, nova
from tests.fixtures import lead

__all__ = ["nova"]

SILENCE = text("UPDATE hosts SET last_heartbeat = last_heartbeat - 86400 WHERE name = :name")


@pytest.fixture
def endpoint(placed):
    return endpoint_of(placed, placed.remover)


def endpoint_of(placed, remover):
    return RemovalEndpoint(remover=remover, publish=partial(placed.published.append, "removal"), gate=Gate())


@pytest.fixture
def without_device(placed):
    """The endpoint of a controller whose [controller] pool_devices has lost its entry."""
    devices = DeviceRegistry(placed.ledger, [])
    return endpoint_of(placed, Remover(placed.ledger, placed.reader.rack, devices, placed.placement, placed.sync))


def remove_host(endpoint, name="h1", operation_id=None):
    call(endpoint.remove_host, name=name, operation_id=operation_id or str(uuid4()))


def remove_pool(endpoint, operation_id=None):
    call(endpoint.remove_pool, uuid=POOL, operation_id=operation_id or str(uuid4()))


def quiet(placed, *hosts):
    """Stop the agents of hosts, a day ago."""
    for host in hosts:
        placed.agents[host].up = False
        placed.database.write(lambda session, name=host: session.execute(SILENCE, {"name": name}))


def aggregates_of(placed, host):
    found = set()
    placed.placement.change_aggregates(
        placed.placement.provider_by_name(host), lambda present: found.update(present) or present
    )
    return found


def codes(answer):
    return [item["code"] for item in answer["findings"]]


def test_a_host_leaves_our_aggregates_and_keeps_novas(placed, endpoint):
    provider = placed.placement.provider_by_name("h1")
    novas = str(uuid4())
    placed.placement.change_aggregates(provider, lambda present: present | {novas, lending.AGGREGATE})
    quiet(placed, "h1")
    remove_host(endpoint)
    assert aggregates_of(placed, "h1") == {novas}
    assert placed.placement.host_provider("h1") == provider
    assert [host.name for host in placed.reader.hosts()] == ["h2"]
    placed.sync.write(placed.reader.rack())
    assert aggregates_of(placed, "h1") == {novas}
    assert audit(placed)["clean"]


def test_a_repetition_of_a_removal_does_nothing(placed, endpoint):
    quiet(placed, "h1")
    remove_host(endpoint, operation_id="op1")
    remove_host(endpoint, operation_id="op1")
    assert placed.published.count("removal") == 2


def test_a_host_with_claims_of_instances_stays_as_it_is(placed, nova, endpoint):
    consumer = str(uuid4())
    nova.claim(consumer)
    quiet(placed, "h1")
    with pytest.raises(NotEmpty, match=f"claims in Placement of instances {consumer}"):
        remove_host(endpoint)
    placed.sync.write(placed.reader.rack())
    assert aggregates_of(placed, "h1") == {aggregate_uuid(POOL)}
    nova.drop(consumer)
    remove_host(endpoint)


def test_what_the_ledger_refuses_is_restored_in_placement(placed, endpoint, monkeypatch):
    quiet(placed, "h1")
    monkeypatch.setattr(placed.ledger.removal, "remove_host", raises(Unavailable("the database is gone")))
    with pytest.raises(Unavailable):
        remove_host(endpoint)
    placed.sync.write(placed.reader.rack())
    assert aggregates_of(placed, "h1") == {aggregate_uuid(POOL)}


def test_a_write_that_waited_for_a_removal_sees_the_rack_after_it(placed):
    """It had read the host before, and would join it to the aggregate again."""
    quiet(placed, "h1")
    read = []

    def rack():
        read.append(placed.sync._lock.locked())
        return placed.reader.rack()

    placed.sync.refresh(rack)
    assert read == [True]


def test_a_former_leader_does_not_join_a_host_that_was_removed(placed, endpoint):
    """It was paused between its look at the ledger and its write."""
    former = InventorySync(placed.placement, placed.ledger)
    seen = placed.reader.rack()
    former.write(seen)
    former.forget()
    quiet(placed, "h1")
    remove_host(endpoint)
    lead(placed.database, "its successor")
    with pytest.raises(NotLeader):
        former.write(seen)
    assert aggregates_of(placed, "h1") == set()


def test_a_former_leader_that_had_looked_does_not_join_a_host_that_was_in_nothing(placed, endpoint):
    """Between its look at who leads and its write the next leader removed the host, with nothing to take it out of."""
    former, seen, plain = InventorySync(placed.placement, placed.ledger), placed.reader.rack(), placed.ledger.renew
    former.write(seen)
    former.forget()
    placed.placement.change_aggregates(placed.placement.provider_by_name("h1"), lambda _present: set())
    quiet(placed, "h1")

    def renew():
        plain()
        if seen.hosts.keys() == placed.reader.rack().hosts.keys():
            remove_host(endpoint)
            lead(placed.database, "its successor")

    with mock.patch.object(placed.ledger, "renew", renew), pytest.raises(NotLeader):
        former.write(seen)
    assert aggregates_of(placed, "h1") == set()


def test_a_host_that_comes_back_is_joined_again(placed, endpoint):
    quiet(placed, "h1")
    remove_host(endpoint)
    placed.agents["h1"].up, placed.agents["h1"].sequence = True, 0
    placed.beat("h1")
    placed.sync.write(placed.reader.rack())
    assert aggregates_of(placed, "h1") == {aggregate_uuid(POOL)}
    assert audit(placed)["clean"]


def test_a_pool_leaves_nothing_in_placement(placed, without_device):
    remove_pool(without_device, "op1")
    remove_pool(without_device, "op1")
    assert aggregates_of(placed, "h1") == aggregates_of(placed, "h2") == set()
    assert placed.placement.with_trait(SHARING_TRAIT) == {}
    assert placed.placement.inventory(POOL, RESOURCE_CLASS) is None
    assert placed.placement.host_provider("h1")
    assert placed.reader.pools() == []


def test_a_pool_whose_device_is_configured_stays(placed, endpoint):
    with pytest.raises(NotEmpty, match="pool_devices"):
        remove_pool(endpoint)
    assert placed.reader.pools()


def test_a_pool_that_is_claimed_stays_as_it_is(placed, nova, without_device):
    consumer = str(uuid4())
    nova.claim(consumer)
    with pytest.raises(NotEmpty, match=f"pool pool0 .* claims in Placement of instances {consumer}"):
        remove_pool(without_device)
    placed.sync.write(placed.reader.rack())
    assert aggregates_of(placed, "h1") == {aggregate_uuid(POOL)}
    nova.drop(consumer)
    remove_pool(without_device)


def test_an_audit_finds_a_host_whose_compute_service_was_deleted(placed):
    assert placed.placement.remove_provider(placed.placement.provider_by_name("h1"))
    assert codes(audit(placed)) == []  # its agent reports: it may be one without Nova yet
    quiet(placed, "h1")
    assert codes(audit(placed)) == ["agent_down", "host_left_behind"]
    assert [host.name for host in placed.reader.hosts()] == ["h1", "h2"]
    assert "done: remove h1" in [item["action"] for item in audit(placed, repair=True)["findings"]]
    assert audit(placed)["findings"] == []
    assert [host.name for host in placed.reader.hosts()] == ["h2"]


def test_an_audit_does_not_remove_what_has_slices(placed, nova):
    grant = boot(placed, nova)
    nova.drop(grant.consumer_uuid)
    assert placed.placement.remove_provider(placed.placement.provider_by_name("h1"))
    quiet(placed, "h1")
    outcome = [item["action"] for item in audit(placed, repair=True)["findings"] if item["code"] == "host_left_behind"]
    assert "2 slices" in outcome[0]
    assert placed.reader.host("h1")


def test_an_audit_finds_what_is_left_in_placement(placed):
    stranger, pool = str(uuid4()), str(uuid4())
    placed.placement.ensure_provider(stranger, "gone")
    placed.placement.change_aggregates(stranger, lambda _present: {aggregate_uuid(POOL), lending.AGGREGATE})
    placed.placement.ensure_provider(pool, "pondstack-pool9")
    placed.placement.ensure_trait(pool, SHARING_TRAIT)
    other = str(uuid4())
    placed.placement.ensure_provider(other, "somebodys-storage")
    placed.placement.ensure_trait(other, SHARING_TRAIT)
    expected = ["member_left_behind", "member_left_behind", "provider_left_behind"]
    assert codes(audit(placed)) == expected
    assert codes(audit(placed, repair=True)) == expected
    assert audit(placed)["findings"] == []
    assert placed.placement.provider_by_name("gone") == stranger
    assert placed.placement.provider_by_name("somebodys-storage") == other


def test_a_repair_spares_what_the_ledger_knows_by_now(placed):
    """A host or a pool that came between the audit's look at the ledger and its look at Placement."""
    provider = placed.placement.provider_by_name("h1")
    assert not placed.remover.leave_aggregate("h1", provider, aggregate_uuid(POOL))
    assert not placed.remover.remove_provider(POOL)
    assert aggregates_of(placed, "h1") == {aggregate_uuid(POOL)}
    assert placed.placement.inventory(POOL, RESOURCE_CLASS)


def raises(error):
    def refuse(*_arguments):
        raise error

    return refuse
