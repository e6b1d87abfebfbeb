"""Flavors without pond: specs: who says what they are treated as, and how much pool memory they may get."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import nova.conf
import pytest
from nova import objects

from pondstack.domain.known_split import KnownSplit, Present
from pondstack.domain.project_settings import DefaultPolicy, ProjectSettings
from pondstack.domain.room import PoolRoom
from pondstack.domain.sizing import Policy, Split
from pondstack.prediction.serving import static_predictor
from pondstack.rpc.wire import SplitView
from pondstack_nova import migrations, pins
from pondstack_nova.counters import SPLIT_FALLBACKS
from pondstack_nova.scheduler import aggregates, request_filter, split_decision, split_view, used_splits

AUTO, NONE = DefaultPolicy.AUTO, DefaultPolicy.NONE


@pytest.fixture
def option() -> Iterator[Callable[[str], None]]:
    """Set [pondstack] default_policy."""
    yield lambda value: nova.conf.CONF.set_override("default_policy", value, group="pondstack")
    nova.conf.CONF.clear_override("default_policy", group="pondstack")


@pytest.fixture
def auto(option) -> None:
    option("auto")


@pytest.fixture(autouse=True)
def rack(use_splits) -> Callable[..., Any]:
    """A pool with room, and a predictor that gives half; call it with what is set for the project, and more."""

    def use(policy: DefaultPolicy | None = None, percent: int | None = None, **values: Any) -> Any:
        told = {"projects": {"project": ProjectSettings(policy, percent)}} if (policy, percent) != (None, None) else {}
        about = {"predictor": static_predictor(50), "rooms": (PoolRoom("pool0", 65536, 65536),)}
        return use_splits(SplitView(1, 1, **{**about, **told, **values}))

    use()
    return use


def bind(spec: Any, *required: dict[str, str | None]) -> None:
    """Have a request need a host of each set of aggregates: name to its metadata's policy."""
    known, destination = {}, objects.Destination()
    for wanted in required:
        for name, policy in wanted.items():
            metadata = {} if policy is None else {aggregates.KEY: policy}
            known[len(known)] = SimpleNamespace(uuid=f"uuid-{name}", name=name, metadata=metadata)
        destination.require_aggregates([f"uuid-{name}" for name in wanted])
    spec.requested_destination = destination
    aggregates.see(spec, SimpleNamespace(host_manager=SimpleNamespace(aggs_by_id=known)))


def pooled(spec: Any) -> int:
    """Run the request filter; return the pool memory that it asks for."""
    request_filter.pond_split(None, spec)
    return request_filter.pool_mib_of(spec)


def test_by_default_a_plain_flavor_is_novas_alone(make_spec) -> None:
    spec = make_spec()
    assert pooled(spec) == 0
    assert used_splits.of(spec) is None


@pytest.mark.usefixtures("auto")
def test_auto_treats_it_as_pond_policy_auto(make_spec) -> None:
    spec = make_spec()
    assert pooled(spec) == 2048
    decision = used_splits.of(spec)
    assert decision.features.specs.policy is Policy.AUTO
    assert decision.split.source == "static"
    assert decision.split.reason.endswith("; the flavor is plain, [pondstack] default_policy says auto")
    assert pooled(spec) == 2048, "a second pass starts from the flavor's own specs"
    assert "pond:policy" not in spec.flavor.extra_specs


@pytest.mark.parametrize(
    ("specs", "mib"), [({"pond__policy": "local"}, 0), ({"pond__policy": "fixed", "pond__pool_mb": "1024"}, 1024)]
)
@pytest.mark.usefixtures("auto")
def test_the_flavors_own_specs_win(make_spec, rack, specs: dict[str, str], mib: int) -> None:
    rack(AUTO, 0)
    assert pooled(make_spec(**specs)) == mib


@pytest.mark.parametrize(
    ("option_says", "aggregate_says", "project_says", "mib"),
    [
        ("none", None, AUTO, 2048),
        ("auto", None, NONE, 0),
        ("none", "auto", None, 2048),
        ("auto", "none", None, 0),
        ("none", "auto", NONE, 0),
        ("auto", "none", AUTO, 2048),
        ("auto", "nonsense", None, 2048),
    ],
)
def test_what_is_nearer_decides(make_spec, option, rack, option_says, aggregate_says, project_says, mib) -> None:
    option(option_says)
    rack(project_says)
    spec = make_spec()
    if aggregate_says is not None:
        bind(spec, {"zone": aggregate_says})
    assert pooled(spec) == mib


@pytest.mark.parametrize(
    ("required", "mib"),
    [
        ([{"a": "auto", "b": "auto"}], 2048),
        ([{"a": "auto", "b": None}], 0),
        ([{"a": "auto", "b": "none"}], 0),
        ([{"zone": "auto"}, {"tenant": None}], 2048),
        ([{"zone": "auto"}, {"tenant": "none"}], 0),
        ([], 0),
    ],
)
def test_aggregates_decide_where_the_request_can_land_nowhere_else(make_spec, required, mib: int) -> None:
    """One of each set; all of a set must say the same; of several sets none wins."""
    spec = make_spec()
    bind(spec, *required)
    assert pooled(spec) == mib


@pytest.mark.usefixtures("auto")
def test_an_aggregate_that_nova_does_not_know_yet_says_nothing(make_spec) -> None:
    spec = make_spec()
    bind(spec, {"new": "none"})
    spec._pondstack_host_manager.aggs_by_id.clear()
    assert pooled(spec) == 2048


@pytest.mark.parametrize(("percent", "mib"), [(0, 0), (25, 1024), (100, 2048)])
@pytest.mark.parametrize("specs", [{}, {"pond__policy": "auto"}], ids=["plain", "auto"])
@pytest.mark.usefixtures("auto")
def test_the_projects_cap(make_spec, rack, specs: dict[str, str], percent: int, mib: int) -> None:
    rack(percent=percent)
    assert pooled(make_spec(**specs)) == mib


def test_the_flavors_cap_may_be_lower(make_spec, rack) -> None:
    rack(percent=50)
    assert pooled(make_spec(pond__policy="auto", pond__max_pool_percent="25")) == 1024


@pytest.mark.parametrize(
    ("specs", "source"),
    [
        ({"hw__numa_nodes": "1"}, "unfit"),
        ({"hw__cpu_policy": "dedicated"}, "unfit"),
        ({"hw__mem_page_size": "large"}, "unfit"),
        ({"resources__MEMORY_MB": "0"}, "unfit"),
        ({"pci_passthrough__alias": "gpu:1"}, "pinned"),
    ],
)
@pytest.mark.usefixtures("auto")
def test_what_cannot_have_pool_memory_is_all_local_quietly(make_spec, specs: dict[str, str], source: str) -> None:
    """Remembered with its reason, no fallback, and the flavor as it is."""
    spec, before = make_spec(**specs), SPLIT_FALLBACKS.counts()
    own = dict(spec.flavor.extra_specs)
    assert pooled(spec) == 0
    assert spec.flavor.extra_specs == own
    split = used_splits.of(spec).split
    assert (split.local_mib, split.source) == (4096, source)
    assert split.reason.startswith("all local: ")
    assert next(iter(own)) in split.reason
    assert SPLIT_FALLBACKS.counts() == before


@pytest.mark.usefixtures("auto")
def test_a_topology_of_the_image_and_a_pinning_port(make_spec, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_spec()
    spec.numa_topology = objects.InstanceNUMATopology(cells=[])
    assert (pooled(spec), used_splits.of(spec).split.source) == (0, "unfit")
    monkeypatch.setattr(pins, "of_request", lambda _spec: "an SR-IOV or vDPA port")
    assert (pooled(make_spec()), used_splits.of(spec).split.source) == (0, "unfit")


@pytest.mark.usefixtures("auto")
def test_without_room_it_is_all_local(make_spec, rack) -> None:
    rack(rooms=(PoolRoom("pool0", 65536, 1024),))
    spec = make_spec()
    assert pooled(spec) == 0
    assert "1024 MiB free" in used_splits.of(spec).split.reason


@pytest.mark.parametrize(("says", "source"), [("auto", "no_view"), ("none", None)])
def test_without_any_view(make_spec, option, use_splits, says: str, source: str | None) -> None:
    """What a default policy would have given is lost for want of a view, and counted; what nobody asked for is not."""
    option(says)
    use_splits(ConnectionError("down"))
    before = SPLIT_FALLBACKS.counts().get("no_view", 0)
    spec = make_spec()
    assert pooled(spec) == 0
    decision = used_splits.of(spec)
    assert (None if decision is None else decision.split.source) == source
    assert SPLIT_FALLBACKS.counts().get("no_view", 0) - before == (source is not None)


def test_a_plain_flavor_waits_for_no_view_that_nobody_asked_for(make_spec, use_splits, monkeypatch) -> None:
    """Its project may say auto: half a second from the process's first request on, and no more."""
    waited: list[float] = []
    cache = use_splits(ConnectionError("down"))
    monkeypatch.setattr(cache, "first", waited.append)
    nova.conf.CONF.set_override("first_view_seconds", 10.0, group="pondstack")
    pooled(make_spec())
    assert waited == [0.5]


@pytest.mark.usefixtures("auto")
def test_settings_of_an_old_view_hold(make_spec, use_splits) -> None:
    now = 0.0
    told = SplitView(1, 1, projects={"project": ProjectSettings(NONE)})
    use_splits(told, clock=lambda: now)
    now = 1e6
    spec = make_spec()
    assert (pooled(spec), used_splits.of(spec)) == (0, None)


def test_a_controller_of_the_former_release_tells_of_no_project() -> None:
    wire = SplitView(1, 1, projects={"p": ProjectSettings(AUTO, 0)}).to_wire()
    assert SplitView.from_wire(wire).projects == {"p": ProjectSettings(AUTO, 0)}
    assert SplitView.from_wire({"epoch": 1, "version": 1}).projects == {}
    later = {"p": {"default_policy": "sometimes", "max_pool_percent": 5, "more": 1}}
    assert SplitView.from_wire({**wire, "projects": later}).projects == {"p": ProjectSettings(None, 5)}


# Moves.


def moved(monkeypatch: pytest.MonkeyPatch, **move: Any) -> None:
    """Have the request be of a move."""
    monkeypatch.setattr(migrations, "find", lambda *_: migrations.Move(**move))


@pytest.mark.parametrize("says", ["auto", "none"])
def test_a_running_guest_keeps_its_split(make_spec, option, rack, monkeypatch, says: str) -> None:
    """Whatever is said now: its nodes cannot change."""
    option(says)
    spec = make_spec()
    rack(splits=(KnownSplit(spec.instance_uuid, Present(4096, 1024)),))
    moved(monkeypatch, running_local_mib=3072)
    assert pooled(spec) == 1024
    assert used_splits.of(spec) is None


def test_a_cold_move_keeps_its_split_unless_it_is_to_have_none(make_spec, option, rack, monkeypatch) -> None:
    option("auto")
    spec = make_spec()
    rack(splits=(KnownSplit(spec.instance_uuid, Present(4096, 1024)),))
    moved(monkeypatch)
    assert pooled(spec) == 1024
    option("none")
    assert pooled(spec) == 0


@pytest.mark.usefixtures("auto")
def test_a_resize_decides_anew(make_spec, rack, monkeypatch) -> None:
    spec = make_spec()
    rack(splits=(KnownSplit(spec.instance_uuid, Present(4096, 1024)),))
    moved(monkeypatch, resized=True)
    assert pooled(spec) == 2048


@pytest.mark.usefixtures("auto")
def test_a_split_that_is_kept_tells_once_who_had_it_split(make_spec, rack, monkeypatch) -> None:
    spec = make_spec()
    pooled(spec)
    first = used_splits.of(spec).split
    rack(splits=(KnownSplit(spec.instance_uuid, None, "", first),))
    moved(monkeypatch)
    pooled(spec)
    assert used_splits.of(spec).split.reason == first.reason


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (KnownSplit("vm", Present(4096, 1024)), True),
        (KnownSplit("vm", None, "", Split(3072, 1024, "static", 1.0, "")), True),
        (KnownSplit("vm", None, "", Split(4096, 0, "unfit", 1.0, "")), False),
        (None, False),
    ],
)
def test_moves_of_guests_without_pool_memory_cost_no_look(rack, known: KnownSplit | None, asked: bool) -> None:
    """Where the policy is none, only what may have pool memory is looked up."""
    rack(splits=() if known is None else (known,))
    assert split_decision.may_hold("vm") is asked


def test_without_a_view_any_guest_may_have_pool_memory(use_splits) -> None:
    use_splits(ConnectionError("down"))
    assert split_decision.may_hold("vm")
    assert split_view.cache().latest()[0] is None
