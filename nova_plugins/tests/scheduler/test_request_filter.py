"""The request filter: what it writes, when it asks, and how it fails."""

from collections.abc import Callable
from typing import Any

import pytest
from nova import exception
from nova.scheduler import request_filter as nova_request_filter
from nova.scheduler import utils

from pondstack.domain.known_split import KnownSplit, Present
from pondstack.domain.room import PoolRoom
from pondstack.domain.sizing import Fallback, Split, corrected_split
from pondstack.prediction.serving import static_predictor
from pondstack.rpc.wire import SplitView
from pondstack_nova import migrations, quota
from pondstack_nova.counters import SPLIT_FALLBACKS
from pondstack_nova.flavors import LOCAL_KEY, POOL_KEY
from pondstack_nova.scheduler import request_filter, split_decision, used_splits


@pytest.fixture(autouse=True)
def rack(use_splits) -> Callable[..., Any]:
    """A pool with room; call it for another view of the controller's."""

    def use(*, free_mib: int = 65536, **values: Any) -> Any:
        return use_splits(view(free_mib, **values))

    use()
    return use


def view(free_mib: int = 65536, **values: Any) -> SplitView:
    """Return what a controller tells."""
    about = {"predictor": static_predictor(25), "rooms": (PoolRoom("pool0", 65536, free_mib),)}
    return SplitView(1, 1, **{**about, **values})


FIXED = {"pond__policy": "fixed", "pond__pool_mb": "1024"}


def test_sizes_the_placement_request(make_spec) -> None:
    """MEMORY_MB is the local share; pool memory is asked for in a suffixed group."""
    spec = make_spec(**FIXED)
    assert request_filter.pond_split(None, spec)
    groups = utils.ResourceRequest.from_request_spec(spec)._rg_by_id
    assert groups[None].resources["MEMORY_MB"] == 3072
    assert groups["_POND"].resources == {"CUSTOM_POND_MEMORY_MB": 1024}
    assert request_filter.pool_mib_of(spec) == 1024
    decision = used_splits.of(spec)
    assert (decision.split.local_mib, decision.split.pool_mib, decision.split.source) == (3072, 1024, "fixed")
    features = decision.features
    assert (features.memory_mib, features.specs.pool_mib, features.project_id) == (4096, 1024, "project")


def test_the_controllers_predictor_decides(make_spec, rack) -> None:
    """Its kind and figures come with the view."""
    spec = make_spec(pond__policy="auto")
    request_filter.pond_split(None, spec)
    assert request_filter.pool_mib_of(spec) == 1024
    rack(predictor=static_predictor(50))
    request_filter.pond_split(None, spec)
    assert request_filter.pool_mib_of(spec) == 2048


def test_a_second_pass_starts_anew(make_spec, rack) -> None:
    """The same spec may come again; an all-local answer takes the group and the promise away."""
    spec = make_spec(pond__policy="auto")
    request_filter.pond_split(None, spec)
    request_filter.pond_split(None, spec)
    assert spec.flavor.extra_specs[LOCAL_KEY] == "3072"
    cache = rack(free_mib=0)
    cache.pending.add(spec.instance_uuid, 1024, 0.0)
    request_filter.pond_split(None, spec)
    assert LOCAL_KEY not in spec.flavor.extra_specs
    assert request_filter.pool_mib_of(spec) == 0
    assert cache.pending.mib() == 0


@pytest.mark.parametrize("specs", [{}, {"pond__policy": "local"}, {"hw__numa_nodes": "1"}])
def test_asks_nobody(make_spec, monkeypatch, specs: dict[str, str]) -> None:
    """No pond: specs, or all local by rule: untouched and undecided."""
    monkeypatch.setattr(split_decision, "decide", lambda *_: pytest.fail("decided"))
    spec = make_spec(**specs)
    before = dict(spec.flavor.extra_specs)
    assert not request_filter.pond_split(None, spec)
    assert spec.flavor.extra_specs == before


@pytest.mark.parametrize("reason", ["no_view", "stale"])
def test_falls_back_to_all_local(make_spec, monkeypatch, caplog, reason: str) -> None:
    """Counted by reason, logged with the instance, never an error."""

    def no_view(*_: Any) -> Split:
        raise split_decision.NoView(Fallback(reason), "gone")

    monkeypatch.setattr(split_decision, "decide", no_view)
    before = SPLIT_FALLBACKS.counts().get(reason, 0)
    spec = make_spec(**FIXED)
    with caplog.at_level("WARNING", logger="pondstack_nova.scheduler.request_filter"):
        assert not request_filter.pond_split(None, spec)
    assert POOL_KEY not in spec.flavor.extra_specs
    assert SPLIT_FALLBACKS.counts()[reason] == before + 1
    assert spec.instance_uuid in caplog.text
    used = used_splits.of(spec)
    assert (used.split.local_mib, used.split.pool_mib, used.split.source) == (4096, 0, reason)


@pytest.mark.parametrize(
    ("refusal", "reason"), [(quota.OverQuota("limit of 0"), "over_quota"), (quota.Unknown("away"), "quota_unknown")]
)
def test_an_automatic_share_over_quota_is_all_local(make_spec, monkeypatch, refusal, reason: str) -> None:
    """Asked for all instances of the request; what the quota does not tell is not given either."""
    asked: list[int] = []

    def check(_ctxt: Any, _project: str, pool_mib: int) -> None:
        asked.append(pool_mib)
        raise refusal

    monkeypatch.setattr(quota, "check", check)
    before = SPLIT_FALLBACKS.counts().get(reason, 0)
    spec = make_spec(pond__policy="auto")
    spec.num_instances = 3
    assert not request_filter.pond_split(None, spec)
    assert (request_filter.pool_mib_of(spec), asked) == (0, [3072])
    assert SPLIT_FALLBACKS.counts()[reason] == before + 1
    assert (used_splits.of(spec).split.pool_mib, used_splits.of(spec).split.source) == (0, reason)


@pytest.mark.parametrize("specs", [FIXED, {"pond__policy": "auto"}])
def test_quota_is_asked_once(make_spec, rack, monkeypatch, specs: dict[str, str]) -> None:
    """nova-api asked for a fixed share; a server that is moved has its share."""
    monkeypatch.setattr(quota, "check", lambda *_: pytest.fail("asked"))
    spec = make_spec(**specs)
    rack(splits=(KnownSplit(spec.instance_uuid, Present(4096, 1024)),))
    assert request_filter.pond_split(None, spec)


def test_a_shortage_of_a_fixed_share_ends_the_request(make_spec, rack) -> None:
    """With pool and numbers, by the room of this moment."""
    rack(free_mib=512)
    with pytest.raises(exception.RequestFilterFailed, match=r"pool0 has 512 MiB free of 65536 MiB \(512 MiB short\)"):
        request_filter.pond_split(None, make_spec(**FIXED))


def test_a_share_that_is_no_whole_slice_ends_the_request(make_spec, rack) -> None:
    """The rack's slices are larger than the flavor knew."""
    rack(slice_mib=2048)
    with pytest.raises(exception.RequestFilterFailed, match="no multiple of the rack's slice size, 2048 MiB"):
        request_filter.pond_split(None, make_spec(**FIXED))


def test_a_request_that_found_no_host_is_all_local(make_spec) -> None:
    """retry.py sends it again; the record says why."""
    spec = make_spec(pond__policy="auto")
    spec._pondstack_all_local = True
    assert not request_filter.pond_split(None, spec)
    assert used_splits.of(spec).split.source == "no_room"


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        ({"pond__policy": "fixed"}, "needs pond:pool_mb"),
        ({"pond__colour": "red"}, "pond:colour is unknown"),
        ({**FIXED, "hw__numa_nodes": "1"}, "contradicts"),
        ({"pond__policy": "fixed", "pond__pool_mb": "4096"}, "leaves no local memory"),
    ],
)
def test_wrong_specs_end_the_request(make_spec, specs: dict[str, str], text: str) -> None:
    """What slipped past the API is refused here, unasked."""
    with pytest.raises(exception.RequestFilterFailed, match=text):
        request_filter.pond_split(None, make_spec(**specs))


def test_numa_of_an_image_ends_the_request(make_spec) -> None:
    """RequestSpec.numa_topology holds what flavor and image ask for together."""
    from nova import objects

    spec = make_spec(**FIXED)
    spec.numa_topology = objects.InstanceNUMATopology(cells=[])
    with pytest.raises(exception.RequestFilterFailed, match="NUMA topology"):
        request_filter.pond_split(None, spec)


def test_a_running_guest_keeps_its_split(make_spec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever flavor and service say: what it has is what the destination must give, all local or not."""
    monkeypatch.setattr(split_decision, "decide", lambda *_: pytest.fail("decided"))
    for local_mib, pool_mib in ((2048, 2048), (4096, 0)):
        monkeypatch.setattr(migrations, "find", lambda *_, mib=local_mib: migrations.Move(running_local_mib=mib))
        spec = make_spec(**FIXED)
        request_filter.pond_split(None, spec)
        assert request_filter.pool_mib_of(spec) == pool_mib
        assert used_splits.of(spec) is None


@pytest.mark.parametrize("resized", [True, False])
def test_a_resize_decides_anew(make_spec, rack, monkeypatch, resized: bool) -> None:
    """What the instance has came with another flavor."""
    spec = make_spec(pond__policy="auto")
    rack(splits=(KnownSplit(spec.instance_uuid, Present(4096, 2048)),))
    monkeypatch.setattr(migrations, "find", lambda *_: migrations.Move(resized=resized))
    request_filter.pond_split(None, spec)
    assert request_filter.pool_mib_of(spec) == (1024 if resized else 2048)


def test_local_share_of_a_claim() -> None:
    """The host's MEMORY_MB, wherever it stands; None when Placement holds nothing."""
    claim = {
        "pool": {"resources": {"CUSTOM_POND_MEMORY_MB": 1024}},
        "host": {"resources": {"VCPU": 1, "MEMORY_MB": 3072}},
    }
    assert migrations.local_mib(claim) == 3072
    assert migrations.local_mib({}) is None


def test_installed_once() -> None:
    """Loading the filter's module again adds nothing."""
    request_filter.install()
    request_filter.install()
    assert nova_request_filter.ALL_REQUEST_FILTERS.count(request_filter.pond_split) == 1


@pytest.mark.parametrize("specs", [{"pond__policy": "auto"}, FIXED])
def test_a_server_that_was_mitigated_is_all_local(make_spec, rack, specs) -> None:
    """Whatever its flavor says, and whatever it holds so far: its pool memory was, or is being, taken away."""
    spec = make_spec(**specs)
    rack(splits=(KnownSplit(spec.instance_uuid, Present(4096, 1024), "", corrected_split(4096)),))
    assert not request_filter.pond_split(None, spec)
    assert request_filter.pool_mib_of(spec) == 0
    assert used_splits.of(spec) is None
