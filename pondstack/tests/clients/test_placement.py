"""The Placement client against real Placement."""

from dataclasses import replace
from uuid import uuid4

import pytest
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import loading
from oslo_config import cfg

from pondstack.clients.placement import Inventory, Placement
from pondstack.conf import placement as options
from pondstack.domain.errors import NotLeader, Unavailable
from pondstack.domain.units import COMPUTE_TRAIT, RESOURCE_CLASS, SHARING_TRAIT

WANTED = Inventory(total=8192, reserved=1024, step_size=1024, min_unit=1024, max_unit=8192)


@pytest.fixture
def pool(placement):
    uuid = str(uuid4())
    placement.ensure_resource_class(RESOURCE_CLASS)
    placement.ensure_provider(uuid, "pondstack-pool0")
    return uuid


def get(http, path):
    return http.get(path, headers={"OpenStack-API-Version": "placement 1.36"}).json()


def test_a_provider_is_made_once_and_renamed(placement, placement_http, pool):
    placement.ensure_provider(pool, "pondstack-pool0")
    placement.ensure_provider(pool, "pondstack-other")
    assert get(placement_http, f"/resource_providers/{pool}")["name"] == "pondstack-other"
    assert placement.provider_by_name("pondstack-other") == pool
    assert placement.provider_by_name("nobody") is None


def test_a_host_is_found_when_nova_has_told_all_of_it(placement):
    uuid = str(uuid4())
    placement.ensure_provider(uuid, "host")
    assert placement.host_provider("host") is None
    placement.ensure_trait(uuid, COMPUTE_TRAIT)
    assert placement.host_provider("host") == uuid


def test_traits_keep_the_others(placement, placement_http, pool):
    placement.ensure_trait(pool, "HW_CPU_X86_AVX")
    placement.ensure_trait(pool, SHARING_TRAIT)
    placement.ensure_trait(pool, SHARING_TRAIT)
    assert sorted(get(placement_http, f"/resource_providers/{pool}/traits")["traits"]) == [
        "HW_CPU_X86_AVX",
        SHARING_TRAIT,
    ]


def test_inventory_is_written_when_it_differs_only(placement, pool):
    assert placement.inventory(pool, RESOURCE_CLASS) is None
    assert placement.set_inventory(pool, RESOURCE_CLASS, WANTED)
    assert not placement.set_inventory(pool, RESOURCE_CLASS, WANTED)
    assert placement.inventory(pool, RESOURCE_CLASS) == WANTED
    assert placement.inventory(str(uuid4()), RESOURCE_CLASS) is None


def test_a_forced_write_refuses_those_that_looked_before(placement, placement_http, pool):
    """A former leader slept on its look at the provider; the next one has written the same inventory since."""
    placement.set_inventory(pool, RESOURCE_CLASS, WANTED)
    stale = replace(WANTED, reserved=0)
    asked = []

    def sleep_then_learn():
        if asked:
            raise NotLeader("epoch 1 has ended")
        asked.append(1)
        assert not Placement(placement_http).set_inventory(pool, RESOURCE_CLASS, WANTED, force=True)

    with pytest.raises(NotLeader):
        placement.set_inventory(pool, RESOURCE_CLASS, stale, still=sleep_then_learn)
    assert placement.inventory(pool, RESOURCE_CLASS) == WANTED


def test_aggregates_are_decided_on_what_is_there(placement, pool):
    theirs, ours = str(uuid4()), str(uuid4())
    assert placement.change_aggregates(pool, lambda present: present | {theirs})
    assert placement.change_aggregates(pool, lambda present: present | {ours})
    seen = []
    assert not placement.change_aggregates(pool, lambda present: seen.append(present) or present)
    assert seen == [{theirs, ours}]


def test_forced_aggregates_refuse_those_that_looked_before(placement, placement_http, pool):
    """A former leader slept with the look at the ledger behind it; the next one found nothing to take out since."""
    slept = []

    def sleep():
        if slept:
            raise NotLeader("epoch 1 has ended")
        slept.append(1)
        assert not Placement(placement_http).change_aggregates(pool, lambda present: present - {pool}, force=True)

    with pytest.raises(NotLeader):
        placement.change_aggregates(pool, lambda present: present | {pool}, still=sleep)
    assert not placement.change_aggregates(pool, lambda _present: set())


def test_a_generation_conflict_is_read_again_and_tried_again(placement, pool):
    """Somebody else changes the provider between our read and our write, twice."""
    tries = []

    def decide(present):
        tries.append(present)
        if len(tries) <= 2:
            placement.ensure_trait(pool, ["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"][len(tries) - 1])
        return present | {pool}

    assert placement.change_aggregates(pool, decide)
    assert len(tries) == 3


def test_endless_conflicts_end(placement, placement_http, pool):
    traits = iter(["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE"])

    def decide(present):
        placement.ensure_trait(pool, next(traits))
        return present | {pool}

    with pytest.raises(Unavailable, match="keeps changing"):
        Placement(placement_http, conflict_tries=3).change_aggregates(pool, decide)


def test_allocations_by_consumer(placement, placement_http, pool):
    placement.set_inventory(pool, RESOURCE_CLASS, WANTED)
    consumer = str(uuid4())
    body = {
        "allocations": {pool: {"resources": {RESOURCE_CLASS: 2048}}},
        "consumer_generation": None,
        "project_id": "p",
        "user_id": "u",
    }
    answer = placement_http.put(
        f"/allocations/{consumer}", json=body, headers={"OpenStack-API-Version": "placement 1.36"}
    )
    assert answer.status_code == 204
    assert placement.allocations_of(pool) == {consumer: {RESOURCE_CLASS: 2048}}
    assert placement.allocations_of(str(uuid4())) is None
    assert placement.held_by(consumer) == {pool: {RESOURCE_CLASS: 2048}}
    assert placement.held_by(str(uuid4())) == {}


def test_a_refusal_and_silence_are_unavailable(placement, pool):
    with pytest.raises(Unavailable, match="refused PUT"):
        placement.set_inventory(pool, "CUSTOM_UNKNOWN", WANTED)

    class Silent:
        def request(self, *_args, **_kwargs):
            raise ks_exc.ConnectFailure("no route")

    with pytest.raises(Unavailable, match="does not answer"):
        Placement(Silent()).provider_by_name("x")


def test_from_the_configuration(placement_http):
    """The section as an operator writes it, through keystoneauth's loading."""
    conf = cfg.ConfigOpts()
    conf([])
    options.register_opts(conf)
    loading.register_auth_conf_options(conf, "placement")
    conf.set_override("auth_type", "admin_token", "placement")
    conf.register_opts(loading.get_auth_plugin_conf_options("admin_token"), group="placement")
    conf.set_override("endpoint", placement_http.endpoint_override, "placement")
    conf.set_override("token", "admin", "placement")
    made = Placement.from_conf(conf)
    made.ensure_provider(str(uuid4()), "from-conf")
    assert made.provider_by_name("from-conf")


SERVER = "0635cccd-1e78-5473-b66a-bacffc433357"


@pytest.fixture
def split(placement, placement_http, pool):
    """A server with 2048 MiB of a host that has 4096, and as much of the pool; returns the host's UUID."""
    host = str(uuid4())
    placement.ensure_provider(host, "host")
    placement.set_inventory(host, "MEMORY_MB", replace(WANTED, total=4096, reserved=0, step_size=1, min_unit=1))
    placement.set_inventory(pool, RESOURCE_CLASS, WANTED)
    body = {
        "allocations": {
            host: {"resources": {"MEMORY_MB": 2048}},
            pool: {"resources": {RESOURCE_CLASS: 2048}},
        },
        "project_id": "blue",
        "user_id": "anna",
        "consumer_generation": None,
    }
    put(placement_http, body)
    return host


def put(http, body):
    headers = {"OpenStack-API-Version": "placement 1.36"}
    assert http.put(f"/allocations/{SERVER}", json=body, headers=headers).status_code == 204


def test_a_claim_is_resized_and_stays_its_owners(placement, placement_http, pool, split):
    assert placement.resize_claim(SERVER, lambda held: {**held, split: {"MEMORY_MB": 4096}})
    assert placement.held_by(SERVER) == {split: {"MEMORY_MB": 4096}, pool: {RESOURCE_CLASS: 2048}}
    assert placement.resize_claim(SERVER, lambda held: {split: held[split]})
    found = get(placement_http, f"/allocations/{SERVER}")
    assert (found["project_id"], found["user_id"]) == ("blue", "anna")
    assert found["allocations"].keys() == {split}


def test_a_claim_that_does_not_fit_stays_as_it_is(placement, split):
    before = placement.held_by(SERVER)
    assert not placement.resize_claim(SERVER, lambda held: {**held, split: {"MEMORY_MB": 4097}})
    assert placement.held_by(SERVER) == before


def test_a_claim_that_nova_changes_meanwhile_is_looked_at_again(placement, placement_http, split):
    """And the change may object."""
    seen = []

    def change(held):
        seen.append(held)
        if len(seen) > 1:
            raise NotLeader("it is another one")
        return {**held, split: {"MEMORY_MB": 4096}}

    def meanwhile():
        present = get(placement_http, f"/allocations/{SERVER}")
        resources = {uuid: {"resources": item["resources"]} for uuid, item in present["allocations"].items()}
        changed = {**resources, split: {"resources": {"MEMORY_MB": 1024}}}
        names = ("project_id", "user_id", "consumer_generation")
        put(placement_http, {"allocations": changed, **{name: present[name] for name in names}})

    with pytest.raises(NotLeader, match="another one"):
        placement.resize_claim(SERVER, change, still=meanwhile)
    assert [held[split]["MEMORY_MB"] for held in seen] == [2048, 1024]
    assert placement.held_by(SERVER)[split] == {"MEMORY_MB": 1024}


def test_a_claim_is_resized_by_who_still_leads_only(placement, split):
    def lost():
        raise NotLeader("another one leads")

    before = placement.held_by(SERVER)
    with pytest.raises(NotLeader):
        placement.resize_claim(SERVER, lambda held: {split: held[split]}, still=lost)
    assert placement.held_by(SERVER) == before
