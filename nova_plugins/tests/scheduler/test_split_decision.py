"""Deciding in the scheduler's process: with a fresh view, a stale one, none, and for instances that are moved."""

import time
from dataclasses import replace
from typing import Any

import pytest

from pondstack.domain.errors import PoolShortage
from pondstack.domain.known_split import KnownSplit, Present
from pondstack.domain.room import PENDING_SECONDS, PoolRoom
from pondstack.domain.sizing import Features, Policy, PondSpecs, Split
from pondstack.prediction.serving import flavor_key, static_predictor
from pondstack.rpc.wire import SplitView
from pondstack_nova import migrations
from pondstack_nova.counters import SPLIT_FALLBACKS, STALE_SPLITS
from pondstack_nova.scheduler import split_decision, split_view, used_splits

UUID, OTHER = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
FIXED, AUTO = PondSpecs(Policy.FIXED, 4096), PondSpecs(Policy.AUTO)
MOVE = migrations.Move(holder="holder")


class Clock:
    """Time that only moves by hand, in seconds."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture(autouse=True)
def told_splits() -> Any:
    """What this process has placed, and tells nobody here."""
    noted = used_splits.UsedSplits(lambda _splits: None, retry_seconds=lambda: 3600.0)
    used_splits.reset(noted)
    yield noted
    used_splits.reset()


@pytest.fixture(autouse=True)
def claims(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The pool memory that Placement holds by consumer, in MiB."""
    held: dict[str, int] = {}
    monkeypatch.setattr(migrations, "held_pool_mib", lambda _ctxt, move, _mib: held.get(move.holder))
    return held


def view(free_mib: int = 65536, **values: Any) -> SplitView:
    """Return what a controller tells."""
    about = {"predictor": static_predictor(50), "rooms": (PoolRoom("pool0", 65536, free_mib),)}
    return SplitView(1, 1, **{**about, **values})


def features(specs: PondSpecs = AUTO, uuid: str = UUID) -> Features:
    """Return a VM of 8 GiB."""
    return Features(uuid, 8192, 2, specs=specs)


def test_a_stale_view_decides_and_says_so(use_splits, clock: Clock) -> None:
    """The controller is away; the predictor that was known last decides."""
    use_splits(view(), ConnectionError("broker gone"), clock=clock)
    clock.now += 45
    before = STALE_SPLITS.counts().get("static", 0)
    split = split_decision.decide(None, features(), None)
    assert split.pool_mib == 4096
    assert split.reason.endswith("; decided from a view 45 s old")
    assert STALE_SPLITS.counts()["static"] == before + 1


def test_a_view_that_is_much_too_old_decides_nothing(use_splits, clock: Clock) -> None:
    """A server with pool memory could not start: nobody has given it slices for that long."""
    use_splits(view(), ConnectionError("broker gone"), clock=clock)
    clock.now += 601
    with pytest.raises(split_decision.NoView, match="for 601 s") as failure:
        split_decision.decide(None, features(), None)
    assert failure.value.reason == "stale"


def test_without_a_first_view(use_splits) -> None:
    """The one case of a scheduler's start."""
    use_splits(ConnectionError("broker gone"))
    with pytest.raises(split_decision.NoView) as failure:
        split_decision.decide(None, features(), None)
    assert failure.value.reason == "no_view"


def test_what_this_process_promised_is_not_promised_twice(use_splits, make_spec, clock: Clock) -> None:
    """Until it is claimed, or was not used: a controller that is away frees nothing."""
    cache = use_splits(view(7168), ConnectionError("gone"), view(7168), clock=clock)
    spec = make_spec()
    spec.instance_uuid = OTHER
    split_decision.promise(spec, Split(4096, 4096, "static", 1.0, ""))
    clock.now += 1
    short = split_decision.decide(None, features(), None)
    assert short.pool_mib == 0
    assert "pool pool0 has 3072 MiB free" in short.reason
    assert split_decision.decide(None, features(uuid=OTHER), None).pool_mib == 4096
    clock.now += 2 * PENDING_SECONDS
    assert cache.newer(5) is None
    assert cache.pending.mib() == 4096
    assert cache.newer(5) is not None
    assert cache.pending.mib() == 0


def test_a_promise_ends_when_it_is_claimed(use_splits, make_spec, clock: Clock) -> None:
    """Not before: the room of that view knows the claim."""
    cache = use_splits(view(7168), view(3072, claimed=(UUID,)), clock=clock)
    split_decision.promise(make_spec(), Split(4096, 4096, "static", 1.0, ""))
    clock.now += 1
    cache.newer(5)
    assert cache.pending.mib() == 0


def test_a_fixed_share_is_refused_by_the_room_of_this_moment_only(use_splits) -> None:
    """What the view has may be old; with the newest one there is room, or the shortage has its numbers."""
    use_splits(view(0), view())
    assert split_decision.decide(None, features(FIXED), None).pool_mib == 4096
    use_splits(view(0), view(1024))
    with pytest.raises(PoolShortage, match=r"pool0 has 1024 MiB free of 65536 MiB \(3072 MiB short\)"):
        split_decision.decide(None, features(FIXED), None)


def test_without_a_controller_placement_judges_a_fixed_share(use_splits) -> None:
    """What could never be is refused all the same."""
    use_splits(view(0), ConnectionError("broker gone"))
    assert split_decision.decide(None, features(FIXED), None).pool_mib == 4096
    use_splits(view(0, rooms=(PoolRoom("pool0", 2048, 0),)), ConnectionError("broker gone"))
    with pytest.raises(PoolShortage, match="the largest pool pool0 has 2048 MiB in all"):
        split_decision.decide(None, features(FIXED), None)


def known(pool_mib: int = 2048, source: str = "static") -> KnownSplit:
    """Return a split that is remembered."""
    return KnownSplit(UUID, None, flavor_key(features()), Split(8192 - pool_mib, pool_mib, source, 1.0, "so it was"))


def test_a_move_keeps_a_known_split(use_splits) -> None:
    """It comes with the view."""
    use_splits(view(splits=(known(),)))
    assert split_decision.decide(None, features(), MOVE).reason == "so it was"


def test_a_server_that_fell_back_is_decided_anew(use_splits) -> None:
    """A reason that is no decision binds nothing."""
    use_splits(view(splits=(known(0, "timeout"),)))
    assert split_decision.decide(None, features(), MOVE).pool_mib == 4096


def test_a_move_of_an_unknown_instance_waits_for_a_newer_view(use_splits) -> None:
    """Another scheduler placed it a moment ago."""
    use_splits(view(), view(splits=(known(),)))
    assert split_decision.decide(None, features(), MOVE).pool_mib == 2048


def test_a_move_of_what_this_process_placed(use_splits, told_splits) -> None:
    """The controller is away since before the boot."""
    use_splits(view(), ConnectionError("broker gone"))
    told_splits.note(UUID, used_splits.Decision(features(), Split(6144, 2048, "static", 1.0, "mine")))
    assert split_decision.decide(None, features(), MOVE).reason == "mine"


def test_what_was_decided_a_moment_ago_is_newer_than_the_view(use_splits, told_splits) -> None:
    """A resize to another flavor of the same size, and a migration right after it."""
    before = KnownSplit(UUID, Present(8192, 4096))
    use_splits(view(splits=(before,)))
    assert split_decision.decide(None, features(), MOVE).pool_mib == 4096
    told_splits.note(UUID, used_splits.Decision(features(), Split(6144, 2048, "static", 1.0, "resized")))
    assert split_decision.decide(None, features(), MOVE).pool_mib == 2048
    told_splits.note(
        UUID, used_splits.Decision(replace(features(), vcpus=4), Split(6144, 2048, "static", 1.0, "failed"))
    )
    assert split_decision.decide(None, features(), MOVE).pool_mib == 4096, "it has the former flavor"
    told_splits.note(UUID, used_splits.Decision(features(), Split(6144, 2048, "static", 1.0, "long ago")))
    told_splits._clock = lambda: time.monotonic() + 60
    assert split_decision.decide(None, features(), MOVE).pool_mib == 4096


def test_placement_knows_in_any_case(use_splits, claims: dict[str, int]) -> None:
    """Another scheduler placed it and the controller is away."""
    use_splits(view(), ConnectionError("broker gone"))
    claims["holder"] = 1024
    split = split_decision.decide(None, features(), MOVE)
    assert (split.pool_mib, split.source) == (1024, "present")
    assert split_decision.decide(None, features(), migrations.Move(resized=True, holder="holder")).pool_mib == 4096


def make_source(ask: split_view.Ask) -> split_view.SplitSource:
    """Return a source whose clock stands still."""
    clock = Clock()
    return split_view.SplitSource(ask, split_view.PendingSplits(), split_view.Risked(clock), clock)


def test_a_source_joins_pages_and_keeps_the_last_predictor(caplog: pytest.LogCaptureFixture) -> None:
    """Of a predictor that it does not know it says so, and goes on."""
    first, second = KnownSplit("a", None, "k", known().remembered), KnownSplit("b", None, "k", known().remembered)
    answers = [
        view(full=True, more=True, splits=(first,)),
        SplitView(1, 2, splits=(second,), predictor=static_predictor(50)),
        SplitView(1, 3, splits=(KnownSplit("a"),), predictor={"kind": "oracle"}),
        SplitView(2, 1, full=True, splits=(first,), predictor={"kind": "oracle"}),
    ]
    asked = []

    def ask(epoch: int, version: int, _now: bool, _predictor: str) -> SplitView:
        asked.append((epoch, version))
        return answers.pop(0)

    source = make_source(ask)
    assert set(source.fetch(False).known) == {"a", "b"}
    basis = source.fetch(False)
    assert set(basis.known) == {"b"}
    assert basis.predictor.predict(features(), 1024).pool_mib == 4096
    assert caplog.text.count("kind 'oracle' is unknown") == 1
    assert set(source.fetch(False).known) == {"a"}
    assert asked == [(0, 0), (1, 1), (1, 2), (1, 3)]


def flow_table(share: float = 0.5) -> dict[str, Any]:
    """Return the table of a model that knows one size."""
    point = {"gain": 20.0, "loss": 1.0, "known": 0.0, "cold": 0.0}
    about = {"insensitive": {"gain": 0.0, "loss": 0.0}, "untouched": point}
    untouched = {"version": "um-1", "projects": {"": {"8192/2": [share, 0, None]}}}
    return {
        "kind": "flow",
        "version": f"table-{share}",
        "percent": 15,
        "min_local_percent": 10,
        "points": {"0": about},
        "untouched": untouched,
        "sensitivity": None,
    }


def budgeted(left: float, **values: Any) -> SplitView:
    """Return what a controller tells whose models may still risk so much."""
    return view(predictor=flow_table(), model_budget={"left": left, "costs": {"um-1": 0.5}}, **values)


def test_a_table_is_asked_for_when_its_version_changes_only() -> None:
    """What is here goes on until then, whatever the room is."""
    answers = [
        view(predictor=flow_table(0.5), predictor_version="a"),
        view(1024, predictor={}, predictor_version="a"),
        view(predictor=flow_table(0.25), predictor_version="b"),
        view(),
        view(predictor=flow_table(0.25), predictor_version="b"),
    ]
    asked = []

    def ask(_epoch: int, _version: int, _now: bool, predictor: str) -> SplitView:
        asked.append(predictor)
        return answers.pop(0)

    source = make_source(ask)
    given = [source.fetch(False).predictor.predict(features(), 1024).pool_mib for _ in range(5)]
    assert given == [4096, 4096, 2048, 4096, 2048]
    assert asked == ["", "a", "a", "b", ""]


def test_what_this_process_risked_is_taken_off_the_budget(use_splits, make_spec, clock: Clock) -> None:
    """Until the controller knows of it, or it was not used."""
    told = KnownSplit(OTHER, None, "k", Split(4096, 4096, "untouched", 0.98, "", "um-1"))
    cache = use_splits(budgeted(1.0), budgeted(1.0), budgeted(1.0, splits=(told,)), clock=clock)
    spec = make_spec()
    spec.instance_uuid, spec.num_instances = OTHER, 2
    first = split_decision.decide(None, features(uuid=OTHER), None, 2)
    assert (first.source, first.model_version, first.pool_mib) == ("untouched", "um-1", 4096)
    split_decision.promise(spec, first)
    before = SPLIT_FALLBACKS.counts().get("model_budget", 0)
    stopped = split_decision.decide(None, features(), None)
    assert (stopped.source, stopped.pool_mib) == ("model_budget", 0)
    assert SPLIT_FALLBACKS.counts()["model_budget"] == before + 1
    cache.refresh()
    assert split_decision.decide(None, features(), None).source == "model_budget"
    cache.refresh()
    assert split_decision.decide(None, features(), None).source == "untouched"


def test_a_risk_that_nobody_hears_of_is_forgotten(use_splits, make_spec, clock: Clock) -> None:
    """The request failed after it was split."""
    cache = use_splits(budgeted(0.5), clock=clock)
    spec = make_spec()
    spec.instance_uuid = OTHER
    split_decision.promise(spec, split_decision.decide(None, features(uuid=OTHER), None))
    clock.now += split_view.RISKED_SECONDS + 1
    cache.refresh()
    assert split_decision.decide(None, features(), None).source == "untouched"


def test_several_instances_of_one_request_need_room_for_all(use_splits) -> None:
    """All of them get the same split."""
    use_splits(budgeted(1.0))
    assert split_decision.decide(None, features(), None, 2).source == "untouched"
    assert split_decision.decide(None, features(), None, 3).source == "model_budget"


def test_a_used_up_budget_takes_nothing_from_what_runs(use_splits) -> None:
    """A move keeps what the instance has."""
    use_splits(budgeted(0.0, splits=(known(),)))
    assert split_decision.decide(None, features(), MOVE).pool_mib > 0


ALL_IN = {"share_percent": 100.0, "seed": "seed"}


def test_the_control_group_is_all_local(use_splits) -> None:
    """A new server is; one that is moved keeps what it has, and a flavor that fixes its share is in no group."""
    use_splits(view(control=ALL_IN))
    split = split_decision.decide(None, features(), None)
    assert (split.pool_mib, split.source) == (0, "control")
    assert split_decision.decide(None, features(FIXED), None).pool_mib == 4096
    use_splits(view(control=ALL_IN, splits=(KnownSplit(UUID, Present(8192, 1024)),)))
    assert split_decision.decide(None, features(), MOVE).pool_mib == 1024


@pytest.mark.parametrize(
    ("known", "move", "pool_mib"),
    [
        ({"renewed_mib": 3072}, MOVE, 3072),
        ({"renewed_mib": 0}, MOVE, 0),
        ({"renewed_mib": None}, MOVE, 1024),
        ({"renewed_mib": 3072}, migrations.Move(running_local_mib=7168), 1024),
        ({"renewed_mib": 3072}, None, 1024),
        ({"renewed_mib": 8192}, MOVE, 1024),
        ({"renewed_mib": 3072, "remembered": Split(8192, 0, "corrected", 1.0, "mitigated")}, MOVE, 0),
    ],
)
def test_what_was_predicted_again_is_taken_at_a_cold_move_only(use_splits, known, move, pool_mib) -> None:
    """Not while it runs, not where it leaves no local memory, never by a server that was mitigated."""
    use_splits(view(splits=(KnownSplit(UUID, Present(8192, 1024), **known),)))
    split = split_decision.decide(None, features(), move)
    assert split.pool_mib == pool_mib
    assert (split.source == "repredicted") == (pool_mib == known["renewed_mib"])


def test_a_resize_decides_anew_whatever_was_predicted_again(use_splits) -> None:
    """Another flavor is another server, as far as a prediction goes."""
    use_splits(view(splits=(KnownSplit(UUID, Present(8192, 1024), renewed_mib=3072),)))
    resized = replace(features(), resized=True)
    assert split_decision.decide(None, resized, replace(MOVE, resized=True)).source == "static"
