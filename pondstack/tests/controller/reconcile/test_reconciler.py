"""The reconciler's rounds end to end: real ledger, real Placement, an emulated device, agents as plain objects."""

from dataclasses import replace
from uuid import uuid4

import pytest

from pondstack.clients.placement import Inventory
from pondstack.controller.pool.inventory import aggregate_uuid, provider_name
from pondstack.controller.reconcile.observation import Limits
from pondstack.domain.causes import Cause
from pondstack.domain.errors import NotLeader, Unavailable
from pondstack.domain.model import Extent
from pondstack.domain.units import COMPUTE_TRAIT, RESOURCE_CLASS, SHARING_TRAIT
from pondstack.rpc.wire import Attached
from pondstack.tests.controller.conftest import POOL, audit, make_rack
from tests.fixtures import lead

NOW = {"unclaimed_grace_seconds": 0.0}
LOCAL_MIB = 4096
VERSION = {"OpenStack-API-Version": "placement 1.36"}


@pytest.fixture
def nova(placed, placement_http):
    """Claims as Nova makes and drops them: pool memory from the pool's provider, the rest from the host's."""

    class Nova:
        def claim(self, consumer, host="h1", slices=2):
            provider = placed.placement.provider_by_name(host)
            body = {
                "allocations": {
                    POOL: {"resources": {RESOURCE_CLASS: slices * 1024}},
                    provider: {"resources": {"MEMORY_MB": LOCAL_MIB}},
                },
                "consumer_generation": self._generation(consumer),
                "project_id": "p",
                "user_id": "u",
            }
            answer = placement_http.put(f"/allocations/{consumer}", json=body, headers=VERSION)
            assert answer.status_code == 204, answer.text

        def drop(self, consumer):
            assert placement_http.delete(f"/allocations/{consumer}", headers=VERSION).status_code == 204

        @staticmethod
        def _generation(consumer):
            return placement_http.get(f"/allocations/{consumer}", headers=VERSION).json().get("consumer_generation")

    for host in placed.agents:
        memory = Inventory(65536, 0, 1, 1, 65536)
        placed.placement.set_inventory(placed.placement.provider_by_name(host), "MEMORY_MB", memory)
    return Nova()


def boot(placed, nova, host="h1", slices=2):
    consumer = str(uuid4())
    nova.claim(consumer, host, slices)
    return placed.online(host, slices, consumer=consumer, guest_mib=slices * 1024 + LOCAL_MIB)


def reserved(placed):
    placed.sync.write(placed.reader.rack())
    return placed.placement.inventory(POOL, RESOURCE_CLASS).reserved


def test_a_claimed_guest_is_left_alone(placed, nova):
    boot(placed, nova)
    placed.beat()
    assert placed.reconcile(**NOW) == []
    assert placed.count("online") == 2


def test_a_destroyed_guest_whose_detach_was_lost_gives_its_slices_back(placed, nova):
    grant = boot(placed, nova)
    nova.drop(grant.consumer_uuid)
    placed.agents["h1"].idle()
    placed.beat()
    assert placed.reconcile() == []
    assert reserved(placed) == 2 * 1024
    assert placed.reconcile(**NOW) == ["unclaimed"]
    assert placed.agents["h1"].attached == {}
    assert placed.count("free") == 8
    assert reserved(placed) == 1024


def test_the_grace_counts_from_the_first_sight_and_ends_with_a_new_claim(placed, nova):
    grant = boot(placed, nova)
    nova.drop(grant.consumer_uuid)
    placed.reconciler.hint(grant.consumer_uuid)
    assert placed.reader.rack().allocations[grant.allocation_uuid].unclaimed_seconds is not None
    nova.claim(grant.consumer_uuid)
    placed.reconciler.hint(grant.consumer_uuid)
    assert placed.reader.rack().allocations[grant.allocation_uuid].unclaimed_seconds is None


def test_a_hint_about_a_stranger_asks_nothing(placed, monkeypatch):
    monkeypatch.setattr(type(placed.placement), "allocations_of", None)
    placed.reconciler.hint(str(uuid4()))


def test_a_running_guest_is_not_cut_off_by_its_missing_claim(placed, nova):
    """While a live migration runs, the source's slices are claimed by the migration, not by the instance."""
    grant = boot(placed, nova)
    nova.drop(grant.consumer_uuid)
    placed.beat()
    assert placed.reconcile(**NOW) == ["unclaimed_in_use"]
    assert placed.count("online") == 2


def move(nova, consumer, source="h1", target="h2"):
    """Have Nova move a claim as a live migration does; returns the migration's UUID."""
    migration = str(uuid4())
    nova.drop(consumer)
    nova.claim(migration, source)
    nova.claim(consumer, target)
    return migration


@pytest.mark.parametrize("in_use", [True, False], ids=["running", "not seen to run"])
def test_a_migration_may_outlast_the_grace(placed, nova, in_use):
    """The claim under its UUID counts; its end makes the source's memory unclaimed, and its failure changes nothing."""
    grant = boot(placed, nova)
    migration = move(nova, grant.consumer_uuid)
    if not in_use:
        placed.agents["h1"].idle()
    placed.beat()
    for _ in range(2):
        assert placed.reconcile(**NOW) == ["claim_without_slices"]
    assert (placed.count("online"), placed.agents["h1"].offlines) == (2, [])
    assert reserved(placed) == 1024
    nova.drop(grant.consumer_uuid)
    nova.drop(migration)
    nova.claim(grant.consumer_uuid)
    assert placed.reconcile(**NOW) == []
    migration = move(nova, grant.consumer_uuid)
    placed.online("h2", consumer=grant.consumer_uuid, guest_mib=2048 + LOCAL_MIB)
    placed.beat()
    assert placed.reconcile(**NOW) == []
    nova.drop(migration)
    placed.agents["h1"].idle()
    placed.beat()
    assert placed.reconcile(**NOW) == ["unclaimed"]
    assert placed.agents["h1"].attached == {}


def test_the_agents_own_refusal_counts_more_than_its_last_report(placed, nova):
    grant = boot(placed, nova)
    nova.drop(grant.consumer_uuid)
    agent = placed.agents["h1"]
    real, agent.report = agent.report, lambda: _idle(real())
    placed.beat()
    assert placed.reconcile(**NOW) == ["unclaimed"]
    assert placed.count("online") == 2


def _idle(report):
    return replace(report, attached=tuple(replace(item, in_use=False) for item in report.attached))


def test_destroy_while_the_agent_is_down(placed, nova):
    grant = boot(placed, nova)
    agent = placed.agents["h1"]
    agent.up = False
    agent.idle()
    nova.drop(grant.consumer_uuid)
    down = {"agent_down_seconds": -1.0, **NOW}
    assert placed.reconcile(**down) == ["agent_down", "agent_down", "unclaimed_agent_down"]
    assert placed.count("releasing") == 2
    assert "releasing_agent_down" in placed.reconcile(**down)
    assert placed.count("quarantined") == 2
    assert reserved(placed) == (1 + 2) * 1024
    assert placed.reader.slices(POOL)[0].cause is Cause.AGENT_DOWN
    agent.up = True
    placed.beat()
    placed.reconcile(**NOW)  # it still holds them: offline first
    assert agent.attached == {}
    placed.reconcile(**NOW)
    assert placed.count("free") == 8
    assert reserved(placed) == 1024


def test_a_new_leader_takes_nobody_for_silent(placed, nova):
    """It may be the one that hears nothing: its rounds wait until it hears."""
    grant = boot(placed, nova)
    placed.ledger.slices.begin_release(grant.allocation_uuid, "for the test")
    placed.limits = Limits(settle_seconds=-3600.0, agent_down_seconds=-1.0)
    placed.reconciler.reconcile_at_promotion(lambda host: placed.agents.report(host, epoch=placed.ledger.epoch), 5.0)
    assert placed.count("releasing") == 2
    assert "releasing_agent_down" in placed.reconcile(agent_down_seconds=-1.0)
    assert placed.count("quarantined") == 2


def test_an_agent_that_comes_back_without_the_slices_frees_them(placed, nova):
    grant = boot(placed, nova)
    placed.ledger.slices.quarantine_allocation(grant.allocation_uuid, Cause.AGENT_DOWN, "for the test")
    nova.drop(grant.consumer_uuid)
    placed.agents["h1"].attached.clear()
    placed.beat()
    assert placed.reconcile(**NOW) == ["explained"]
    assert placed.count("free") == 8


def test_slices_that_the_ledger_does_not_know(placed):
    agent = placed.agents["h2"]
    agent.attached["stranger"] = Attached("stranger", str(uuid4()), POOL, (Extent(6, 2),), in_use=False)
    placed.beat()
    assert "unknown_attachment" in placed.reconcile()
    assert placed.states()[6:] == ["quarantined", "quarantined"]
    placed.reconcile()
    assert agent.attached == {}
    placed.reconcile()
    assert placed.count("free") == 8


def test_a_stored_report_alone_moves_nothing(placed):
    """The report was late: what it lists has gone meanwhile, as the fresh one shows."""
    agent = placed.agents["h2"]
    agent.attached["stranger"] = Attached("stranger", str(uuid4()), POOL, (Extent(6, 2),), in_use=False)
    placed.beat()
    agent.attached.clear()
    assert placed.reconcile() == []
    assert placed.count("free") == 8


def test_a_build_that_died_between_assign_and_acknowledge(placed):
    consumer = str(uuid4())
    placed.assign(consumer=consumer)
    placed.beat()
    assert placed.reconcile(**NOW) == ["unclaimed"]
    assert placed.count("free") == 8


def test_an_acknowledgement_that_was_lost(placed, nova):
    consumer = str(uuid4())
    nova.claim(consumer)
    grant = placed.assign(consumer=consumer)
    placed.agents["h1"].hold(grant)
    placed.beat()
    assert placed.reconcile(assign_timeout_seconds=0.0) == ["acknowledge_lost"]
    assert placed.count("online") == 2


def test_a_permission_that_was_left_over(placed, device):
    device.grant("h2", [Extent(4, 1)], tag="gone", epoch=1)
    assert "permission_left" in placed.reconcile()
    assert placed.states()[4] == "quarantined"
    placed.reconcile()
    assert placed.states()[4] == "free"
    assert device.permissions() == {}


def test_a_permission_that_was_lost(placed, nova, device):
    grant = boot(placed, nova)
    device.revoke([0, 1], tag=grant.allocation_uuid, epoch=1)
    placed.beat()
    assert placed.reconcile() == ["permission_missing", "permission_missing"]
    assert {entry.tag for entry in device.permissions().values()} == {grant.allocation_uuid}


def _stale_table(placed, monkeypatch, grant):
    """Have the device's table be read before, the ledger after the allocation is released, at the first look."""
    device = placed.devices.get(POOL)
    real, seen = type(device).permissions, []

    def permissions(self):
        table = real(self)
        if not seen:
            seen.append(True)
            placed.release(grant.allocation_uuid)
            placed.sanitizer.drain()
        return table

    monkeypatch.setattr(type(device), "permissions", permissions)


def test_a_table_that_was_read_before_the_ledger_changed_is_no_disagreement(placed, nova, monkeypatch):
    grant = boot(placed, nova)
    placed.beat()
    _stale_table(placed, monkeypatch, grant)
    answer = audit(placed, settle_seconds=0.0)
    assert {item["code"] for item in answer["findings"]} <= {"claim_without_slices", "inventory_differs"}


def test_what_the_second_look_does_not_confirm_is_left_alone(placed, nova, monkeypatch):
    grant = boot(placed, nova)
    placed.beat()
    _stale_table(placed, monkeypatch, grant)
    placed.reconcile()
    assert placed.count("free") == 8


def test_a_failed_device_takes_its_pool_out_of_placement(placed, device):
    (device.path / "device.json").rename(device.path / "gone")
    assert "pool_failed" in placed.reconcile()
    assert reserved(placed) == 8192
    (device.path / "gone").rename(device.path / "device.json")
    assert placed.reconcile() == []
    assert reserved(placed) == 1024


def test_while_placement_is_silent_nothing_is_unclaimed(placed, nova, monkeypatch):
    boot(placed, nova)

    def silent(*_args, **_kwargs):
        raise Unavailable("Placement does not answer")

    monkeypatch.setattr(type(placed.placement), "allocations_of", silent)
    placed.beat()
    assert placed.reconcile(**NOW) == []
    assert placed.reconcile(**NOW) == []
    assert placed.count("online") == 2


def test_a_placement_that_lost_our_provider_proves_nothing(placed, nova, placement_http):
    grant = boot(placed, nova)
    nova.drop(grant.consumer_uuid)
    assert placement_http.delete(f"/resource_providers/{POOL}", headers=VERSION).status_code == 204
    placed.agents["h1"].idle()
    placed.beat()
    placed.reconcile(**NOW)
    assert placed.reconcile(**NOW) == []
    placed.sync.forget()
    assert reserved(placed) == 1024


def test_a_deposed_controller_stops(placed):
    lead(placed.database, "newer")
    with pytest.raises(NotLeader):
        placed.reconcile()


# Placement's side


def test_what_placement_gets(placed, placement_http):
    def get(path):
        return placement_http.get(path, headers=VERSION).json()

    assert get(f"/resource_providers/{POOL}")["name"] == provider_name("pool0")
    assert get(f"/resource_providers/{POOL}/traits")["traits"] == [SHARING_TRAIT]
    assert placed.placement.inventory(POOL, RESOURCE_CLASS) == Inventory(8192, 1024, 1024, 1024, 8192, 1.0)
    for uuid in (POOL, *(placed.placement.provider_by_name(host) for host in placed.agents)):
        assert get(f"/resource_providers/{uuid}/aggregates")["aggregates"] == [aggregate_uuid(POOL)]
    assert placed.reader.host("h1").provider_uuid == placed.placement.provider_by_name("h1")


def test_a_host_keeps_its_other_aggregates_and_leaves_ours_when_it_no_longer_reaches_the_pool(placed, placement_http):
    provider, other = placed.placement.provider_by_name("h1"), str(uuid4())
    placed.placement.change_aggregates(provider, lambda present: present | {other})
    report = placed.agents["h1"].report().to_wire()
    placed.ledger.hosts.heartbeat({**report, "pools": []})
    placed.sync.write(placed.reader.rack())
    answer = placement_http.get(f"/resource_providers/{provider}/aggregates", headers=VERSION)
    assert answer.json()["aggregates"] == [other]


def test_a_host_that_nova_registers_later_is_joined_later(placed, placement):
    placed.ledger.hosts.heartbeat({**placed.agents["h1"].report().to_wire(), "host": "h3"})
    placed.sync.write(placed.reader.rack())
    assert placed.reader.host("h3").provider_uuid is None
    uuid = str(uuid4())
    placement.ensure_provider(uuid, "h3")
    placed.sync.write(placed.reader.rack())
    assert placed.reader.host("h3").provider_uuid is None, "nova-compute is still telling Placement of it"
    placement.ensure_trait(uuid, COMPUTE_TRAIT)
    placed.sync.write(placed.reader.rack())
    assert placed.reader.host("h3").provider_uuid == placement.provider_by_name("h3")


@pytest.mark.usefixtures("placed", "nova")
def test_the_pool_shares_its_memory_with_its_hosts(placement_http):
    """What the scheduler will ask: local memory from the host, pool memory in a numbered group."""
    query = f"/allocation_candidates?resources1=MEMORY_MB:2048&resources_POND={RESOURCE_CLASS}:2048&group_policy=none"
    found = placement_http.get(query, headers=VERSION).json()
    assert len(found["allocation_requests"]) == 2
    assert all(POOL in request["allocations"] for request in found["allocation_requests"])
    too_much = query.replace(f"{RESOURCE_CLASS}:2048", f"{RESOURCE_CLASS}:8192")
    assert placement_http.get(too_much, headers=VERSION).json()["allocation_requests"] == []


def test_without_placement_nothing_is_ever_unclaimed(rack):
    rack.online()
    rack.beat()
    assert rack.reconcile(**NOW) == []


def test_two_controllers_in_turn_keep_the_ledger(database, device):
    first = make_rack(database, device.path, None)
    grant = first.online()
    second = make_rack(database, device.path, None)
    assert second.ledger.epoch == first.ledger.epoch + 1
    assert second.reader.allocation(grant.allocation_uuid).state == "online"
    with pytest.raises(NotLeader):
        first.assign()
    second.assign()
