"""The request filter: what it writes, when it asks, and how it fails."""

from collections.abc import Callable
from typing import Any

import pytest
from nova import exception
from nova.scheduler import request_filter as nova_request_filter
from nova.scheduler import utils

from pondstack.domain import errors
from pondstack.domain.sizing import Split
from pondstack.rpc.wire import SplitAnswer
from pondstack_nova import controller_client, migrations, quota
from pondstack_nova.counters import SPLIT_FALLBACKS
from pondstack_nova.flavors import LOCAL_KEY, POOL_KEY
from pondstack_nova.scheduler import request_filter, used_splits


class FakeController:
    """Stands for the budgeted client; keeps what it was asked."""

    def __init__(self, answer: SplitAnswer | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[dict[str, Any], float]] = []

    def get_split(self, features: dict[str, Any], timeout_seconds: float) -> SplitAnswer:
        self.asked.append((features, timeout_seconds))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[SplitAnswer | Exception], FakeController]:
    """Make the controller answer."""

    def use(answer: SplitAnswer | Exception) -> FakeController:
        fake = FakeController(answer)
        monkeypatch.setattr(controller_client, "controller", lambda: fake)
        return fake

    return use


def split(local_mib: int, pool_mib: int) -> SplitAnswer:
    """Return an answer of the controller."""
    return SplitAnswer(local_mib, pool_mib, "fixed", 1.0, "", 1024)


FIXED = {"pond__policy": "fixed", "pond__pool_mb": "1024"}


def test_sizes_the_placement_request(make_spec, answer) -> None:
    """MEMORY_MB is the local share; pool memory is asked for in a suffixed group."""
    controller = answer(split(3072, 1024))
    spec = make_spec(**FIXED)
    assert request_filter.pond_split(None, spec)
    groups = utils.ResourceRequest.from_request_spec(spec)._rg_by_id
    assert groups[None].resources["MEMORY_MB"] == 3072
    assert groups["_POND"].resources == {"CUSTOM_POND_MEMORY_MB": 1024}
    assert request_filter.pool_mib_of(spec) == 1024
    ((features, timeout_seconds),) = controller.asked
    assert timeout_seconds == 0.5
    assert features["memory_mib"] == 4096
    assert features["specs"]["pool_mib"] == 1024
    assert features["project_id"] == "project"
    assert used_splits.of(spec).split == Split(3072, 1024, "fixed", 1.0, "")


def test_a_second_pass_starts_anew(make_spec, answer) -> None:
    """The same spec may come again; an all-local answer takes the group away."""
    answer(split(3072, 1024))
    spec = make_spec(**FIXED)
    request_filter.pond_split(None, spec)
    request_filter.pond_split(None, spec)
    assert spec.flavor.extra_specs[LOCAL_KEY] == "3072"
    answer(controller_client.NoAnswer("timeout", "late"))
    request_filter.pond_split(None, spec)
    assert LOCAL_KEY not in spec.flavor.extra_specs
    assert request_filter.pool_mib_of(spec) == 0


@pytest.mark.parametrize("specs", [{}, {"pond__policy": "local"}, {"hw__numa_nodes": "1"}])
def test_asks_nobody(make_spec, answer, specs: dict[str, str]) -> None:
    """No pond: specs, or all local by rule: untouched and unasked."""
    controller = answer(AssertionError("asked"))
    spec = make_spec(**specs)
    before = dict(spec.flavor.extra_specs)
    assert not request_filter.pond_split(None, spec)
    assert spec.flavor.extra_specs == before
    assert controller.asked == []


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (controller_client.NoAnswer("breaker_open", "several times"), "breaker_open"),
        (controller_client.NoAnswer("transport", "gone"), "transport"),
        (errors.NotFound("no such thing"), "refused"),
        (split(4096, 1024), "malformed"),
        (split(0, 4096), "malformed"),
        (split(5120, -1024), "malformed"),
    ],
)
def test_falls_back_to_all_local(make_spec, answer, caplog, failure: Any, reason: str) -> None:
    """Counted by reason, logged with the instance, never an error."""
    answer(failure)
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
def test_an_automatic_share_over_quota_is_all_local(make_spec, answer, monkeypatch, refusal, reason: str) -> None:
    """Asked for all instances of the request; what the quota does not tell is not given either."""
    asked: list[int] = []

    def check(_ctxt: Any, _project: str, pool_mib: int) -> None:
        asked.append(pool_mib)
        raise refusal

    monkeypatch.setattr(quota, "check", check)
    answer(split(3072, 1024))
    before = SPLIT_FALLBACKS.counts().get(reason, 0)
    spec = make_spec(pond__policy="auto")
    spec.num_instances = 3
    assert not request_filter.pond_split(None, spec)
    assert (request_filter.pool_mib_of(spec), asked) == (0, [3072])
    assert SPLIT_FALLBACKS.counts()[reason] == before + 1
    assert (used_splits.of(spec).split.pool_mib, used_splits.of(spec).split.source) == (0, reason)


@pytest.mark.parametrize(("policy", "source"), [("fixed", "fixed"), ("auto", "present")])
def test_quota_is_asked_once(make_spec, answer, monkeypatch, policy: str, source: str) -> None:
    """nova-api asked for a fixed share; a server that is moved has its share."""
    monkeypatch.setattr(quota, "check", lambda *_: pytest.fail("asked"))
    answer(SplitAnswer(3072, 1024, source, 1.0, "", 1024))
    specs = FIXED if policy == "fixed" else {"pond__policy": "auto"}
    assert request_filter.pond_split(None, make_spec(**specs))


@pytest.mark.parametrize("refusal", [errors.PoolShortage("pool p is short"), errors.NotAligned("pool p is odd")])
def test_refusals_of_the_controller_end_the_request(make_spec, answer, refusal: errors.PondError) -> None:
    """In the controller's own words."""
    answer(refusal)
    with pytest.raises(exception.RequestFilterFailed) as failure:
        request_filter.pond_split(None, make_spec(**FIXED))
    assert failure.value.message == refusal.message


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        ({"pond__policy": "fixed"}, "needs pond:pool_mb"),
        ({"pond__colour": "red"}, "pond:colour is unknown"),
        ({**FIXED, "hw__numa_nodes": "1"}, "contradicts"),
        ({"pond__policy": "fixed", "pond__pool_mb": "4096"}, "leaves no local memory"),
    ],
)
def test_wrong_specs_end_the_request(make_spec, answer, specs: dict[str, str], text: str) -> None:
    """What slipped past the API is refused here, unasked."""
    controller = answer(AssertionError("asked"))
    with pytest.raises(exception.RequestFilterFailed, match=text):
        request_filter.pond_split(None, make_spec(**specs))
    assert controller.asked == []


def test_numa_of_an_image_ends_the_request(make_spec, answer) -> None:
    """RequestSpec.numa_topology holds what flavor and image ask for together."""
    from nova import objects

    answer(AssertionError("asked"))
    spec = make_spec(**FIXED)
    spec.numa_topology = objects.InstanceNUMATopology(cells=[])
    with pytest.raises(exception.RequestFilterFailed, match="NUMA topology"):
        request_filter.pond_split(None, spec)


def test_a_running_guest_keeps_its_split(make_spec, answer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever flavor and service say: what it has is what the destination must give, all local or not."""
    controller = answer(AssertionError("asked"))
    for local_mib, pool_mib in ((2048, 2048), (4096, 0)):
        monkeypatch.setattr(migrations, "find", lambda *_, mib=local_mib: migrations.Move(running_local_mib=mib))
        spec = make_spec(**FIXED)
        request_filter.pond_split(None, spec)
        assert request_filter.pool_mib_of(spec) == pool_mib
        assert used_splits.of(spec) is None
    assert controller.asked == []


@pytest.mark.parametrize("resized", [True, False])
def test_a_resize_is_told_to_the_controller(make_spec, answer, monkeypatch, resized: bool) -> None:
    """So that it does not take the split under the former flavor for an answer."""
    controller = answer(split(3072, 1024))
    monkeypatch.setattr(migrations, "find", lambda *_: migrations.Move(resized=resized))
    request_filter.pond_split(None, make_spec(**FIXED))
    assert controller.asked[0][0]["resized"] is resized


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
