"""The controller's RPC methods over a real ledger and an emulated device."""

from uuid import uuid4

import pytest

from pondstack.domain import errors
from pondstack.domain.model import Extent
from pondstack.prediction.serving import static_predictor
from pondstack.rpc.wire import Report, Snapshot, SplitAnswer, UsedSplit
from pondstack.tests.controller.conftest import POOL, call


def release(rack, grant, host="h1", operation_id=None):
    rack.agents[host].let_go(grant.allocation_uuid)
    call(
        rack.endpoint.release,
        operation_id=operation_id or str(uuid4()),
        allocation_uuid=grant.allocation_uuid,
        host=host,
    )


def split(rack, policy="fixed", pool_mib=0, memory_mib=8192, instance="i1", **values):
    specs = {"policy": policy, "pool_mib": pool_mib}
    features = {"instance_uuid": instance, "memory_mib": memory_mib, "vcpus": 2, "specs": specs, **values}
    rack.board.refresh()
    return SplitAnswer.from_wire(call(rack.endpoint.get_split, features=features))


def test_assign_acknowledge_release_and_sanitise(rack, device):
    grant = rack.online()
    assert (grant.pool_name, grant.slice_mib, grant.device["driver"]) == ("pool0", 1024, "emulated")
    assert {entry.tag for entry in device.permissions().values()} == {grant.allocation_uuid}
    assert rack.count("online") == 2
    with open(device.path / "memory", "rb+") as memory:
        memory.write(b"secret of a tenant")
    release(rack, grant)
    assert rack.count("sanitizing") == 2
    rack.sanitizer.drain()
    assert rack.count("free") == 8
    assert device.permissions() == {}
    with open(device.path / "memory", "rb") as memory:
        assert memory.read(18) == bytes(18)
    assert rack.published.count("sanitizer") == 1


def test_a_duplicate_assign_gets_the_same_grant(rack):
    request = {"operation_id": str(uuid4()), "consumer": str(uuid4())}
    assert rack.assign(**request) == rack.assign(**request)
    assert rack.count("assigning") == 2


def test_an_assign_that_the_device_refuses_is_undone_unless_the_host_has_it_online(rack, monkeypatch):
    """The second one is the late copy of a request that was answered and acknowledged: a guest runs by now."""

    def grant(_self, *_arguments, **_named):
        raise errors.DeviceFailed("EIO")

    request = {"operation_id": str(uuid4()), "consumer": str(uuid4())}
    rack.online(**request)
    monkeypatch.setattr(type(rack.devices.get(POOL)), "grant", grant)
    for again in (request, {}):
        with pytest.raises(errors.DeviceFailed):
            rack.assign(**again)
    assert rack.count("online") == 2
    assert rack.count("sanitizing") == 2


def test_a_late_assign_after_the_release_grants_nothing(rack, device):
    request = {"operation_id": str(uuid4()), "consumer": str(uuid4())}
    grant = rack.assign(**request)
    release(rack, grant)
    rack.sanitizer.drain()
    with pytest.raises(errors.Conflict, match="released already"):
        rack.assign(**request)
    assert device.permissions() == {}


def test_a_late_acknowledge_after_the_release_is_refused(rack):
    grant = rack.assign()
    release(rack, grant)
    other = rack.online(host="h2")
    with pytest.raises(errors.NotFound):
        call(rack.endpoint.acknowledge, operation_id="late", allocation_uuid=grant.allocation_uuid, host="h1")
    assert rack.reader.allocation(other.allocation_uuid).state == "online"


def test_releases_may_come_twice_late_or_for_nothing(rack):
    grant = rack.online()
    release(rack, grant, operation_id="r")
    rack.sanitizer.drain()
    rack.online(host="h2", slices=8)
    release(rack, grant, operation_id="r")
    release(rack, grant)
    call(rack.endpoint.release, operation_id="x", allocation_uuid=str(uuid4()), host="h1")
    assert rack.count("online") == 8


def test_a_device_that_refuses_undoes_the_assignment(rack, device):
    device.grant("stranger", [Extent(0, 1)], tag="left-over", epoch=1)
    with pytest.raises(errors.PermissionHeld):
        rack.assign(slices=8)
    assert rack.count("sanitizing") == 8
    rack.sanitizer.drain()
    assert rack.count("free") == 8
    assert device.permissions() == {}


def test_a_slice_that_cannot_be_zeroed_is_quarantined(rack, monkeypatch):
    grant = rack.online()
    device = rack.devices.get(POOL)
    real = type(device).sanitize

    def sanitize(self, index, *, epoch):
        if index == 1:
            raise errors.DeviceFailed("EIO")
        real(self, index, epoch=epoch)

    monkeypatch.setattr(type(device), "sanitize", sanitize)
    release(rack, grant)
    rack.sanitizer.drain()
    assert rack.states()[:2] == ["free", "quarantined"]
    assert rack.reader.slice(POOL, 1).reason == "sanitize_failed: EIO"


def test_slices_of_a_dead_device_wait_and_are_not_quarantined(rack, device):
    grant = rack.online()
    release(rack, grant)
    (device.path / "device.json").rename(device.path / "gone")
    rack.sanitizer.drain()
    assert rack.count("sanitizing") == 2
    (device.path / "gone").rename(device.path / "device.json")
    rack.sanitizer.drain()
    assert rack.count("free") == 8


def test_a_heartbeat_registers_answers_and_settles_releases(rack):
    grant = rack.online()
    agent = rack.agents["h1"]
    agent.attached.clear()
    agent.released.append(grant.allocation_uuid)
    published = len(rack.published)
    (first,) = rack.beat("h1")
    assert first["forget"] == [], "the host has yet to be asked"
    (answer,) = rack.beat("h1")
    assert answer["epoch"] == rack.ledger.epoch
    assert answer["forget"] == [grant.allocation_uuid]
    assert answer["pools"][POOL]["slices_total"] == 8
    assert rack.count("sanitizing") == 2
    assert len(rack.published) > published


def test_the_release_of_another_hosts_allocation_settles_and_changes_nothing(rack):
    grant = rack.online(host="h2")
    rack.agents["h1"].released.append(grant.allocation_uuid)
    (answer,) = rack.beat("h1")
    assert answer["forget"] == [grant.allocation_uuid]
    assert rack.count("online") == 2


def test_an_unknown_pool_in_a_report_is_left_out(rack):
    report = Report("h9", 1, 1, "9.9", pools=(POOL, str(uuid4())))
    answer = call(rack.endpoint.heartbeat, report={**report.to_wire(), "field_of_the_future": 1})
    assert set(answer["pools"]) == {POOL}
    assert rack.reader.host("h9").pools == (POOL,)


def test_snapshot(rack):
    rack.online(slices=3)
    call(rack.endpoint.set_host, name="h2", enabled=False, reason="broken fan", generation=0)
    view = Snapshot.from_wire(call(rack.endpoint.snapshot))
    (pool,) = view.pools
    assert (pool.free_slices, pool.largest_extent, pool.buffer_slices, pool.hosts) == (5, 5, 1, ("h1", "h2"))
    assert view.usable_hosts == ("h1",)
    assert view.unusable_hosts == {"h2": "disabled: broken fan"}
    assert view.pool_mib_by_host == {"h1": 3072}


def test_set_host_answers_the_host(rack):
    answer = call(rack.endpoint.set_host, name="h1", enabled=False, reason="r", generation=None)
    assert answer == {"name": "h1", "enabled": False, "disabled_reason": "r", "generation": 1}
    with pytest.raises(errors.GenerationConflict):
        call(rack.endpoint.set_host, name="h1", enabled=True, reason="", generation=0)
    with pytest.raises(errors.NotFound):
        call(rack.endpoint.set_host, name="h7", enabled=True, reason="", generation=None)


# Splits


def test_fixed_and_local_follow_the_flavor(rack):
    answer = split(rack, "fixed", 2048)
    assert (answer.local_mib, answer.pool_mib, answer.source, answer.slice_mib) == (6144, 2048, "fixed", 1024)
    assert split(rack, "local").pool_mib == 0


def record(rack, answer, policy="auto", pool_mib=0, instance="i1", age_seconds=0.0):
    """Tell the controller, as a scheduler does, what an instance was placed with."""
    memory_mib = answer.local_mib + answer.pool_mib
    specs = {"policy": policy, "pool_mib": pool_mib}
    features = {"instance_uuid": instance, "memory_mib": memory_mib, "vcpus": 2, "specs": specs}
    values = {key: value for key, value in answer.to_wire().items() if key != "slice_mib"}
    call(rack.split_endpoint.record_splits, splits=[{"features": features, "age_seconds": age_seconds, **values}])


def test_auto_is_remembered_until_the_flavor_changes(rack):
    first = split(rack, "auto", memory_mib=16384)
    assert first.pool_mib == 2048
    record(rack, first)
    rack.predictor = static_predictor(50)
    assert split(rack, "auto", memory_mib=16384) == first
    assert split(rack, "auto", memory_mib=8192).pool_mib == 4096


def test_an_answer_is_not_what_an_instance_was_placed_with(rack):
    """It may have come too late; only the scheduler knows."""
    split(rack, "auto", memory_mib=16384)
    with pytest.raises(errors.NotFound, match="no split of instance i1"):
        rack.reader.split("i1")


@pytest.mark.parametrize("policy", ["auto", "fixed"])
def test_a_fallback_is_recorded_and_given_to_no_later_start(rack, policy):
    pool_mib = 2048 if policy == "fixed" else 0
    asked = split(rack, policy, pool_mib, memory_mib=16384)
    used = SplitAnswer(16384, 0, "timeout", 1.0, "all local: no answer within 0.5 s", 1024)
    record(rack, used, policy, pool_mib)
    known = rack.reader.split("i1")
    assert (known.local_mib, known.pool_mib, known.source) == (16384, 0, "timeout")
    assert "0.5 s" in known.reason
    assert split(rack, policy, pool_mib, memory_mib=16384) == asked


def test_a_record_that_was_long_under_way_replaces_no_younger_one(rack):
    record(rack, SplitAnswer(7168, 1024, "static", 1.0, "new", 1024), age_seconds=10)
    record(rack, SplitAnswer(8192, 0, "timeout", 1.0, "old", 1024), age_seconds=60)
    assert rack.reader.split("i1").reason == "new"
    record(rack, SplitAnswer(8192, 0, "over_quota", 1.0, "newest", 1024))
    assert rack.reader.split("i1").reason == "newest"


def test_what_an_instance_has_takes_no_reason_away(rack):
    """A cold migration keeps the share, and why it is so; a share that is none of the remembered is told as it is."""
    record(rack, SplitAnswer(7168, 1024, "static", 1.0, "15 %", 1024), age_seconds=60)
    record(rack, SplitAnswer(7168, 1024, "present", 1.0, "it has it", 1024))
    assert rack.reader.split("i1").reason == "15 %"
    record(rack, SplitAnswer(6144, 2048, "present", 1.0, "it has it", 1024))
    assert (rack.reader.split("i1").pool_mib, rack.reader.split("i1").source) == (2048, "present")


def test_a_record_that_splits_something_else_is_refused(rack):
    used = UsedSplit({"instance_uuid": "i1", "memory_mib": 8192, "vcpus": 1}, 4096, 1024, "static", 1.0, "")
    with pytest.raises(errors.BadRequest, match="do not split the 8192 MiB"):
        call(rack.split_endpoint.record_splits, splits=[used.to_wire()])


def test_a_running_instance_keeps_what_it_has(rack):
    consumer = str(uuid4())
    rack.online(slices=3, consumer=consumer)
    answer = split(rack, "auto", instance=consumer)
    assert (answer.pool_mib, answer.source) == (3072, "present")


def test_a_fixed_share_that_no_pool_has_names_pool_and_shortage(rack):
    with pytest.raises(errors.PoolShortage, match=r"9216 MiB .* pool pool0 has 8192 MiB in all \(1024 MiB short\)"):
        split(rack, "fixed", 9 * 1024, memory_mib=16384)
    rack.online(slices=4)
    with pytest.raises(errors.PoolShortage, match=r"pool pool0 has 3072 MiB free of 8192 MiB \(1024 MiB short\)"):
        split(rack, "fixed", 4096)
    assert split(rack, "fixed", 3072).pool_mib == 3072


def test_a_pool_that_only_unusable_hosts_reach_counts_for_nothing(rack):
    for host in rack.agents:
        call(rack.endpoint.set_host, name=host, enabled=False, reason="r", generation=None)
    with pytest.raises(errors.PoolShortage, match="no usable host"):
        split(rack, "fixed", 1024)


def test_a_resize_asks_for_the_new_flavors_split(rack):
    """Of the same size, too: what the instance has came with other specs."""
    consumer = str(uuid4())
    rack.online(consumer=consumer, pool_mib=3072, guest_mib=8192)
    assert split(rack, "auto", instance=consumer).pool_mib == 3072
    answer = split(rack, "auto", instance=consumer, resized=True)
    assert (answer.pool_mib, answer.source) == (1024, "static")
    assert split(rack, "auto", instance=consumer).source == "present"


def test_auto_is_all_local_when_the_pool_is_short(rack):
    rack.online(slices=7)
    answer = split(rack, "auto", memory_mib=16384)
    assert answer.pool_mib == 0
    assert "all local" in answer.reason


@pytest.mark.parametrize(
    "features", [{}, {"instance_uuid": "i", "memory_mib": 1, "vcpus": 1, "specs": {"policy": "x"}}]
)
def test_malformed_features_are_refused(rack, features):
    rack.board.refresh()
    with pytest.raises(errors.BadRequest):
        call(rack.endpoint.get_split, features=features)


def test_fixed_without_local_memory_is_refused(rack):
    with pytest.raises(errors.BadSpec):
        split(rack, "fixed", 8192)
